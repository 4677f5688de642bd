/**
 * The approval of a module of the workspace file, for calls that the author types while `pml dev`
 * runs.
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

/** The user's answer in one run of `pml dev`. It is not stored, so it ends with the process. */
export class DraftAnswer {
  #rights: string | undefined;

  /** Returns whether the user's last yes covers these rights. For other rights, forgets the yes. */
  covers(rights: string): boolean {
    if (this.#rights !== rights) this.#rights = undefined;
    return this.#rights !== undefined;
  }

  /** Records that the user agreed to these rights. */
  record(rights: string): void {
    this.#rights = rights;
  }
}

/** One version of a module that the workspace file defines. */
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

  /** Creates an instance. `draft` is the current version of the module. */
  constructor(app: App, draft: GrantedDraft) {
    super("a module that you write, with the grants of its file");
    this.#app = app;
    this.#draft = draft;
  }

  /**
   * Returns an approval request. Returns undefined if the user has answered it with yes, or if the
   * user has approved this code and a rule allows the call.
   */
  override findUnapproved({ id, arguments: args }: ResolvedCall): Unapproved | undefined {
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
        answer.record(rights);
        return Promise.resolve();
      },
    };
  }

  /** Returns the current grants. Throws if the trusted file no longer defines the module. */
  grants(): Partial<Permissions> {
    const { directory, policy } = this.#app;
    const { definition } = this.#draft;
    const { trusted, grants } = policy.config;
    // guard: draft-untrusted
    if (!trusted || directory.get(definition.name).definition !== definition) {
      throw new PmlError(
        "WORKSPACE_UNTRUSTED",
        `Cannot run "${definition.name}": its definition has changed`,
        { hint: "Call it again" },
      );
    }
    return grants[definition.name] ?? {};
  }
}
