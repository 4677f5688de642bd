/**
 * Replaces whole files.
 *
 * @module
 */

import { fail, ignoreMissing, NO_FOLDER, withReason } from "./failure.ts";
import { assertRegularFile } from "./reading.ts";

/** The file that a write replaces or creates. */
interface WriteTarget {
  readonly path: string;
  readonly exists: boolean;
  readonly mode?: number;
}

/** Finds the file that a write replaces; for a link, its target. */
export async function findTarget(what: string, path: string): Promise<WriteTarget> {
  const stat = await withReason(what, Deno.lstat(path).catch(ignoreMissing));
  if (stat === undefined) return { path, exists: false };
  const reasons = { NotFound: "it is a link to nothing" };
  const real = stat.isSymlink ? await withReason(what, Deno.realPath(path), reasons) : path;
  const { mode } = await assertRegularFile(what, real);
  // Replacing a file needs no permission to write it, so the permission is checked here.
  if (mode !== null && (mode & 0o222) === 0) throw fail(what, "it is read-only");
  return { path: real, exists: true, mode: mode === null ? undefined : mode & 0o777 };
}

/**
 * Writes a new file next to the old one, then renames it over the old one. Returns the number of
 * bytes.
 */
export async function replaceFile(what: string, { path, mode }: WriteTarget, content: string) {
  const nameStart = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1;
  const mark = crypto.randomUUID().slice(0, 8);
  const temp = `${path.slice(0, nameStart)}.${mark}.${path.slice(nameStart, nameStart + 60)}.tmp`;
  const bytes = new TextEncoder().encode(content);
  const reasons = { NotFound: NO_FOLDER };
  try {
    await withReason(what, Deno.writeFile(temp, bytes, { createNew: true, mode }), reasons);
    await withReason(what, Deno.rename(temp, path));
  } catch (error) {
    await Deno.remove(temp).catch(() => {/* it may not exist */});
    throw error;
  }
  return bytes.length;
}

/** The last call that changes each file, by the file's path. */
const TURNS = new Map<string, Promise<unknown>>();

/**
 * Runs calls that change the same file one after the other, so that each call sees the result of the
 * call before.
 */
export async function oneAtATime<T>(path: string, work: () => Promise<T>): Promise<T> {
  const turn = (TURNS.get(path) ?? Promise.resolve()).then(work, work);
  TURNS.set(path, turn);
  try {
    return await turn;
  } finally {
    if (TURNS.get(path) === turn) TURNS.delete(path);
  }
}
