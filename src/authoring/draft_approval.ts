/**
 * The approval of a module of the workspace file for the calls that its author types in one
 * `pml dev`.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { accessOf } from "../policy/grants.ts";
import { permissionLines } from "../policy/permission_lines.ts";
import type { Unapproved } from "../policy/server_identity.ts";
import type { Permissions } from "../protocol/tool.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import type { ResolvedCall } from "../servers/server.ts";
import { NothingToApprove } from "../servers/sources/nothing_to_approve.ts";

/** The answer of the user in one `pml dev`. It is not stored, so no other process has it. */
export class DraftAnswer {
  #rights: string | undefined;

  /** Returns whether the user agreed to these rights last. Other rights end the answer. */
  covers(rights: string): boolean {
    if (this.#rights !== rights) this.#rights = undefined;
    return this.#rights !== undefined;
  }

  /** Takes the rights that the user agreed to. */
  give(rights: string): void {
    this.#rights = rights;
  }
}

/** A module of the workspace file in one version of its code. */
export interface GrantedDraft {
  readonly definition: ServerDefinition;
  readonly path: string;
  readonly integrity: string;
  /** All permissions that its tools ask for. */
  readonly permissions: Permissions;
  readonly answer: DraftAnswer;
}

/** Asks once for all versions of a module with the same rights. */
export class DraftApproval extends NothingToApprove {
  readonly #app: App;
  readonly #draft: GrantedDraft;

  /** Takes the present version. */
  constructor(app: App, draft: GrantedDraft) {
    super("a module that you write, with the grants of its file");
    this.#app = app;
    this.#draft = draft;
  }

  /** Returns the question, unless the user answered it or approved this code and allowed the call. */
  override unapproved({ id, arguments: args }: ResolvedCall): Unapproved | undefined {
    const { definition: { name }, path, integrity, permissions, answer } = this.#draft;
    const { policy } = this.#app;
    const grants = this.grants();
    const rights = JSON.stringify([grants, permissions]);
    // guard: draft-rights
    if (answer.covers(rights)) return undefined;
    const isApproved = policy.approvedCode(name) === integrity;
    if (isApproved && policy.now.judge(id, args).kind === "allow") return undefined;
    const { workspace } = policy.config;
    const access = accessOf(permissions, { workspace, grants });
    return {
      code: isApproved ? "APPROVAL_REQUIRED" : "APPROVAL_STALE",
      facts: [
        `"${name}" is the module ${
          quoted(path, 400)
        }, which you write. Its code is ${integrity} now`,
        "If you answer yes, calls that you type in this `pml dev` run its code as it is at that " +
        "time, until `pml dev` ends or these permissions change:",
        ...permissionLines(permissions, access, workspace).map((line) => `it ${line}`),
        "Nothing is stored: other processes ask about changed code",
      ],
      accept: () => {
        answer.give(rights);
        return Promise.resolve();
      },
    };
  }

  /** Returns the present grants. Throws if the trusted file no longer defines the module. */
  grants(): Partial<Permissions> {
    const { directory, policy } = this.#app;
    const { definition } = this.#draft;
    const { trusted, grants } = policy.config;
    // guard: draft-untrusted
    if (!trusted || directory.at(definition.name).definition !== definition) {
      throw new PmlError(
        "WORKSPACE_UNTRUSTED",
        `Cannot run "${definition.name}": its definition has changed`,
        { hint: "Call it again" },
      );
    }
    return grants[definition.name] ?? {};
  }
}
