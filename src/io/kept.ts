/**
 * What can be found out again and is kept in the PML home all the same: whole files of JSON, for
 * this person alone.
 *
 * @module
 */

import { basename, join } from "node:path";
import { readRegularText } from "./regular_file.ts";
import { replaceFile } from "./replaced_file.ts";

/** The length of what stands behind the name of whom a file is about: a hash, and `.json`. */
const HASH_END = 37;

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

/** Keeps a file no longer. */
export function drop(file: string): void {
  try {
    Deno.removeSync(file);
  } catch {
    // Another process was faster.
  }
}

/** Leaves the newest files of a folder whose names are like that of one, but for the hash at its end. */
export function prune(
  folder: string,
  { like, most }: { readonly like: string; readonly most: number },
): void {
  const start = basename(like).slice(0, -HASH_END);
  const files = [...Deno.readDirSync(folder)].map(({ name }) => name)
    .filter((name) => name.startsWith(start) && name.length === start.length + HASH_END)
    .map((name) => join(folder, name));
  if (files.length <= most) return;
  const at = new Map(files.map((file) => [file, Deno.lstatSync(file).mtime?.getTime() ?? 0]));
  files.sort((one, other) => (at.get(other) ?? 0) - (at.get(one) ?? 0));
  for (const file of files.slice(most)) drop(file);
}
