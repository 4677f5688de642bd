/**
 * Compares the files of a folder with their earlier state: by content, which is certain, or by
 * metadata, which is fast.
 *
 * @module
 */

import { join } from "node:path";
import { sha256Pieces } from "../core/hash.ts";
import { piecesOf } from "./regular_file.ts";
import { yieldTurn } from "./waiting.ts";

/** The name of the record next to the files, which is not compared. */
export const RECORD = "pml-installed.json";

/** Data files that servers write next to their code. Nothing loads them as code. */
const DATA = /\.(?:jsonl|log|db|sqlite3?)(?:-(?:wal|shm|journal))?$/i;
/** Files of npm that contain the folder's name, which differs between installations. */
const NPM_LOCKS = /^(?:node_modules[\\/]\.)?package-lock\.json$/;
/** The number of files after which other work gets a turn. */
const FILES_PER_TURN = 200;

interface File {
  readonly path: string;
  readonly entry: Deno.DirEntry;
}

/** Returns the hash of a file, read in pieces: it may not fit into memory. */
export async function fileHash(path: string): Promise<string> {
  const hash = sha256Pieces();
  for await (const piece of piecesOf(path)) hash.update(piece);
  return hash.digest("hex");
}

/** Returns the hash of the names and contents of all files below a folder. */
export async function treeHash(folder: string): Promise<string> {
  const hash = sha256Pieces();
  for (const { path, entry } of filesOf(folder)) {
    const content = entry.isSymlink
      ? await Deno.readLink(join(folder, path))
      : await fileHash(join(folder, path));
    hash.update(`${JSON.stringify(path)} ${content}\n`);
  }
  return hash.digest("hex");
}

/** Returns a hash of the sizes, times and inodes of all files below a folder. It is fast. */
export async function treeStamp(folder: string): Promise<string> {
  const hash = sha256Pieces();
  let count = 0;
  for (const { path } of filesOf(folder)) {
    // Awaiting each file would take four times as long.
    const { size, mtime, ctime, ino } = Deno.lstatSync(join(folder, path));
    hash.update(`${JSON.stringify([path, size, mtime?.getTime(), ctime?.getTime(), ino])}\n`);
    if (++count % FILES_PER_TURN === 0) await yieldTurn();
  }
  return hash.digest("hex");
}

/** Returns the files that were created or changed after a time. */
export function changedSince(folder: string, time: Date): readonly string[] {
  return [...filesOf(folder)].map(({ path }) => path).filter((path) => {
    // Deno returns ctime in whole seconds only, and the writer of a file can set mtime.
    const { ctime, mtime } = Deno.lstatSync(join(folder, path));
    return [ctime, mtime].some((changed) => (changed ?? time) > time);
  });
}

/** Copies a folder to a path that does not exist. */
export function copyTree(from: string, to: string): void {
  Deno.mkdirSync(to, { mode: 0o700 });
  for (const { name, isDirectory, isSymlink } of Deno.readDirSync(from)) {
    const [source, target] = [join(from, name), join(to, name)];
    if (isDirectory) copyTree(source, target);
    else if (isSymlink) Deno.symlinkSync(Deno.readLinkSync(source), target);
    else Deno.copyFileSync(source, target);
  }
}

/** Yields the files below a part of a folder, with their paths in the folder. */
function* filesOf(folder: string, part = ""): Generator<File> {
  const entries = [...Deno.readDirSync(join(folder, part))];
  entries.sort((one, other) => one.name < other.name ? -1 : 1);
  for (const entry of entries) {
    const path = join(part, entry.name);
    if (entry.isDirectory) yield* filesOf(folder, path);
    else if (path !== RECORD && !DATA.test(path) && !NPM_LOCKS.test(path)) yield { path, entry };
  }
}
