/**
 * Tells whether the files of a folder are still the same: surely, or soon.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { join } from "node:path";

const SKIPPED = "pml-installed.json";

/** Hashes the names and contents of all files below a folder. */
export async function treeHash(folder: string): Promise<string> {
  const hash = createHash("sha256");
  for (const { path, entry } of filesOf(folder)) {
    const content = entry.isSymlink
      ? await Deno.readLink(join(folder, path))
      : createHash("sha256").update(await Deno.readFile(join(folder, path))).digest("hex");
    hash.update(`${JSON.stringify(path)} ${content}\n`);
  }
  return hash.digest("hex");
}

/** Tells soon that nothing was changed since: by sizes, times and places of the files. */
export function treeStamp(folder: string): string {
  const hash = createHash("sha256");
  for (const { path } of filesOf(folder)) {
    const { size, mtime, ctime, ino } = Deno.lstatSync(join(folder, path));
    hash.update(`${JSON.stringify([path, size, mtime?.getTime(), ctime?.getTime(), ino])}\n`);
  }
  return hash.digest("hex");
}

function* filesOf(
  folder: string,
  at = "",
): Generator<{ readonly path: string; readonly entry: Deno.DirEntry }> {
  const entries = [...Deno.readDirSync(join(folder, at))];
  entries.sort((one, other) => one.name < other.name ? -1 : 1);
  for (const entry of entries) {
    const path = join(at, entry.name);
    if (entry.isDirectory) yield* filesOf(folder, path);
    else if (path !== SKIPPED) yield { path, entry };
  }
}
