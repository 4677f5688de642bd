/**
 * Puts whole files in place of others.
 *
 * @module
 */

import { absent, fail, NO_FOLDER, tried } from "./failure.ts";
import { regular } from "./reading.ts";

interface Target {
  readonly path: string;
  readonly exists: boolean;
  readonly mode?: number;
}

/** Finds the file that a write replaces: where the path is a link, the file behind it. */
export async function target(what: string, path: string): Promise<Target> {
  const stat = await tried(what, Deno.lstat(path).catch(absent));
  if (stat === undefined) return { path, exists: false };
  const reasons = { NotFound: "it is a link to nothing" };
  const real = stat.isSymlink ? await tried(what, Deno.realPath(path), reasons) : path;
  const { mode } = await regular(what, real);
  // Putting another file in its place would not ask for the right to write it.
  if (mode !== null && (mode & 0o222) === 0) throw fail(what, "it is read-only");
  return { path: real, exists: true, mode: mode === null ? undefined : mode & 0o777 };
}

/** Writes a new file beside the old one, then puts it in its place; gives the number of bytes. */
export async function replace(what: string, { path, mode }: Target, content: string) {
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

/** Lets calls that change one file pass one at a time: each edit sees the one before. */
export async function alone<T>(path: string, work: () => Promise<T>): Promise<T> {
  const turn = (TURNS.get(path) ?? Promise.resolve()).then(work, work);
  TURNS.set(path, turn);
  try {
    return await turn;
  } finally {
    if (TURNS.get(path) === turn) TURNS.delete(path);
  }
}
