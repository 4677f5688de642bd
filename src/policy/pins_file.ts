/**
 * Finds the pins of a workspace and checks whether they may contain a registry's server, so that
 * the start of PML need not parse them.
 *
 * @module
 */

import { join } from "node:path";
import { sha256, sha256Async } from "../core/hash.ts";
import { textIfAny } from "../io/regular_file.ts";

/** Returns the path of the file with the approvals of a workspace. */
export function pinsFile(home: string, folder: string): string {
  return fileIn(home, sha256(folder));
}

function fileIn(home: string, hash: string): string {
  return join(home, "pins", `${hash}.json`);
}

/** Returns whether a server of a registry may have been approved in a workspace. */
export async function mayHaveAdopted(home: string, folder: string): Promise<boolean> {
  // A missing file means no approvals. Reading the pins reports an unreadable file.
  return /"source": "(?!private")/.test(textIfAny(fileIn(home, await sha256Async(folder))) ?? "");
}
