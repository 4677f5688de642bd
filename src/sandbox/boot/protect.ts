/**
 * Decides which paths stay closed although they are inside a grant.
 *
 * @module
 */

import type { FileScope } from "./message.ts";
import { PATHS } from "../../core/paths.ts";
import { fold, folderOf, joinPath, NameList, namesOf, within } from "./names.ts";

/** What is done to a file. To "look" is to see its name, kind, size and times. */
export type Access = "look" | "read" | "write";

/** The most entries that are searched for the protected file that a hard link belongs to. */
const LINK_SEARCH_MAX = 20_000;
/** What nobody reads in a folder of git: settings, which may hold tokens, and contents. */
const CLOSED_INSIDE = /\/(config|objects\/(?:pack|[\da-f]{2})\/[^/]+)$/;

/** Knows the protected names and places. */
export class Protected {
  readonly #scope: FileScope;
  readonly #names: Readonly<Record<Access, NameList>>;
  readonly #writable: NameList;
  readonly #places: Readonly<Record<Access, readonly string[]>>;

  /** Takes the lists of protected names and paths. */
  constructor(scope: FileScope) {
    const { readProtected, writeProtected, writable } = scope.protection;
    this.#writable = new NameList(writable);
    this.#scope = scope;
    const home = foldPath(scope.home);
    const closed = [home, ...scope.protection.paths.map(foldPath)];
    // guard: home
    this.#places = { look: [home], read: [home], write: closed };
    this.#names = {
      look: new NameList([]),
      read: new NameList(readProtected),
      write: new NameList([...readProtected, ...writeProtected]),
    };
  }

  /** Returns whether a path is closed to an access, by its name or its place. */
  covers(path: string, access: Access): boolean {
    return this.isListed(path, access) ||
      access === "write" && this.closedDotName(path) !== undefined;
  }

  /**
   * Returns the name at the top of the workspace that closes a path for writing because it begins
   * with a dot.
   */
  closedDotName(path: string): string | undefined {
    const { workspace, temp } = this.#scope;
    if (!within(workspace, path) || temp !== undefined && within(temp, path)) return undefined;
    const base = namesOf(workspace).length;
    const name = namesOf(path)[base] ?? "";
    const isOpen = !fold(name).startsWith(".") || this.#writable.ends([name]).length > 0 ||
      this.#isGranted(path, { access: "write", end: base + 1 });
    return isOpen ? undefined : name;
  }

  /** Returns whether a path is closed by a listed name, or by its place. */
  isListed(path: string, access: Access): boolean {
    const { temp } = this.#scope;
    if (temp !== undefined && within(temp, path)) return false;
    const folded = foldPath(path);
    if (this.#places[access].some((place) => within(place, folded))) return true;
    // The person chose the folders above the workspace, so their names do not count.
    const base = within(this.#scope.workspace, path) ? namesOf(this.#scope.workspace).length : 0;
    return this.#names[access].ends(namesOf(path).slice(base))
      .some((end) => !this.#isGranted(path, { access, end: base + end }));
  }

  /**
   * Returns whether a real path lies in a folder that git treats as a repository, whatever its
   * name, or would turn a folder into one. Such a folder can be read, but neither its `config`, as
   * in `.git`, nor the files of its `objects`: they hold what was in files that are closed.
   */
  coversRepository(path: string, access: Access): boolean {
    const { workspace, temp } = this.#scope;
    if (access === "look" || temp !== undefined && within(temp, path)) return false;
    const names = namesOf(path);
    const base = within(workspace, path) ? namesOf(workspace).length : 0;
    const isRead = access === "read";
    const [, inner = ""] = CLOSED_INSIDE.exec(foldPath(path)) ?? [];
    if (isRead && !inner) return false;
    const from = isRead ? names.length - namesOf(inner).length : base;
    for (let end = from; end <= names.length; end++) {
      const folder = PATHS.joined(names.slice(0, end));
      // If the workspace itself is a repository of this kind, the person chose that.
      const isOne = isRepository(folder, names[end]) && (end > base || !isRepository(folder));
      if (isOne && !this.#isGranted(path, { access, end })) return true;
    }
    return false;
  }

  /**
   * Returns the first protected entry in a folder, at any depth, under its own path or under the
   * path that it is moved to.
   */
  heldBy(folder: string, movedTo = folder): string | undefined {
    // It may have been made in the temporary folder, where names are not checked.
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

  /** Returns whether a file with several names is one of the protected files nearby. */
  isTwin(path: string, options: { info: Deno.FileInfo; access: Access }): boolean {
    const { info, access } = options;
    if ((info.nlink ?? 1) < 2) return false;
    return this.#protectedFiles(path, access).some((file) => isSame(statOf(file), info));
  }

  #isGranted(path: string, reach: { access: Access; end: number }): boolean {
    const opens = (root: string) => within(root, path) && namesOf(root).length >= reach.end;
    return this.#scope.protection.granted.some(opens) &&
      rootsOf(this.#scope, reach.access).some(opens);
  }

  #protectedFiles(path: string, access: Access): string[] {
    const found = access === "write" ? [...this.#scope.protection.paths] : [];
    const { workspace } = this.#scope;
    const queue: string[] = [];
    for (let folder = folderOf(path); within(workspace, folder); folder = folderOf(folder)) {
      queue.push(folder);
      if (folder === workspace) break;
    }
    const tops = queue.length;
    // Breadth first, so that a large object store cannot hide the files beside it.
    for (let at = 0, seen = 0; at < queue.length && seen < LINK_SEARCH_MAX; at++) {
      for (const entry of entriesOf(queue[at] ?? "")) {
        seen++;
        const here = joinPath(queue[at] ?? "", entry.name);
        const covered = this.isListed(here, access);
        const enter = covered || at >= tops || this.#names[access].begins(entry.name);
        if (entry.isDirectory && enter) queue.push(here);
        else if (covered || this.covers(here, access)) found.push(here);
      }
    }
    return found;
  }
}

/** Returns the roots for an access. */
export function rootsOf(scope: FileScope, access: Access): readonly string[] {
  const roots = access === "write" ? scope.write : scope.read;
  return scope.temp === undefined ? roots : [...roots, scope.temp];
}

/** Returns whether two looks at a file saw the same file. */
export function isSame(one: Deno.FileInfo | undefined, other: Deno.FileInfo): boolean {
  return one !== undefined && one.dev === other.dev && one.ino === other.ino;
}

/**
 * Returns whether git treats a folder as a repository because of its content, or would if `added`
 * were in it.
 */
function isRepository(folder: string, added = ""): boolean {
  const name = fold(added);
  const has = (piece: string) =>
    name === piece.toLowerCase() || statOf(joinPath(folder, piece)) !== undefined;
  // Git also accepts a folder without settings if it has references, and runs its hooks.
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
    return undefined; // gone, or not visible to this process; then it cannot be opened either
  }
}

function entriesOf(folder: string): Deno.DirEntry[] {
  try {
    return [...Deno.readDirSync(folder)];
  } catch {
    return []; // a grant is narrower than the workspace; the folders above it are not visible
  }
}
