/**
 * Writes what may be lost, because it can be found out again: whole, for this person alone, neither
 * synced nor locked.
 *
 * @module
 */

import { basename, dirname, join } from "node:path";
import { readRegularText } from "./regular_file.ts";

/** The length of what stands behind the name of whom a file is about: a hash, and `.json`. */
const HASH_END = 37;

/** Reads what `keep` wrote; undefined where nothing is, or no JSON. */
export function readKept(file: string): unknown {
  try {
    return JSON.parse(readRegularText(file));
  } catch {
    // Nothing kept, or a file that a crash cut short: it is found out again.
    return undefined;
  }
}

/** Keeps a value as JSON. */
export function keep(file: string, value: unknown): void {
  keepFile(file, JSON.stringify(value));
}

/**
 * Puts a file in place, whole, and makes its folder where that is missing. It is written beside
 * itself, or beside what `by` names.
 */
export function keepFile(file: string, content: string | Uint8Array, { by = file } = {}): void {
  Deno.mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const fresh = `${by}.${crypto.randomUUID()}.tmp`;
  try {
    Deno.writeFileSync(fresh, bytes, { createNew: true, mode: 0o600 });
    Deno.renameSync(fresh, file);
  } catch (error) {
    // Of a full disk the beginning would stay.
    drop(fresh);
    throw error;
  }
}

/** Removes a file, if it is there and can be removed. */
export function drop(file: string): void {
  try {
    Deno.removeSync(file);
  } catch {
    // It was never made, or another process was faster.
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
