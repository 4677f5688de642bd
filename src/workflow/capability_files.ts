/**
 * Where capabilities are kept in the PML home. A start asks only whether there are any.
 *
 * @module
 */

import { join } from "node:path";
import { infoAt } from "../io/place.ts";

/** The folder of the capabilities in a PML home. */
export function capabilitiesFolder(home: string): string {
  return join(home, "capabilities");
}

/** The file that holds which capabilities the person approved. */
export function capabilitiesIndex(home: string): string {
  return join(capabilitiesFolder(home), "index.json");
}

/** Tells whether a person may have saved a capability. Nothing is read. */
export function mayHaveCapabilities(home: string): boolean {
  // Else nothing was saved, or who reads the file says why it cannot be read.
  return infoAt(capabilitiesIndex(home))?.isFile === true;
}
