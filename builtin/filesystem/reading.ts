/**
 * Reads files with a limited use of memory.
 *
 * @module
 */

import type { Args } from "./call.ts";
import { fail, NOT_TEXT, tried } from "./failure.ts";
import { sized } from "./walking.ts";

export const MAX_BYTES = 10 * 1024 * 1024;
const CHUNK = 64 * 1024;
export const PROBE = 8 * 1024;

/** Returns information about a file. Throws if it is not a regular file. */
export async function regular(what: string, path: string) {
  // Checked before the file is opened, because opening a pipe waits for its writer.
  const stat = await tried(what, Deno.stat(path));
  if (stat.isDirectory) throw fail(what, "it is a folder");
  if (!stat.isFile) throw fail(what, "it is not a regular file");
  return stat;
}

/** Reads a whole file. Throws if it has more than `limit` bytes. */
export async function readBytes(what: string, path: string, limit = MAX_BYTES) {
  const { size } = await regular(what, path);
  if (size <= limit) return await tried(what, Deno.readFile(path));
  throw fail(what, `it has ${sized(size)}, over ${sized(limit)}; read_file can read head or tail`);
}

/** Reads a whole text file. Throws if it is not UTF-8 or too large. */
export async function readText(what: string, path: string, limit = MAX_BYTES) {
  return decode(what, await readBytes(what, path, limit));
}

/** Decodes UTF-8. Throws if the bytes are not text. */
export function decode(what: string, bytes: Uint8Array): string {
  if (bytes.subarray(0, PROBE).includes(0)) throw fail(what, NOT_TEXT);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw fail(what, NOT_TEXT, cause);
  }
}

/** Reads the first or the last lines, chunk by chunk from that end. */
export async function edge(what: string, file: Deno.FsFile, { head, tail = 0 }: Partial<Args>) {
  const { size } = await file.stat();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let left = head ?? tail;
  for (let done = 0; done < size && left > 0; done += CHUNK) {
    if (done >= MAX_BYTES) throw fail(what, `these lines have more than ${sized(MAX_BYTES)}`);
    const length = Math.min(CHUNK, size - done);
    const chunk = await slice(file, { at: head ? done : size - done - length, length });
    // A line break at the end of the file belongs to the last line, so `tail` does not count it.
    let at = head ? -1 : length - Number(done === 0);
    do {
      at = head ? chunk.indexOf(10, at + 1) : at > 0 ? chunk.lastIndexOf(10, at - 1) : -1;
      if (at >= 0) left--;
    } while (at >= 0 && left > 0);
    if (!head) parts.unshift(chunk.subarray(at + 1));
    else parts.push(at < 0 ? chunk : chunk.subarray(0, at + 1));
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** Reads a part of a file; less if the file ends before. */
export async function slice(
  file: Deno.FsFile,
  part: { readonly at: number; readonly length: number },
) {
  const bytes = new Uint8Array(part.length);
  await file.seek(part.at, 0);
  let filled = 0;
  while (filled < part.length) {
    const count = await file.read(bytes.subarray(filled));
    if (count === null) break;
    filled += count;
  }
  return bytes.subarray(0, filled);
}
