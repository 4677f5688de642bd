/**
 * The access list of the PML home on Windows, where files have no modes. Files in the user's
 * profile inherit a list that grants access only to the user; a home elsewhere gets an equal list.
 *
 * @module
 */

import { join } from "node:path";
import type { Environment } from "../config/env.ts";
import { WINDOWS } from "../core/paths.ts";
import { isInside } from "../io/path_info.ts";
import { runProgram } from "../sandbox/process.ts";

/** Runs the programs of Windows. */
export interface SystemPrograms {
  /** Runs a program. Returns its output; undefined if it fails or is missing. */
  run(name: string, args: readonly string[]): Promise<string | undefined>;
}

/** The ids of the system and the administrators. Their names depend on the language of Windows. */
const SYSTEM_ACCOUNTS = ["S-1-5-18", "S-1-5-32-544"];
const MOST_MS = 10_000;
const MOST_BYTES = 10_000;

/** The programs of this system. */
class OwnSystem implements SystemPrograms {
  readonly #root: string;

  constructor({ get }: Pick<Environment, "get">) {
    this.#root = get("SystemRoot") ?? "C:\\Windows";
  }

  async run(name: string, args: readonly string[]): Promise<string | undefined> {
    const cwd = this.#root;
    const file = join(cwd, "System32", `${name}.exe`);
    try {
      const program = { file, args, cwd, env: { SystemRoot: cwd } };
      const options = { ms: MOST_MS, maxBytes: MOST_BYTES };
      const { code, stdout } = await runProgram(program, options);
      return code === 0 ? stdout : undefined;
    } catch {
      return undefined; // the program is missing, or did not end in time
    }
  }
}

/** The access lists of folders. */
export class AccessLists {
  readonly #profile: string;
  readonly #system: SystemPrograms;

  /** Takes the folder of the user's profile. */
  constructor(profile: string, system: SystemPrograms) {
    this.#profile = profile;
    this.#system = system;
  }

  /** Returns the access lists for the user of an environment. */
  static of(environment: Pick<Environment, "account" | "userHome" | "get">): AccessLists {
    const { account, userHome } = environment;
    return new AccessLists(account ?? userHome, new OwnSystem(environment));
  }

  /** Lets only the user, the system and the administrators use a folder with all its files. */
  async restrict(folder: string): Promise<void> {
    if (isInside(this.#profile, folder, WINDOWS)) return;
    const output = await this.#system.run("whoami", ["/user"]);
    const [user] = /\bS-1-[\d-]+/.exec(output ?? "") ?? [];
    if (user === undefined) return;
    const grants = [user, ...SYSTEM_ACCOUNTS].map((account) => `*${account}:(OI)(CI)F`);
    await this.#system.run("icacls", [folder, "/inheritance:r", "/grant:r", ...grants]);
  }

  /** Returns why other users may have access to a folder; undefined if they have none. */
  async whyShared(folder: string): Promise<string | undefined> {
    if (isInside(this.#profile, folder, WINDOWS)) return undefined;
    const list = await this.#system.run("icacls", [folder]);
    if (!list?.includes(":(")) return "icacls does not show who has access to it";
    // Entries with this mark are inherited from the parent folder.
    return list.includes("(I)") ? "it inherits who has access to it" : undefined;
  }
}
