/**
 * Reads and writes files of the user. Reads no file outside a given folder. Writes a file either
 * completely or not at all.
 *
 * @module
 */

import { basename, join } from "node:path";
import { pathExists } from "../config/workspace.ts";
import { sha256 } from "../core/hash.ts";
import { isInside } from "../io/path_info.ts";
import { privateFolder, readPlain, unchangedFileError, writeWhole } from "../io/private_files.ts";

export {
  unchangedFileError as fileNotChanged,
  uneditableError as uneditable,
} from "../io/private_files.ts";

/** A text file with the content that was read. */
export interface TextFile {
  /** The real path, without links. */
  readonly path: string;
  readonly text: string;
  readonly mode: number;
}

/**
 * Reads a file of a folder; undefined if the file does not exist. `folder` must be a real path. Throws
 * if the real path of the file is not in the folder.
 */
export async function readInside(folder: string, name: string): Promise<TextFile | undefined> {
  const joinedPath = join(folder, name);
  if (!pathExists(joinedPath)) return undefined;
  try {
    const path = await Deno.realPath(joinedPath);
    if (!isInside(folder, path)) {
      throw unchangedFileError(joinedPath, "it is a link to a place outside its folder");
    }
    const plain = readPlain(path);
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return plain && { path, text: text.decode(plain.bytes), mode: plain.mode };
  } catch (error) {
    throw unchangedFileError(joinedPath, error);
  }
}

/** The new content of a file. */
export interface FileContent {
  readonly text: string;
  readonly mode: number;
  /**
   * The text that the file must have when it is replaced. By default, the file must not exist yet.
   */
  readonly expectedText?: string;
}

/** Writes a whole file. Throws if the file on disk differs from `expectedText`. */
export async function writeFile(
  path: string,
  { text, mode, expectedText }: FileContent,
): Promise<void> {
  const bytesOf = (text: string) => new TextEncoder().encode(text);
  const before = expectedText === undefined ? "nothing" : bytesOf(expectedText);
  try {
    await writeWhole(path, { bytes: bytesOf(text), mode, expected: before });
  } catch (error) {
    throw unchangedFileError(path, error);
  }
}

/** The name of a copy in the folder of copies begins with this part of the hash of its path. */
export const BACKUP_HASH_CHARS = 16;

/**
 * Stores a private copy of a file, and returns the path of the copy. The first copy is next to the
 * file, where the user finds it, unless it contains a key. All others are in the folder `elsewhere`.
 */
export async function backUp(
  { path, text }: TextFile,
  { elsewhere, hasKey }: { readonly elsewhere: string; readonly hasKey: boolean },
): Promise<string> {
  const first = `${path}.backup`;
  if (!hasKey && !pathExists(first)) {
    await writeFile(first, { text, mode: 0o600 });
    return first;
  }
  privateFolder(elsewhere);
  const prefix = join(elsewhere, `${sha256(path).slice(0, BACKUP_HASH_CHARS)}-${basename(path)}`);
  const name = (number: number) => `${prefix}.backup${number === 0 ? "" : `.${number}`}`;
  let number = 0;
  while (pathExists(name(number))) number++;
  await writeFile(name(number), { text, mode: 0o600 });
  return name(number);
}

/** Above this many comparisons of lines, a difference is one block. */
const COMPARISONS_MAX = 1_000_000;

/**
 * Returns the removed lines of a text after "- ", and the lines that replace them after "+ ". A line
 * that gets another parent counts as removed and added: a rule that moves to another list is shown.
 */
export function diffLines(before: string, after: string): readonly string[] {
  const [oldLines, newLines] = [before.split("\n"), after.split("\n")];
  const [old, now, start] = differingParts(withParents(oldLines), withParents(newLines));
  const isLarge = old.length * now.length > COMPARISONS_MAX;
  const common = isLarge ? [] : commonLines(old, now);
  const lines: string[] = [];
  let [i, j] = [0, 0];
  for (const [nextOld, nextNow] of [...common, [old.length, now.length] as const]) {
    lines.push(...oldLines.slice(start + i, start + nextOld).map((line) => `- ${line}`));
    lines.push(...newLines.slice(start + j, start + nextNow).map((line) => `+ ${line}`));
    [i, j] = [nextOld + 1, nextNow + 1];
  }
  return lines;
}

/** Returns each line after its parents: the lines before it that are indented less. */
function withParents(lines: readonly string[]): string[] {
  const parents: { readonly depth: number; readonly path: string }[] = [];
  return lines.map((line) => {
    const text = line.trimStart();
    if (text === "" || text.startsWith("#")) return line;
    // YAML allows the items of a list at the indentation of its key.
    const depth = 2 * (line.length - text.length) + (text.startsWith("- ") ? 1 : 0);
    while (depth <= (parents.at(-1)?.depth ?? -1)) parents.pop();
    const path = `${parents.at(-1)?.path ?? ""}\n${line}`;
    // guard: shown-move
    parents.push({ depth, path });
    return path;
  });
}

/** Returns the places, in both lists, of the longest sequence of lines that both contain. */
function commonLines(
  old: readonly string[],
  now: readonly string[],
): readonly (readonly [old: number, now: number])[] {
  // The length of the longest common sequence from each place on.
  const lengths = Array.from({ length: old.length + 1 }, () => new Uint32Array(now.length + 1));
  const lengthAt = (i: number, j: number) => lengths[i]?.[j] ?? 0;
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      const row = lengths[i];
      if (row === undefined) continue;
      row[j] = old[i] === now[j]
        ? lengthAt(i + 1, j + 1) + 1
        : Math.max(lengthAt(i + 1, j), lengthAt(i, j + 1));
    }
  }
  const places: (readonly [number, number])[] = [];
  for (let [i, j] = [0, 0]; i < old.length && j < now.length;) {
    if (old[i] === now[j]) places.push([i++, j++]);
    else if (lengthAt(i + 1, j) >= lengthAt(i, j + 1)) i++;
    else j++;
  }
  return places;
}

/**
 * Returns the part between the common beginning and the common end of two lists or texts, and where
 * it starts.
 */
export function differingParts<T extends string | string[]>(
  before: T,
  after: T,
): readonly [before: T, after: T, start: number] {
  let same = 0;
  while (same < before.length && before[same] === after[same]) same++;
  let end = 0;
  const most = Math.min(before.length, after.length) - same;
  while (end < most && before.at(-1 - end) === after.at(-1 - end)) end++;
  const between = (all: T) => all.slice(same, all.length - end) as T; // `slice` keeps the type
  return [between(before), between(after), same];
}
