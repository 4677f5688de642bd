/**
 * Finds the pins of a workspace, and whether they may contain a server of a registry, so that a start
 * does not have to parse them.
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
  // Without it nothing was approved, or the file cannot be read. Then reading the pins reports the
  // error.
  return /"source": "(?!private")/.test(textIfAny(fileIn(home, await sha256Async(folder))) ?? "");
}
