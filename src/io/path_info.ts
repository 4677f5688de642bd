/**
 * Finds where a path leads, and whether a file is still the same.
 *
 * @module
 */

import { basename, dirname, isAbsolute, join, posix, resolve, sep, win32 } from "node:path";
import { type PathRules, PATHS, POSIX } from "../core/paths.ts";

/**
 * Returns whether a path is a folder or in it, by the texts of both only. A name in the folder may
 * begin with two dots.
 */
export function isInside(folder: string, path: string, rules: PathRules = PATHS): boolean {
  const { isAbsolute, relative, resolve } = rules === POSIX ? posix : win32;
  const relativePath = relative(folder, path);
  if (relativePath.split(/[\\/]/)[0] === ".." || isAbsolute(relativePath)) return false;
  if (rules === POSIX) return true;
  // On Windows, `relative` treats some letters as equal that differ on the disk.
  const namesOf = (each: string) => rules.fold(resolve(each)).split(/[\\/]/).filter(Boolean);
  const names = namesOf(path);
  return namesOf(folder).every((name, index) => name === names[index]);
}

/** Returns the real path of a file; undefined if it does not exist or cannot be seen. */
export function realPathIfAny(path: string): string | undefined {
  try {
    return Deno.realPathSync(path);
  } catch {
    return undefined;
  }
}

/** Returns the real path of the existing part of a path, with the rest as written. */
export function realPathOf(path: string): string {
  const absolute = resolve(path);
  const folder = dirname(absolute);
  return realPathIfAny(absolute) ??
    (folder === absolute ? absolute : join(realPathOf(folder), basename(absolute)));
}

/** Returns whether an error means that a path does not exist. */
export function isGone(error: unknown): boolean {
  // Windows has another error for names that no file can have there, such as `a?b`.
  return error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory ||
    Object(error).code === "ENOENT";
}

/** Returns a text that changes when a file is written or replaced. */
export function stampOf({ dev, ino, size, mtime, ctime }: Deno.FileInfo): string {
  return [dev, ino, size, Number(mtime), Number(ctime)].join(" ");
}

/** Returns the info of a path, or of the link there; undefined if nothing can be seen there. */
export function infoAt(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(path);
  } catch {
    return undefined;
  }
}

/** Returns the info of a path after following links; undefined if nothing can be seen there. */
export function infoAfterLinks(path: string | URL): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch {
    return undefined;
  }
}

/** Returns the names in a folder, in any order. */
export function namesInFolder(folder: string): readonly string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name);
}

/** Returns the stamp of a path, or of the link there; undefined if nothing can be seen there. */
export function stampAt(path: string): string | undefined {
  const info = infoAt(path);
  return info && stampOf(info);
}

/** The maximum number of links on one path. The system does not follow more, either. */
const MOST_LINKS = 40;

/**
 * Returns whether a path leads into a folder if all links are followed. The folder is a real path.
 * No file outside of it is accessed.
 */
export function staysInside(folder: string, path: string): boolean {
  // For the most frequent path, one system call is enough.
  if (path === folder) return linkAt(folder) === undefined;
  const prefix = folder.endsWith(sep) ? folder : `${folder}${sep}`;
  let current = folder;
  let links = 0;
  const names = [path];
  for (let name = names.shift(); name !== undefined; name = names.shift()) {
    if (isAbsolute(name)) {
      // Compared as text, because `isInside` resolves `..`, which leads elsewhere after a link.
      // guard: stays-inside-links
      if (!`${name}${sep}`.startsWith(prefix)) return false;
      current = folder;
      name = name.slice(prefix.length);
    }
    const [first = "", ...rest] = name.split(/[\\/]/);
    if (rest.length > 0) names.unshift(rest.join(sep));
    current = first === ".." ? dirname(current) : join(current, first);
    // guard: stays-inside
    if (!isInside(folder, current)) return false;
    const target = linkAt(current);
    if (target === undefined) continue;
    if (++links > MOST_LINKS) return false;
    names.unshift(target);
    current = dirname(current);
  }
  return true;
}

function linkAt(path: string): string | undefined {
  try {
    return infoAt(path)?.isSymlink ? Deno.readLinkSync(path) : undefined;
  } catch {
    return undefined; // it was removed meanwhile
  }
}
