/**
 * Writes cache files, which may be lost: completely or not at all, readable by this user only,
 * neither synced nor locked.
 *
 * @module
 */

import { basename, dirname, join } from "node:path";
import { infoAt, namesInFolder } from "./place.ts";
import { readRegularText } from "./regular_file.ts";

/** The length of the end of a file name: a hash, and `.json`. */
const HASH_END = 37;

/** Reads a file that `writeCache` wrote; undefined if there is none or it is not JSON. */
export function readCache(file: string, parse: (text: string) => unknown = JSON.parse): unknown {
  try {
    return parse(readRegularText(file));
  } catch {
    // There is no file, or a crash cut it short. The value is computed again.
    return undefined;
  }
}

/** Writes a value as JSON. */
export function writeCache(file: string, value: unknown): void {
  keepFile(file, JSON.stringify(value));
}

/**
 * Writes a complete file, and creates its folder if that is missing. The content is written to a
 * temporary file first, next to the file or next to `by`.
 */
export function keepFile(file: string, content: string | Uint8Array, { by = file } = {}): void {
  Deno.mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const fresh = `${by}.${crypto.randomUUID()}.tmp`;
  try {
    Deno.writeFileSync(fresh, bytes, { createNew: true, mode: 0o600 });
    Deno.renameSync(fresh, file);
  } catch (error) {
    // If the disk is full, the temporary file would stay.
    drop(fresh);
    throw error;
  }
}

/** Removes a file, if that is possible. */
export function drop(file: string): void {
  try {
    Deno.removeSync(file);
  } catch {
    // It was never written, or another process removed it.
  }
}

/** Removes all but the newest files whose names differ from that of `like` only in the hash. */
export function pruneCache(
  folder: string,
  { like, most }: { readonly like: string; readonly most: number },
): void {
  const start = basename(like).slice(0, -HASH_END);
  const files = namesInFolder(folder)
    .filter((name) => name.startsWith(start) && name.length === start.length + HASH_END)
    .map((name) => join(folder, name));
  if (files.length <= most) return;
  const dated = files.map((file) => ({ file, at: Number(infoAt(file)?.mtime ?? 0) }));
  dated.sort((one, other) => other.at - one.at);
  for (const { file } of dated.slice(most)) drop(file);
}
