/**
 * Where a path lies, and whether what is there is still the same.
 *
 * @module
 */

import { dirname, isAbsolute, join, relative, sep } from "node:path";

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

/** More links than that on one way the system does not follow either. */
const MOST_LINKS = 40;

/**
 * Tells whether a path leads to a place in a folder, given by its real path, links followed; what
 * lies outside is not even looked at.
 */
export function staysInside(folder: string, path: string): boolean {
  const prefix = folder.endsWith(sep) ? folder : `${folder}${sep}`;
  let at = folder;
  let links = 0;
  const names = [path];
  for (let name = names.shift(); name !== undefined; name = names.shift()) {
    if (isAbsolute(name)) {
      // By its text: behind a link, two dots lead elsewhere than a look at the text says.
      if (!`${name}${sep}`.startsWith(prefix)) return false;
      at = folder;
      name = name.slice(prefix.length);
    }
    const [first = "", ...rest] = name.split(/[\\/]/);
    if (rest.length > 0) names.unshift(rest.join(sep));
    at = first === ".." ? dirname(at) : join(at, first);
    if (!isInside(folder, at)) return false;
    const target = linkAt(at);
    if (target === undefined) continue;
    if (++links > MOST_LINKS) return false;
    names.unshift(target);
    at = dirname(at);
  }
  return true;
}

function linkAt(path: string): string | undefined {
  try {
    return Deno.lstatSync(path).isSymlink ? Deno.readLinkSync(path) : undefined;
  } catch {
    return undefined; // nothing is there, so nothing leads anywhere
  }
}
