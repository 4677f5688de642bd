/**
 * Tells whether the files of a folder are still the same: surely, or soon.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { piecesOf } from "./regular_file.ts";
import { turn } from "./waiting.ts";

/** The record beside the files, which is none of them. */
export const RECORD = "pml-installed.json";

/** What servers keep beside their own code: data that nothing loads as code. */
const DATA = /\.(?:jsonl|log|db|sqlite3?)(?:-(?:wal|shm|journal))?$/i;
/** What npm notes for itself, with the name of the folder that it worked in, which is another each time. */
const NOTES = /^(?:node_modules[\\/]\.)?package-lock\.json$/;
/** After how many files a look lets others have their turn. */
const TURN = 200;

interface File {
  readonly path: string;
  readonly entry: Deno.DirEntry;
}

/** Hashes a file piece by piece: it may be larger than what fits into memory. */
export async function fileHash(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of piecesOf(path)) hash.update(piece);
  return hash.digest("hex");
}

/** Hashes the names and contents of all files below a folder. */
export async function treeHash(folder: string): Promise<string> {
  const hash = createHash("sha256");
  for (const { path, entry } of filesOf(folder)) {
    const content = entry.isSymlink
      ? await Deno.readLink(join(folder, path))
      : await fileHash(join(folder, path));
    hash.update(`${JSON.stringify(path)} ${content}\n`);
  }
  return hash.digest("hex");
}

/** Tells soon that nothing was changed since: by sizes, times and places of the files. */
export async function treeStamp(folder: string): Promise<string> {
  const hash = createHash("sha256");
  let seen = 0;
  for (const { path } of filesOf(folder)) {
    // One by one and awaited it would take four times as long.
    const { size, mtime, ctime, ino } = Deno.lstatSync(join(folder, path));
    hash.update(`${JSON.stringify([path, size, mtime?.getTime(), ctime?.getTime(), ino])}\n`);
    if (++seen % TURN === 0) await turn();
  }
  return hash.digest("hex");
}

/** Names the files that came or changed after a time. */
export function changedSince(folder: string, time: Date): readonly string[] {
  return [...filesOf(folder)].map(({ path }) => path).filter((path) => {
    // Deno knows the one in whole seconds only; whoever wrote the file may have set the other.
    const { ctime, mtime } = Deno.lstatSync(join(folder, path));
    return [ctime, mtime].some((at) => (at ?? time) > time);
  });
}

/** Copies all that is in a folder to where nothing is. */
export function copyTree(from: string, to: string): void {
  Deno.mkdirSync(to, { mode: 0o700 });
  for (const { name, isDirectory, isSymlink } of Deno.readDirSync(from)) {
    const [one, other] = [join(from, name), join(to, name)];
    if (isDirectory) copyTree(one, other);
    else if (isSymlink) Deno.symlinkSync(Deno.readLinkSync(one), other);
    else Deno.copyFileSync(one, other);
  }
}

function* filesOf(folder: string, at = ""): Generator<File> {
  const entries = [...Deno.readDirSync(join(folder, at))];
  entries.sort((one, other) => one.name < other.name ? -1 : 1);
  for (const entry of entries) {
    const path = join(at, entry.name);
    if (entry.isDirectory) yield* filesOf(folder, path);
    else if (path !== RECORD && !DATA.test(path) && !NOTES.test(path)) yield { path, entry };
  }
}
