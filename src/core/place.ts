/**
 * Where a path lies, and whether what is there is still the same.
 *
 * @module
 */

import { isAbsolute, relative } from "node:path";

/** Tells whether a path is a folder or lies in it, by its names; one may begin with two dots. */
export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way.split(/[\\/]/)[0] !== ".." && !isAbsolute(way);
}

/** Gives the real path of what is there; undefined where nothing is, or nothing that can be seen. */
export function realPathIfAny(path: string): string | undefined {
  try {
    return Deno.realPathSync(path);
  } catch {
    return undefined;
  }
}

/** Tells a file from what it becomes when somebody writes it or puts another in its place. */
export function stampOf({ dev, ino, size, mtime, ctime }: Deno.FileInfo): string {
  return [dev, ino, size, Number(mtime), Number(ctime)].join(" ");
}

/** Gives the stamp of what a path names, a link itself; undefined where nothing can be seen. */
export function stampAt(path: string): string | undefined {
  try {
    return stampOf(Deno.lstatSync(path));
  } catch {
    return undefined;
  }
}
