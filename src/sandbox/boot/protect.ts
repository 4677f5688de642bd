/**
 * Decides which paths inside a grant are protected.
 *
 * @module
 */

import type { FileScope } from "./message.ts";
import { PATHS } from "../../core/paths.ts";
import { foldedName, joinPath, NameList, parentOf, pathNames, within } from "./names.ts";

/** The kind of an access. "look" reads only the metadata of a file: name, kind, size and times. */
export type AccessKind = "look" | "read" | "write";

/** The maximum number of entries that are searched for a protected file with the same inode. */
const LINK_SEARCH_MAX = 20_000;
/** Matches closed files of a git folder: settings, which may contain tokens, and objects. */
const CLOSED_GIT_FILE = /\/(config|objects\/(?:pack|[\da-f]{2})\/[^/]+)$/;

/** The protected names and paths of a module. */
export class Protected {
  readonly #scope: FileScope;
  readonly #names: Readonly<Record<AccessKind, NameList>>;
  readonly #writable: NameList;
  readonly #places: Readonly<Record<AccessKind, readonly string[]>>;

  /** Creates an instance from the lists of protected names and paths. */
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

  /** Returns whether a path is closed to an access because of its name or its folder. */
  covers(path: string, access: AccessKind): boolean {
    return this.isListed(path, access) ||
      access === "write" && this.closedDotName(path) !== undefined;
  }

  /**
   * Returns the first name of a path below the workspace, if this name begins with a dot and so
   * closes the path for writing.
   */
  closedDotName(path: string): string | undefined {
    const { workspace, temp } = this.#scope;
    if (!within(workspace, path) || temp !== undefined && within(temp, path)) return undefined;
    const base = pathNames(workspace).length;
    const name = pathNames(path)[base] ?? "";
    const isOpen = !foldedName(name).startsWith(".") ||
      this.#writable.endPositions([name]).length > 0 ||
      this.#isGranted(path, { access: "write", end: base + 1 });
    return isOpen ? undefined : name;
  }

