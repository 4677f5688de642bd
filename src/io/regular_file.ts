/**
 * Reads files that other users or programs may have written: only regular files, up to a limit of
 * bytes.
 *
 * @module
 */

import { messageOf, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";

/** The options to open a regular file. */
export interface OpenFileOptions extends Deno.OpenOptions {
  /** Whether a link is followed. Otherwise it is refused. */
  readonly links?: boolean;
}

/** The options of `readRegular`. */
export interface ReadFileOptions extends Pick<OpenFileOptions, "links"> {
  /** The maximum number of bytes that it may have; by default 64 MB. */
  readonly most?: number;
}

/** A file that was read. */
export interface Regular {
  /** The whole content. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The file info of the open file. */
  readonly info: Deno.FileInfo;
}

const MOST_BYTES = 64 << 20;
/** The maximum size of a piece of `piecesOf()`, in bytes. */
const PIECE_BYTES = 1 << 20;

/**
 * Opens a regular file. The path is checked first, because opening a pipe would wait. Then the open
 * file is compared with the file at the path, because Deno ignores `O_NOFOLLOW`.
 */
export function openRegular(
  path: string,
  { links = false, ...options }: OpenFileOptions,
): Deno.FsFile {
  const stat = () => links ? Deno.statSync(path) : Deno.lstatSync(path);
  // guard: plain-before
  if (statBefore(stat, options)?.isFile === false) {
    throw fileError(path, "it is not a regular file");
  }
  using stack = new DisposableStack();
  const file = stack.use(Deno.openSync(path, options));
  const [opened, atPath] = [file.statSync(), stat()];
  // guard: plain-after
  if (!atPath.isFile || opened.dev !== atPath.dev || opened.ino !== atPath.ino) {
    throw fileError(path, "it is a link, or was replaced while it was opened");
  }
  stack.move();
  return file;
}

/**
 * Reads a whole regular file. Refuses devices, pipes and folders.
 *
 * @throws {PmlError} CONFIG_INVALID if it is not a regular file, is a link although `links` is not
 * set, or has more than `most` bytes.
 * @throws {Deno.errors.NotFound} If there is no such file. Other errors of the system are thrown, too.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { readRegular } from "@casys/pml/registry";
 *
 * const path = await Deno.makeTempFile();
 * await Deno.writeTextFile(path, "four");
 * assert.equal(readRegular(path).bytes.length, 4);
 * assert.throws(() => readRegular(path, { most: 3 }), { code: "CONFIG_INVALID" });
 * await Deno.remove(path);
 * ```
 */
export function readRegular(
  path: string,
  { most = MOST_BYTES, links }: ReadFileOptions = {},
): Regular {
  using file = openRegular(path, { read: true, links });
  const info = file.statSync();
  const assertFits = (size: number) => {
    // guard: plain-size
    if (size > most) {
      throw fileError(path, `it has ${size} bytes, and at most ${most} are allowed`);
    }
  };
  assertFits(info.size);
  // Kernel files report a size of 0. Some never end, or block their reader, so nothing is read.
  if (info.size === 0) return { bytes: new Uint8Array(), info };
  let bytes = new Uint8Array(info.size + 1);
  let length = 0;
  for (let read = file.readSync(bytes); read !== null;) {
    length += read;
    // The file may have grown, so the bytes that were read are counted.
    assertFits(length);
    if (length === bytes.length) bytes = new Uint8Array(bytes.buffer.transfer(2 * length));
    read = file.readSync(bytes.subarray(length));
  }
  return { bytes: bytes.subarray(0, length), info };
}

/** Reads the text of a regular file. Invalid UTF-8 is replaced. */
export function readRegularText(path: string, reading?: ReadFileOptions): string {
  return new TextDecoder().decode(readRegular(path, reading).bytes);
}

/** Reads the text of a regular file; undefined if it cannot be read. */
export function textIfAny(path: string): string | undefined {
  try {
    return readRegularText(path);
  } catch {
    return undefined;
  }
}

/** Yields the bytes of a regular file in pieces, for a file that may not fit into memory. */
export async function* piecesOf(path: string): AsyncGenerator<Uint8Array> {
  using file = openRegular(path, { read: true });
  let remaining = file.statSync().size;
  const memory = new Uint8Array(Math.min(remaining, PIECE_BYTES));
  while (remaining > 0) {
    const read = await file.read(memory.subarray(0, remaining));
    if (read === null) return;
    remaining -= read;
    yield memory.subarray(0, read);
  }
}

/** Returns why a file was not read, without its path, for a message that names it. */
export function whyUnread(error: unknown): string {
  if (error instanceof Deno.errors.NotFound) return "there is no such file";
  return messageOf(error).replace(/^Cannot use ".*?": /, "");
}

function statBefore(
  look: () => Deno.FileInfo,
  { create }: Deno.OpenOptions,
): Deno.FileInfo | undefined {
  try {
    return look();
  } catch (error) {
    if (create && error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

const HINT = "Check it, and remove it if you did not create it";

/** Returns the error for a file that cannot be used. */
export function fileError(path: string, why: string, hint = HINT): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot use ${quoted(path, 400)}: ${why}`, { hint });
}
