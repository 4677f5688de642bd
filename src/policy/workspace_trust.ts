/**
 * The approvals of a workspace: of its file, and of the module files that it names.
 *
 * @module
 */

import type { ChangedCode, Unapproved } from "./server_identity.ts";
import { PmlError } from "../core/errors.ts";
import { memberOf, quoted } from "../core/json.ts";
import type { ApprovedCode, TrustStore } from "./trust.ts";

/** The current workspace file in the form that is shown to the user. */
export interface ShownFile {
  readonly path: string;
  /** Whether the path contains a link. Then the file cannot be trusted. */
  readonly isLink: boolean;
  /** The SHA-256 hash of its bytes, in hex. */
  readonly hash: string;
  /** Returns a line for each definition of the file. Only questions need the lines. */
  readonly lines: () => Promise<readonly string[]>;
  /** The names of all servers of the file, modules included. */
  readonly servers: readonly string[];
  readonly modules: readonly ShownModule[];
  /** Whether `PML_TRUST` lists the file. Then it counts as shown and approved. */
  readonly isListed: boolean;
}

/** A module that the file names, with the hash of its code; undefined if it cannot be read. */
export interface ShownModule {
  readonly name: string;
  readonly path: string;
  readonly integrity: string | undefined;
  /** Whether it is outside the workspace. Such a module is read only after the file is trusted. */
  readonly isOutside?: boolean;
}

/** The approvals of a workspace at one moment. */
export interface TrustState {
  readonly trusted: boolean;
  /** The approved hash of each module's code, by server. */
  readonly approved: ReadonlyMap<string, string>;
}

/** Reads the workspace file. `Policy` implements it. */
export interface ShownFileReader {
  /** Reads the file again. Returns undefined if there is none. */
  readAgain(): Promise<ShownFile | undefined>;
}

/** Reads and saves the approvals of a workspace. */
export class WorkspaceTrust {
  readonly #store: TrustStore;

  /** Takes the store of trust records. */
  constructor(store: TrustStore) {
    this.#store = store;
  }

  /** Returns the approvals of the current file; trusted if there is no file. */
  async stateOf(file: ShownFile | undefined): Promise<TrustState> {
    if (file === undefined) return { trusted: true, approved: new Map() };
    const { path, hash, modules, isListed } = file;
    if (!isListed && !await this.#store.isTrusted(path, hash) && !await this.#copyTrust(file)) {
      return { trusted: false, approved: new Map() };
    }
    // The modules of a listed file are approved at their first use.
    const approved = isListed && modules.length > 0
      ? await this.#store.approve(path, (before) => ({ ...codeOf(modules), ...before }))
      : (await this.#store.record(path))?.servers;
    return { trusted: true, approved: new Map(Object.entries(approved ?? {})) };
  }

  async #copyTrust(file: ShownFile): Promise<boolean> {
    const { copyTrust } = await import("./_worktrees.ts");
    return !file.isLink && await copyTrust(this.#store, file);
  }

  /**
   * Revokes the trust in a file in every worktree of its repository. Returns whether it was trusted
   * anywhere.
   */
  async revoke(path: string): Promise<boolean> {
    return await (await import("./_worktrees.ts")).revokeAll(this.#store, path);
  }

  /**
   * Returns the approval that is needed: for the whole file, or for modules whose code changed
   * since the last approval. `server` limits it to the needs of a call of that server. The file is
   * read again when the user approves.
   */
  async findUnapproved(
    shown: ShownFile | undefined,
    reader: ShownFileReader,
    server?: string,
  ): Promise<Unapproved | undefined> {
    if (shown === undefined) return undefined;
    if (server !== undefined && !shown.servers.includes(server)) return undefined;
    const { trusted, approved } = await this.stateOf(shown);
    if (!trusted) {
      const { trustLines: linesOf, trustFacts } = await import("./_trust_facts.ts");
      const lines = await linesOf(shown);
      const before = await this.#store.record(shown.path);
      const earlier = before?.servers ?? {};
      return {
        code: "WORKSPACE_UNTRUSTED",
        isOfFile: true,
        facts: trustFacts(shown, { lines, before: before?.shown }),
        changedCode: changedCodeOf(shown.modules, (name) => memberOf(earlier, name))
          .filter((module) => module.approved !== undefined),
        accept: async () => {
          await assertUnchanged(shown, reader);
          await this.#store.trust({ ...shown, servers: codeOf(shown.modules), shown: lines });
        },
      };
    }
    const changed = changedCodeOf(shown.modules, (name) => approved.get(name))
      .filter(({ name }) => server === undefined || server === name);
    if (changed.length === 0) return undefined;
    const { changedLine } = await import("./_trust_facts.ts");
    return {
      code: "APPROVAL_STALE",
      isOfFile: true,
      facts: changed.map(changedLine),
      effect:
        "If you answer yes, PML approves this code, too: later calls do not ask because of it",
      changedCode: changed,
      accept: async () => {
        await assertUnchanged(shown, reader);
        // Modules that were not shown keep their earlier approval.
        await this.#store.approve(shown.path, (before) => ({ ...before, ...codeOf(changed) }));
      },
    };
  }
}

async function assertUnchanged(file: ShownFile, reader: ShownFileReader): Promise<void> {
  const cannot = `Cannot trust ${quoted(file.path, 400)}`;
  // guard: trusted-link
  if (file.isLink) {
    throw new PmlError("WORKSPACE_UNTRUSTED", `${cannot}: it is a link`, {
      hint: "Replace the link by the file itself",
    });
  }
  // guard: changed-meanwhile
  if (JSON.stringify(await reader.readAgain()) !== JSON.stringify(file)) {
    throw new PmlError("APPROVAL_STALE", `${cannot}: it was changed meanwhile`, {
      hint: "Try again, and review the present content",
    });
  }
}

/** Returns the modules whose code differs from the approved code. */
function changedCodeOf(
  modules: readonly ShownModule[],
  approvedOf: (name: string) => string | undefined,
): readonly ChangedCode[] {
  return modules.flatMap(({ name, path, integrity }) => {
    const approved = approvedOf(name);
    const isChanged = integrity !== undefined && integrity !== approved;
    return isChanged ? [{ name, path, integrity, approved }] : [];
  });
}

function codeOf(modules: readonly ShownModule[]): ApprovedCode {
  return Object.fromEntries(
    modules.flatMap(({ name, integrity }) => integrity === undefined ? [] : [[name, integrity]]),
  );
}
