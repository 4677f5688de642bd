/**
 * Reads and writes files of the user. A file is read inside one folder only, and is written as a
 * whole or not at all.
 *
 * @module
 */

import { basename, join } from "node:path";
import { pathExists } from "../config/workspace.ts";
import { sha256 } from "../core/hash.ts";
import { isInside } from "../io/place.ts";
import { fileNotChanged, privateFolder, readPlain, writeWhole } from "../io/private_files.ts";

export { fileNotChanged, uneditable } from "../io/private_files.ts";

/** A text file as it was read. */
export interface TextFile {
  /** The real path, without links. */
  readonly path: string;
  readonly text: string;
  readonly mode: number;
}

/**
 * Reads a file of a folder. `folder` must be a real path. Throws if the file's real path is not in
 * the folder.
 */
export async function readInside(folder: string, name: string): Promise<TextFile | undefined> {
  const named = join(folder, name);
  if (!pathExists(named)) return undefined;
  try {
    const path = await Deno.realPath(named);
    if (!isInside(folder, path)) {
      throw fileNotChanged(named, "it is a link to a place outside its folder");
    }
    const plain = readPlain(path);
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return plain && { path, text: text.decode(plain.bytes), mode: plain.mode };
  } catch (error) {
    throw fileNotChanged(named, error);
  }
}

/** The new content of a file. */
export interface FileContent {
  readonly text: string;
  readonly mode: number;
  /**
   * The text that the file must still have when it is written. Without it there must be no file
   * yet.
   */
  readonly over?: string;
}

/** Writes a whole file. Throws if the file on disk is not the one that was looked at. */
export async function place(path: string, { text, mode, over }: FileContent): Promise<void> {
  const bytesOf = (text: string) => new TextEncoder().encode(text);
  const before = over === undefined ? "nothing" : bytesOf(over);
  try {
    await writeWhole(path, { bytes: bytesOf(text), mode, over: before });
  } catch (error) {
    throw fileNotChanged(path, error);
  }
}

/**
 * Stores a private copy of a file, and returns its path. The first copy is next to the file, where
 * its user finds it, unless it contains a key. All others are in the folder `elsewhere`.
 */
export async function backUp(
  { path, text }: TextFile,
  { elsewhere, hasKey }: { readonly elsewhere: string; readonly hasKey: boolean },
): Promise<string> {
  const first = `${path}.backup`;
  if (!hasKey && !pathExists(first)) {
    await place(first, { text, mode: 0o600 });
    return first;
  }
  privateFolder(elsewhere);
  const own = join(elsewhere, `${sha256(path).slice(0, 16)}-${basename(path)}`);
  const name = (number: number) => `${own}.backup${number === 0 ? "" : `.${number}`}`;
  let number = 0;
  while (pathExists(name(number))) number++;
  await place(name(number), { text, mode: 0o600 });
  return name(number);
}

/** Returns the lines that are removed, and those that replace them. */
export function changed(before: string, after: string): readonly string[] {
  const [old, now] = unlike(before.split("\n"), after.split("\n"));
  return [...old.map((line) => `- ${line}`), ...now.map((line) => `+ ${line}`)];
}

/** Returns the part between the common beginning and the common end of two lists or texts. */
export function unlike<T extends string | string[]>(
  before: T,
  after: T,
): readonly [before: T, after: T] {
  let same = 0;
  while (same < before.length && before[same] === after[same]) same++;
  let end = 0;
  const most = Math.min(before.length, after.length) - same;
  while (end < most && before.at(-1 - end) === after.at(-1 - end)) end++;
  const between = (all: T) => all.slice(same, all.length - end) as T; // a part is of the same kind
  return [between(before), between(after)];
}
