/**
 * The copies of files of the user from before edits of PML, for `pml uninstall`.
 *
 * @module
 */

import { basename, dirname, join } from "node:path";
import type { App } from "../app/app.ts";
import { sha256 } from "../core/hash.ts";
import { listOf, objectOf, textOf } from "../core/json.ts";
import { namesIn, readPlainText } from "../io/private_files.ts";
import { BACKUP_HASH_CHARS, readInside } from "./_files.ts";
import { backupFolder, containsSecret, hashOf, recordPath } from "./_undoable_edits.ts";

/** A copy of a file from before an edit. */
export interface FileCopy {
  readonly path: string;
  /** Whether only the copy has servers, because of a move. Undefined if no record describes it. */
  readonly isMove: boolean | undefined;
  readonly hasKey: boolean;
  readonly bytes: number;
  /** The path of the record of the edits of the file. */
  readonly record?: string;
}

/** Returns the paths of the records of edits, of all workspaces. */
export async function recordPaths(app: App): Promise<readonly string[]> {
  const folder = dirname(recordPath(app, ""));
  return (await namesIn(folder)).map((name) => join(folder, name));
}

/**
 * Returns the copies of files, of all workspaces, whose edits were not undone, and all other files in
 * the folder of copies.
 */
export async function fileCopies(app: App): Promise<readonly FileCopy[]> {
  const copies = new Map<string, FileCopy>();
  for (const record of await recordPaths(app)) {
    const name = basename(record);
    for (const { backup, before, isMove = false } of recordsAt(record)) {
      const path = textOf(backup);
      const isInHome = dirname(path) === backupFolder(app);
      // A copy outside of the PML home is next to its file, and still as PML wrote it. A record with
      // another path is not valid, so that no other file is removed.
      // guard: uninstall-outside
      if (!isInHome && `${sha256(path.replace(/\.backup$/, ""))}.json` !== name) continue;
      // guard: uninstall-other
      if (isInHome && !basename(path).startsWith(`${name.slice(0, BACKUP_HASH_CHARS)}-`)) continue;
      const copy = await readInside(dirname(path), basename(path)).catch(() => undefined);
      if (copy === undefined || hashOf(copy) !== before) continue;
      const isOfMove = copies.get(path)?.isMove === true || isMove !== false;
      copies.set(path, { path, isMove: isOfMove, record, ...contentOf(app, copy.text) });
    }
  }
  // guard: uninstall-unrecorded
  await addUnrecorded(app, copies);
  return [...copies.values()];
}

/** Adds the other files in the folder of copies. Damaged records and earlier versions leave such files. */
async function addUnrecorded(app: App, copies: Map<string, FileCopy>): Promise<void> {
  const folder = backupFolder(app);
  for (const name of await namesIn(folder)) {
    const path = join(folder, name);
    if (copies.has(path)) continue;
    const copy = await readInside(folder, name).catch(() => undefined);
    copies.set(path, { path, isMove: undefined, ...contentOf(app, copy?.text ?? "") });
  }
}

function contentOf(app: App, text: string): Pick<FileCopy, "hasKey" | "bytes"> {
  return { hasKey: containsSecret(app, text), bytes: new TextEncoder().encode(text).length };
}

/** Returns the edits of a record; none if it is damaged. */
export function recordsAt(path: string): readonly Record<string, unknown>[] {
  try {
    return listOf(JSON.parse(readPlainText(path) ?? "[]")).map(objectOf);
  } catch {
    return []; // ignores a damaged record
  }
}
