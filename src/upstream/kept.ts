/**
 * What can be found out again and is kept in the PML home all the same: whole files of JSON, for
 * this person alone.
 *
 * @module
 */

import { dirname } from "node:path";
import { readRegularText } from "../core/regular_file.ts";

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
  Deno.mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${crypto.randomUUID()}`;
  try {
    Deno.writeTextFileSync(temporary, JSON.stringify(value), { mode: 0o600, createNew: true });
    Deno.renameSync(temporary, file);
  } catch (error) {
    // Of a full disk the beginning would stay.
    Deno.removeSync(temporary);
    throw error;
  }
}
