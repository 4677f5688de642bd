/**
 * The texts of paths, by the rules of POSIX or of Windows. On both systems, a path has `/` between its
 * names here. On Windows it begins with a drive in upper case (`C:/src/a.ts`), which the system takes
 * as it is.
 *
 * @module
 */

import type { FileScope } from "./message.ts";

/** What differs between systems. */
export interface PathRules {
  /**
   * Returns a path of the system in the form that is used here. On Windows undefined for a path that
   * is not on a drive: of a network, of a device, or relative to a drive.
   */
  plain(path: string): string | undefined;
  /** Splits a path into its names. On Windows the first one is the drive. */
  namesOf(path: string): string[];
  /** Returns the absolute path with these names. */
  joined(names: readonly string[]): string;
  /** Resolves a plain path against a folder by its text alone. */
  resolve(folder: string, path: string): string;
  /**
   * Returns a path in the spelling of the folder that it is in. On Windows names are the same in any
   * case of the letters A to Z; real paths have the case of the disk.
   */
  respelled(folder: string, path: string): string;
}

/** The rules of Linux and macOS. */
export const POSIX: PathRules = {
  plain: (path) => path,
  namesOf: (path) => path.split("/").filter(Boolean),
  joined: (names) => `/${names.join("/")}`,
  resolve: (folder, path) =>
    POSIX.joined(walked(path.startsWith("/") ? [] : POSIX.namesOf(folder), POSIX.namesOf(path))),
  respelled: (_folder, path) => path,
};

/** A path that begins with a drive. */
const ON_DRIVE = /^[A-Za-z]:(?=\/|$)/;

/** The rules of Windows. */
export const WINDOWS: PathRules = {
  plain: (path) => {
    // `file:///C:/src` has the path `/C:/src`.
    const text = path.replaceAll("\\", "/").replace(/^\/\/\?\/(?=[A-Za-z]:)/, "")
      .replace(/^\/(?=[A-Za-z]:(?:\/|$))/, "");
    const isOdd = text.startsWith("//") || /^[A-Za-z]:(?!\/|$)/.test(text);
    return isOdd ? undefined : text.replace(ON_DRIVE, (drive) => drive.toUpperCase());
  },
  namesOf: (path) => path.split("/").filter(Boolean),
  joined: ([drive = "", ...names]) => `${drive}/${names.join("/")}`,
  resolve: (folder, path) => {
    const [drive = "", ...names] = WINDOWS.namesOf(ON_DRIVE.test(path) ? path : folder);
    const isWhole = ON_DRIVE.test(path);
    const from = isWhole || path.startsWith("/") ? [] : names;
    const steps = WINDOWS.namesOf(path).slice(isWhole ? 1 : 0);
    return WINDOWS.joined([drive, ...walked(from, steps)]);
  },
  respelled: (folder, path) => {
    const [own, names] = [WINDOWS.namesOf(folder), WINDOWS.namesOf(path)];
    const isIn = own.every((name, at) => lower(name) === lower(names[at] ?? ""));
    return isIn ? WINDOWS.joined([...own, ...names.slice(own.length)]) : path;
  },
};

/** The rules of this system. */
export const PATHS: PathRules = Deno.build.os === "windows" ? WINDOWS : POSIX;

/** Returns the grants of a module with all their paths in the form that is used here. */
export function plainScope<S extends FileScope>(scope: S): S {
  const { workspace, read, write, home, temp, protection } = scope;
  const plain = (path: string) => PATHS.plain(path) ?? path;
  return {
    ...scope,
    workspace: plain(workspace),
    read: read.map(plain),
    write: write.map(plain),
    home: plain(home),
    temp: temp && plain(temp),
    protection: {
      ...protection,
      paths: protection.paths.map(plain),
      granted: protection.granted.map(plain),
    },
  };
}

function walked(from: readonly string[], steps: readonly string[]): readonly string[] {
  const names = [...from];
  for (const name of steps) {
    if (name === "..") names.pop();
    else if (name !== ".") names.push(name);
  }
  return names;
}

/** Other letters are no reason to take two names for one: the disk may tell them apart. */
function lower(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
