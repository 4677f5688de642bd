/**
 * The paths of capabilities in the PML home. At its start, PML only checks whether there are any.
 *
 * @module
 */

import { join } from "node:path";
import { infoAt } from "../io/place.ts";

/** Returns the folder of the capabilities in a PML home. */
export function capabilitiesFolder(home: string): string {
  return join(home, "capabilities");
}

/** Returns the path of the index of approved capabilities. */
export function capabilitiesIndex(home: string): string {
  return join(capabilitiesFolder(home), "index.json");
}

/** Returns whether capabilities may be saved. Reads no file. */
export function mayHaveCapabilities(home: string): boolean {
  // Without an index nothing was saved. Reading the index reports other problems.
  return infoAt(capabilitiesIndex(home))?.isFile === true;
}
