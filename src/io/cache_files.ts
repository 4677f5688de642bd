/**
 * Writes cache files, which may be lost: completely or not at all, readable by this user only,
 * neither synced nor locked.
 *
 * @module
 */

import { basename, dirname, join } from "node:path";
import { infoAt, namesInFolder } from "./path_info.ts";
import { readRegularText } from "./regular_file.ts";

/** The length of a hash with `.json`, which ends a file name. */
const HASH_END = 37;

/** Reads a file that `writeCache` wrote; undefined if there is none or it is not JSON. */
export function readCache(file: string, parse: (text: string) => unknown = JSON.parse): unknown {
  try {
    return parse(readRegularText(file));
  } catch {
    // There is no file, or a crash truncated it. The caller computes the value again.
    return undefined;
  }
}

/** Writes a value as JSON. */
export function writeCache(file: string, value: unknown): void {
  writeFileWhole(file, JSON.stringify(value));
}

/**
 * Writes a complete file, and creates its folder if that is missing. The content is written to a
 * temporary file first, next to the file or next to `by`.
 */
export function writeFileWhole(
  file: string,
  content: string | Uint8Array,
  { by = file } = {},
): void {
  Deno.mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const temporary = `${by}.${crypto.randomUUID()}.tmp`;
  try {
    Deno.writeFileSync(temporary, bytes, { createNew: true, mode: 0o600 });
    Deno.renameSync(temporary, file);
  } catch (error) {
    // If the disk is full, the temporary file would stay.
    removeIfPossible(temporary);
    throw error;
  }
}

/** Removes a file, if that is possible. */
export function removeIfPossible(file: string): void {
  try {
    Deno.removeSync(file);
  } catch {
    // It was never written, or another process removed it.
  }
}

/** Keeps the newest `most` files whose names differ from the name of `like` only in the hash. */
export function pruneCache(
  folder: string,
  { like, most }: { readonly like: string; readonly most: number },
): void {
  const start = basename(like).slice(0, -HASH_END);
  const files = namesInFolder(folder)
    .filter((name) => name.startsWith(start) && name.length === start.length + HASH_END)
    .map((name) => join(folder, name));
  if (files.length <= most) return;
  const filesByAge = files.map((file) => ({ file, mtime: Number(infoAt(file)?.mtime ?? 0) }));
  filesByAge.sort((one, other) => other.mtime - one.mtime);
  for (const { file } of filesByAge.slice(most)) removeIfPossible(file);
}
