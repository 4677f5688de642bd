/**
 * Where a path lies.
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