  /** Returns whether a path is closed because of a listed name, or because of its folder. */
  isListed(path: string, access: AccessKind): boolean {
    const { temp } = this.#scope;
    if (temp !== undefined && within(temp, path)) return false;
    const folded = foldPath(path);
    if (this.#places[access].some((place) => within(place, folded))) return true;
    // The user chose the folders above the workspace, so their names do not count.
    const base = within(this.#scope.workspace, path) ? pathNames(this.#scope.workspace).length : 0;
    return this.#names[access].endPositions(pathNames(path).slice(base))
      .some((end) => !this.#isGranted(path, { access, end: base + end }));
  }

  /**
   * Returns whether a real path is in a folder of any name that git treats as a repository, or
   * would turn a folder into a repository. Such a folder can be read, except its `config` (as in
   * `.git`) and the files of its `objects`, which contain versions of protected files.
   */
  coversRepository(path: string, access: AccessKind): boolean {
    const { workspace, temp } = this.#scope;
    if (access === "look" || temp !== undefined && within(temp, path)) return false;
    const names = pathNames(path);
    const base = within(workspace, path) ? pathNames(workspace).length : 0;
    const isRead = access === "read";
    const [, inner = ""] = CLOSED_GIT_FILE.exec(foldPath(path)) ?? [];
    if (isRead && !inner) return false;
    const from = isRead ? names.length - pathNames(inner).length : base;
    for (let end = from; end <= names.length; end++) {
      const folder = PATHS.joined(names.slice(0, end));
      // The workspace itself may be such a repository, because the user chose it.
      const isClosed = isRepository(folder, names[end]) && (end > base || !isRepository(folder));
      if (isClosed && !this.#isGranted(path, { access, end })) return true;
    }
    return false;
  }

  /**
   * Finds the first entry in a folder, at any depth, that is protected at its path before or after
   * a move, or that makes a folder a repository.
   */
  findProtectedIn(folder: string, movedTo = folder): string | undefined {
    // The folder may come from the temporary folder, where names are not checked.
    const reach = { access: "write", end: pathNames(movedTo).length } as const;
    if (movedTo !== folder && isRepository(folder) && !this.#isGranted(movedTo, reach)) {
      return joinPath(folder, "HEAD");
    }
    for (const entry of Deno.readDirSync(folder)) {
      const path = joinPath(folder, entry.name);
      const moved = joinPath(movedTo, entry.name);
      if (this.covers(path, "write") || this.covers(moved, "write")) return path;
      if (entry.isDirectory && isRepository(path)) return path;
      const repository = entry.isDirectory ? this.findProtectedIn(path, moved) : undefined;
      if (repository !== undefined) return repository;
    }
    return undefined;
  }

  /**
   * Returns whether a file with several hard links is also a protected file: the search covers the
   * folders between the workspace and the file, and protected folders in them.
   */
  isTwin(path: string, options: { info: Deno.FileInfo; access: AccessKind }): boolean {
    const { info, access } = options;
    if ((info.nlink ?? 1) < 2) return false;
    return this.#protectedFiles(path, access).some((file) => isSameFile(statOf(file), info));
  }

  #isGranted(path: string, reach: { access: AccessKind; end: number }): boolean {
    const isOpenedBy = (root: string) => within(root, path) && pathNames(root).length >= reach.end;
    return this.#scope.protection.granted.some(isOpenedBy) &&
      rootsOf(this.#scope, reach.access).some(isOpenedBy);
  }

  #protectedFiles(path: string, access: AccessKind): string[] {
    const paths = access === "write" ? [...this.#scope.protection.paths] : [];
    const { workspace } = this.#scope;
    const queue: string[] = [];
    for (let folder = parentOf(path); within(workspace, folder); folder = parentOf(folder)) {
      queue.push(folder);
      if (folder === workspace) break;
    }
    const parentCount = queue.length;
    // Breadth first, so that a large object store cannot hide its sibling files.
    for (let at = 0, count = 0; at < queue.length && count < LINK_SEARCH_MAX; at++) {
      for (const entry of entriesOf(queue[at] ?? "")) {
        count++;
        const entryPath = joinPath(queue[at] ?? "", entry.name);
        const isListed = this.isListed(entryPath, access);
        const isSearched = isListed || at >= parentCount ||
          this.#names[access].mayBegin(entry.name);
        if (entry.isDirectory && isSearched) queue.push(entryPath);
        else if (isListed || this.covers(entryPath, access)) paths.push(entryPath);
      }
    }
    return paths;
  }
}

/** Returns the roots for an access. */
export function rootsOf(scope: FileScope, access: AccessKind): readonly string[] {
  const roots = access === "write" ? scope.write : scope.read;
  return scope.temp === undefined ? roots : [...roots, scope.temp];
}

/** Returns whether two results of `Deno.stat` describe the same file. */
export function isSameFile(one: Deno.FileInfo | undefined, other: Deno.FileInfo): boolean {
  return one !== undefined && one.dev === other.dev && one.ino === other.ino;
}

/**
 * Returns whether git treats a folder as a repository because of its content, or would with the
 * entry `added` in it.
 */
function isRepository(folder: string, added = ""): boolean {
  const name = foldedName(added);
  const has = (piece: string) =>
    name === piece.toLowerCase() || statOf(joinPath(folder, piece)) !== undefined;
  // Git also accepts a folder with references but without settings, and runs its hooks.
  return has("HEAD") &&
    (has("objects") && (has("config") || has("refs")) || has("commondir"));
}

function foldPath(path: string): string {
  return `/${pathNames(path).map(foldedName).join("/")}`;
}

function statOf(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(path);
  } catch {
    return undefined; // missing, or invisible to this process, so it cannot be opened
  }
}

function entriesOf(folder: string): Deno.DirEntry[] {
  try {
    return [...Deno.readDirSync(folder)];
  } catch {
    return []; // folders above a narrow grant are not visible to this process
  }
}
