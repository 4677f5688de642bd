/**
 * The access list of the PML home on Windows, where files have no modes. Everything in the user's
 * profile inherits that only the user has access; a home elsewhere gets the same list.
 *
 * @module
 */

import { join } from "node:path";
import type { Environment } from "../config/env.ts";
import { WINDOWS } from "../core/paths.ts";
import { isInside } from "../io/place.ts";
import { runProgram } from "../sandbox/process.ts";

/** Runs a program of Windows. Returns its output; undefined if it fails or is missing. */
type RunSystem = (name: string, args: readonly string[]) => Promise<string | undefined>;

/** The options of both functions. */
export interface AccessListOptions {
  /** The folder of the user's profile. */
  readonly profile: string;
  readonly run: RunSystem;
}

/** The system and the administrators, in any language. */
const ALWAYS = ["S-1-5-18", "S-1-5-32-544"];
const MOST_MS = 10_000;
const MOST_BYTES = 10_000;

/** Returns the options for the user of an environment. */
export function accessListOptions(
  { account, userHome, get }: Pick<Environment, "account" | "userHome" | "get">,
): AccessListOptions {
  const system = get("SystemRoot") ?? "C:\\Windows";
  return {
    profile: account ?? userHome,
    run: async (name, args) => {
      const file = join(system, "System32", `${name}.exe`);
      try {
        const program = { file, args, cwd: system, env: { SystemRoot: system } };
        const options = { ms: MOST_MS, maxBytes: MOST_BYTES };
        const { code, stdout } = await runProgram(program, options);
        return code === 0 ? stdout : undefined;
      } catch {
        return undefined; // it is not there, or does not end
      }
    },
  };
}

/** Lets only the user, the system and the administrators use a folder with all its files. */
export async function restrict(
  folder: string,
  { profile, run }: AccessListOptions,
): Promise<void> {
  if (isInside(profile, folder, WINDOWS)) return;
  const [user] = /\bS-1-[\d-]+/.exec(await run("whoami", ["/user"]) ?? "") ?? [];
  if (user === undefined) return;
  const grants = [user, ...ALWAYS].map((one) => `*${one}:(OI)(CI)F`);
  await run("icacls", [folder, "/inheritance:r", "/grant:r", ...grants]);
}

/** Returns why other people may have access to a folder; undefined if they have none. */
export async function whyShared(
  folder: string,
  { profile, run }: AccessListOptions,
): Promise<string | undefined> {
  if (isInside(profile, folder, WINDOWS)) return undefined;
  const list = await run("icacls", [folder]);
  if (!list?.includes(":(")) return "icacls does not show who has access to it";
  // An entry with this mark comes from the folder above.
  return list.includes("(I)") ? "it inherits who has access to it" : undefined;
}
