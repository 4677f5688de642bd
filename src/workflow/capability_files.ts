/**
 * The paths of capabilities in the PML home. At its start, PML only checks whether
 * capabilities exist.
 *
 * @module
 */

import { join } from "node:path";
import { infoAt } from "../io/path_info.ts";

/** Returns the folder of the capabilities in a PML home. */
export function capabilitiesFolder(home: string): string {
  return join(home, "capabilities");
}

/** Returns the path of the index of approved capabilities. */
export function capabilitiesIndex(home: string): string {
  return join(capabilitiesFolder(home), "index.json");
}

/** Returns whether the PML home may contain saved capabilities. Reads no file. */
export function mayHaveCapabilities(home: string): boolean {
  // Saving creates the index. If its content is wrong, the code that reads it reports this.
  return infoAt(capabilitiesIndex(home))?.isFile === true;
}
