/**
 * What can be found out again and is kept in the PML home all the same: whole files of JSON, for
 * this person alone.
 *
 * @module
 */

import { readRegularText } from "../core/regular_file.ts";
import { replaceFile } from "../core/replaced_file.ts";

/** Reads what was kept; undefined where nothing is, or no JSON. */
export function readKept(file: string): unknown {
  try {
    return JSON.parse(readRegularText(file));
  } catch {
    // Nothing kept, or a file that a crash cut short: it is found out again.
    return undefined;
  }
}

/** Keeps a value: the whole file, or the one that was there. */
export function keep(file: string, value: unknown): void {
  replaceFile(file, JSON.stringify(value));
}
