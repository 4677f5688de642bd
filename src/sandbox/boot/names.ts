/**
 * File names: which spellings can mean the same file, and which names are protected.
 *
 * @module
 */

import { PATHS } from "../../core/paths.ts";
import type { FileScope } from "./message.ts";

/** Returns the same form for all spellings that some file system treats as the same name. */
export function foldedName(name: string): string {
  if (/^[a-z0-9_-]+$/.test(name)) return name;
  return name.normalize("NFKC").replace(/[\p{DI}\p{Cf}]/gu, "").toUpperCase().toLowerCase()
    .replace(/[.\s]+$/u, "");
}

/** Splits a path into its names. */
export function pathNames(path: string): string[] {
  return PATHS.namesOf(path);
}

/** Returns whether a path is a folder or is below it. Compares whole names. */
export function within(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}

/** Joins a folder and a name. */
export function joinPath(folder: string, name: string): string {
  return folder.endsWith("/") ? `${folder}${name}` : `${folder}/${name}`;
}

/** Returns the folder of a path. */
export function parentOf(path: string): string {
  return PATHS.joined(PATHS.namesOf(path).slice(0, isDrivePath(path) ? undefined : -1));
}

/** Returns whether a path is the root of a drive of Windows, which has no folder. */
function isDrivePath(path: string): boolean {
  return /^[A-Z]:\/$/.test(path);
}

/** Returns the grants of a module with all paths in the form of `PATHS`. */
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

/** A list of protected names. A name may have several parts (`.git/config`) or contain `*`. */
export class NameList {
  readonly #plain: ReadonlySet<string>;
  readonly #patterns: readonly (readonly RegExp[])[];

  /** Creates a list from names of the configuration. */
  constructor(names: readonly string[]) {
    const isPlain = (name: string) => !/[*/]/.test(name);
    this.#plain = new Set(names.filter(isPlain).map(foldedName));
    this.#patterns = names.filter((name) => !isPlain(name))
      .map((name) => pathNames(name).map(nameExpression));
  }

  /**
   * Returns where protected names end in a path: for each, the number of path parts up to there.
   */
  endPositions(names: readonly string[]): number[] {
    const normalNames = names.map(foldedName);
    return normalNames.flatMap((name, at) => [
      ...this.#plain.has(name) ? [at + 1] : [],
      ...this.#patterns
        .filter((pattern) =>
          pattern.every((part, index) => part.test(normalNames[at + index] ?? "/"))
        )
        .map((pattern) => at + pattern.length),
    ]);
  }

  /** Returns whether a protected name may begin with this part. */
  mayBegin(name: string): boolean {
    const folded = foldedName(name);
    return this.#plain.has(folded) ||
      this.#patterns.some((pattern) => pattern[0]?.test(folded));
  }
}

function nameExpression(name: string): RegExp {
  const parts = name.split("*").map((part) =>
    foldedName(part).replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")
  );
  return new RegExp(`^${parts.join(".*")}$`, "su");
}
