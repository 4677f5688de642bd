/**
 * Reads files with a limited use of memory.
 *
 * @module
 */

import type { Args } from "./call.ts";
import { fail, NOT_TEXT, withAccessCheck, withReason } from "./failure.ts";
import { sizeText } from "./walking.ts";

/** The maximum size of a result, in bytes. */
export const MAX_BYTES = 10 * 1024 * 1024;
const CHUNK = 64 * 1024;
/** The number of bytes in which a NUL byte shows that a file is not text. */
export const PROBE = 8 * 1024;

/** Returns information about a file that `use` will open. Throws if it is not a regular file. */
export async function assertRegularFile(
  what: string,
  path: string,
  use: () => Promise<unknown> = () => Deno.readFile(path),
) {
  // Checked before the file is opened, because opening a pipe waits for its writer.
  const stat = await withReason(what, withAccessCheck(Deno.stat(path), use));
  if (stat.isDirectory) throw fail(what, "it is a folder");
  if (!stat.isFile) throw fail(what, "it is not a regular file");
  return stat;
}

/** Reads a whole file. Throws if it has more than `limit` bytes. */
export async function readBytes(what: string, path: string, limit = MAX_BYTES) {
  const { size } = await assertRegularFile(what, path);
  if (size <= limit) return await withReason(what, Deno.readFile(path));
  throw fail(
    what,
    `it has ${sizeText(size)}, over ${sizeText(limit)}; read_file can read head or tail`,
  );
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

/** Reads the first or the last lines of a file, in chunks from its start or its end. */
export async function readLines(
  what: string,
  file: Deno.FsFile,
  { head, tail = 0 }: Partial<Args>,
) {
  const { size } = await file.stat();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let linesLeft = head ?? tail;
  for (let doneBytes = 0; doneBytes < size && linesLeft > 0; doneBytes += CHUNK) {
    if (doneBytes >= MAX_BYTES) {
      throw fail(what, `these lines have more than ${sizeText(MAX_BYTES)}`);
    }
    const length = Math.min(CHUNK, size - doneBytes);
    const chunk = await readPart(file, {
      at: head ? doneBytes : size - doneBytes - length,
      length,
    });
    // A line break at the end of the file belongs to the last line, so `tail` does not count it.
    let at = head ? -1 : length - Number(doneBytes === 0);
    do {
      at = head ? chunk.indexOf(10, at + 1) : at > 0 ? chunk.lastIndexOf(10, at - 1) : -1;
      if (at >= 0) linesLeft--;
    } while (at >= 0 && linesLeft > 0);
    if (!head) parts.unshift(chunk.subarray(at + 1));
    else parts.push(at < 0 ? chunk : chunk.subarray(0, at + 1));
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** Reads `length` bytes of a file from the offset `at` on; fewer if the file ends before. */
export async function readPart(
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
