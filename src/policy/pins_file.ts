/**
 * Finds the pins of a workspace and checks whether they may contain a registry's server, so that
 * the start of PML need not parse them.
 *
 * @module
 */

import { join } from "node:path";
import { isGone } from "../io/path_info.ts";
import { sha256, sha256Async } from "../core/hash.ts";
import { textIfAny } from "../io/regular_file.ts";

/** The name of the lock in a workspace. */
export const LOCK_NAME = "pml.lock";

/** Returns the path of the file with the approvals of a workspace. */
export function pinsFile(home: string, folder: string): string {
  return fileIn(home, sha256(folder));
}

function fileIn(home: string, hash: string): string {
  return join(home, "pins", `${hash}.json`);
}

/** Returns whether a server of a registry may have been approved in a workspace. */
export async function mayHaveRegistryServers(home: string, folder: string): Promise<boolean> {
  // Every source but "private" (`OWN_SOURCE`) is a registry. A missing file means no approvals, and
  // reading the pins reports an unreadable file.
  return /"source": "(?!private")/.test(textIfAny(fileIn(home, await sha256Async(folder))) ?? "");
}

/** Returns whether anything may be pinned in a workspace: a new PML home has no pins at all. */
export function mayHavePins(home: string, folder: string): boolean {
  return mayExist(join(home, "pins")) || mayExist(join(folder, LOCK_NAME));
}

function mayExist(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    return !isGone(error);
  }
}
