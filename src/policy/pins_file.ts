/**
 * Where the pins of a workspace are kept, so that a start can tell without reading them whether
 * there is anything of a registry among them.
 *
 * @module
 */

import { join } from "node:path";
import { sha256 } from "../core/hash.ts";
import { readRegularText } from "../io/regular_file.ts";

/** The file in the PML home that holds what the person approved for a workspace. */
export function pinsFile(home: string, folder: string): string {
  return join(home, "pins", `${sha256(folder)}.json`);
}

/** Tells whether a server of a registry may have been approved in a workspace. */
export function mayHaveAdopted(home: string, folder: string): boolean {
  try {
    return /"source": "(?!private")/.test(readRegularText(pinsFile(home, folder)));
  } catch {
    // Nothing was approved, or who reads the pins says why they cannot be read.
    return false;
  }
}
