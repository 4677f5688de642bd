/**
 * Replaces whole files.
 *
 * @module
 */

import { absent, fail, NO_FOLDER, tried } from "./failure.ts";
import { regular } from "./reading.ts";

/** The file that a write replaces or creates. */
interface WriteTarget {
  readonly path: string;
  readonly exists: boolean;
  readonly mode?: number;
}

/** Finds the file that a write replaces. If the path is a link, it is the link's target. */
export async function target(what: string, path: string): Promise<WriteTarget> {
  const stat = await tried(what, Deno.lstat(path).catch(absent));
  if (stat === undefined) return { path, exists: false };
  const reasons = { NotFound: "it is a link to nothing" };
  const real = stat.isSymlink ? await tried(what, Deno.realPath(path), reasons) : path;
  const { mode } = await regular(what, real);
  // Replacing the file would not need the right to write it, so that is checked here.
  if (mode !== null && (mode & 0o222) === 0) throw fail(what, "it is read-only");
  return { path: real, exists: true, mode: mode === null ? undefined : mode & 0o777 };
}

/**
 * Writes a new file next to the old one, then renames it over the old one. Returns the number of
 * bytes.
 */
export async function replace(what: string, { path, mode }: WriteTarget, content: string) {
  const cut = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1;
  const mark = crypto.randomUUID().slice(0, 8);
  const temp = `${path.slice(0, cut)}.${mark}.${path.slice(cut, cut + 60)}.tmp`;
  const bytes = new TextEncoder().encode(content);
  const reasons = { NotFound: NO_FOLDER };
  try {
    await tried(what, Deno.writeFile(temp, bytes, { createNew: true, mode }), reasons);
    await tried(what, Deno.rename(temp, path));
  } catch (error) {
    await Deno.remove(temp).catch(() => {/* it may never have come to be */});
    throw error;
  }
  return bytes.length;
}

const TURNS = new Map<string, Promise<unknown>>();

/**
 * Runs calls that change the same file one after the other, so that each sees the result of the one
 * before.
 */
export async function alone<T>(path: string, work: () => Promise<T>): Promise<T> {
  const turn = (TURNS.get(path) ?? Promise.resolve()).then(work, work);
  TURNS.set(path, turn);
  try {
    return await turn;
  } finally {
    if (TURNS.get(path) === turn) TURNS.delete(path);
  }
}
