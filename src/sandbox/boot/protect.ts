/**
 * Tells which paths stay closed although they lie inside a grant.
 *
 * @module
 */

import type { FileScope } from "./message.ts";
import { fold, folderOf, joinPath, NameList, namesOf, within } from "./names.ts";

/** What is done to a file; to look is to see its name, kind, size and times. */
export type Access = "look" | "read" | "write";

/** The most entries that a search for protected files behind a hard link looks at. */
const LINK_SEARCH_MAX = 20_000;

/** Knows the protected names and places. */
export class Protected {
  readonly #ground: FileScope;
  readonly #names: Readonly<Record<Access, NameList>>;
  readonly #places: Readonly<Record<Access, readonly string[]>>;

  /** Takes the lists of a ground. */
  constructor(ground: FileScope) {
    const { readProtected, writeProtected } = ground.protection;
    this.#ground = ground;
    const home = foldPath(ground.home);
    const closed = [home, ...ground.protection.paths.map(foldPath)];
    this.#places = { look: [home], read: [home], write: closed };
    this.#names = {
      look: new NameList([]),
      read: new NameList(readProtected),
      write: new NameList([...readProtected, ...writeProtected]),
    };
  }

  /** Tells whether a path is closed to an access by its name or its place. */
  covers(path: string, access: Access): boolean {
    const { temp } = this.#ground;
    if (temp !== undefined && within(temp, path)) return false;
    const folded = foldPath(path);
    if (this.#places[access].some((place) => within(place, folded))) return true;
    // The folders above the workspace are the person's own choice.
    const base = within(this.#ground.workspace, path) ? namesOf(this.#ground.workspace).length : 0;
    return this.#names[access].ends(namesOf(path).slice(base))
      .some((end) => !this.#isGranted(path, { access, end: base + end }));
  }

  /**
   * Tells whether a real path lies in what git takes for a repository under whatever name, or would
   * make a folder one. To be read are all of it but its settings, as those of `.git`.
   */
  coversRepository(path: string, access: Access): boolean {
    const { workspace, temp } = this.#ground;
    if (access === "look" || temp !== undefined && within(temp, path)) return false;
    const names = namesOf(path);
    const base = within(workspace, path) ? namesOf(workspace).length : 0;
    const isRead = access === "read";
    if (isRead && fold(names.at(-1) ?? "") !== "config") return false;
    for (let end = isRead ? names.length - 1 : base; end <= names.length; end++) {
      const folder = `/${names.slice(0, end).join("/")}`;
      // A workspace that is one already is the person's own choice.
      const isOne = isRepository(folder, names[end]) && (end > base || !isRepository(folder));
      if (isOne && !this.#isGranted(path, { access, end })) return true;
    }
    return false;
  }

  /** Gives the protected entry in a folder, at any depth, under its own path or as moved to another. */
  heldBy(folder: string, movedTo = folder): string | undefined {
    // It may have been made where names say nothing, in the folder for temporary files.
    const reach = { access: "write", end: namesOf(movedTo).length } as const;
    if (movedTo !== folder && isRepository(folder) && !this.#isGranted(movedTo, reach)) {
      return joinPath(folder, "HEAD");
    }
    for (const entry of Deno.readDirSync(folder)) {
      const path = joinPath(folder, entry.name);
      const moved = joinPath(movedTo, entry.name);
      if (this.covers(path, "write") || this.covers(moved, "write")) return path;
      if (entry.isDirectory && isRepository(path)) return path;
      const held = entry.isDirectory ? this.heldBy(path, moved) : undefined;
      if (held !== undefined) return held;
    }
    return undefined;
  }

  /** Tells whether a file with several names is one of the protected files nearby. */
  isTwin(path: string, options: { info: Deno.FileInfo; access: Access }): boolean {
    const { info, access } = options;
    if ((info.nlink ?? 1) < 2) return false;
    return this.#protectedFiles(path, access).some((file) => isSame(statOf(file), info));
  }

  #isGranted(path: string, reach: { access: Access; end: number }): boolean {
    const opens = (root: string) => within(root, path) && namesOf(root).length >= reach.end;
    return this.#ground.protection.granted.some(opens) &&
      rootsOf(this.#ground, reach.access).some(opens);
  }

  #protectedFiles(path: string, access: Access): string[] {
    const found = access === "write" ? [...this.#ground.protection.paths] : [];
    const { workspace } = this.#ground;
    const queue: string[] = [];
    for (let folder = folderOf(path); within(workspace, folder); folder = folderOf(folder)) {
      queue.push(folder);
      if (folder === workspace) break;
    }
    const tops = queue.length;
    // Breadth first, so that a large store of objects cannot hide the files beside it.
    for (let at = 0, seen = 0; at < queue.length && seen < LINK_SEARCH_MAX; at++) {
      for (const entry of entriesOf(queue[at] ?? "")) {
        seen++;
        const here = joinPath(queue[at] ?? "", entry.name);
        const covered = this.covers(here, access);
        const enter = covered || at >= tops || this.#names[access].begins(entry.name);
        if (entry.isDirectory && enter) queue.push(here);
        else if (covered) found.push(here);
      }
    }
    return found;
  }
}

/** Gives the roots that an access may go to. */
export function rootsOf(ground: FileScope, access: Access): readonly string[] {
  const roots = access === "write" ? ground.write : ground.read;
  return ground.temp === undefined ? roots : [...roots, ground.temp];
}

/** Tells whether two looks at a file saw the same one. */
export function isSame(one: Deno.FileInfo | undefined, other: Deno.FileInfo): boolean {
  return one !== undefined && one.dev === other.dev && one.ino === other.ino;
}

/** Tells whether git takes a folder for a repository by what is in it, or would with one name more. */
function isRepository(folder: string, added = ""): boolean {
  const name = fold(added);
  const has = (piece: string) =>
    name === piece.toLowerCase() || statOf(joinPath(folder, piece)) !== undefined;
  // Without settings git takes it for one, too, if it has references, and runs its hooks.
  return has("HEAD") &&
    (has("objects") && (has("config") || has("refs")) || has("commondir"));
}

function foldPath(path: string): string {
  return `/${namesOf(path).map(fold).join("/")}`;
}

function statOf(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(path);
  } catch {
    return undefined; // gone, or outside what this process may see: then no open reaches it either
  }
}

function entriesOf(folder: string): Deno.DirEntry[] {
  try {
    return [...Deno.readDirSync(folder)];
  } catch {
    return []; // a grant narrower than the workspace: what lies above it cannot be seen
  }
}
