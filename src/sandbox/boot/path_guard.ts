/**
 * Resolves paths. Refuses protected paths and paths outside of the grants. Every function here must
 * run in the same synchronous step as the operation, so that the file cannot change in between.
 *
 * @module
 */

import { type PathRules, PATHS } from "../../core/paths.ts";
import type { FileScope } from "./message.ts";
import { joinPath, parentOf, pathNames, within } from "./names.ts";
import { type AccessKind, isSameFile, Protected, rootsOf } from "./protect.ts";
import { type Attempt, quotedPath, refusalOf, systemError } from "./refusal.ts";

/** The maximum length of a path on Linux, in bytes. */
const PATH_MAX = 4_096;

/** A checked path, and the file at it. */
export interface CheckedPath {
  readonly path: string;
  readonly info: Deno.FileInfo | undefined;
}

/** An attempt to use a path. */
export interface PathAttempt extends Attempt {
  readonly access: AccessKind;
}

/** Checks the paths that a module uses. */
export class PathGuard {
  readonly #scope: FileScope;
  readonly #protected: Protected;

  /** Creates a guard for the files that a module may use. */
  constructor(scope: FileScope) {
    this.#scope = scope;
    this.#protected = new Protected(scope);
  }

  /** Returns the absolute path of an attempt, without following links. */
  lexical(attempt: PathAttempt): string {
    const { workspace } = this.#scope;
    const roots = [workspace, ...rootsOf(this.#scope, attempt.access)];
    const { path, whyUnsafe } = resolveText(attempt, roots);
    this.#assertAllowed(path, attempt, "text");
    if (whyUnsafe === undefined) return path;
    throw refusalOf("PATH_PROTECTED", attempt, whyUnsafe);
  }

  /** Resolves a path with its links. Throws if it does not exist. */
  follow(attempt: PathAttempt): CheckedPath & { readonly info: Deno.FileInfo } {
    const path = this.#real(this.lexical(attempt), attempt);
    const info = Deno.lstatSync(path);
    assertFolderIfMeant(info, attempt);
    return { path, info };
  }

  /** Resolves a path but not a link at its end. The entry may be missing. */
  entry(attempt: PathAttempt): CheckedPath {
    const lexicalPath = this.lexical(attempt);
    const path = this.#isRoot(lexicalPath, attempt.access)
      ? this.#unlinkedRoot(lexicalPath, attempt)
      : joinPath(
        this.#real(parentOf(lexicalPath), attempt, true),
        pathNames(lexicalPath).at(-1) ?? "",
      );
    this.#assertAllowed(path, attempt);
    const info = lookAt(path);
    assertFolderIfMeant(info, attempt);
    return { path, info };
  }

  /** Resolves a file to open, or the path where it can be created. */
  target(attempt: PathAttempt): CheckedPath {
    const checked = this.entry(attempt);
    if (!checked.info && meansFolder(attempt)) throw systemError("IsADirectory");
    return checked.info ? this.follow(attempt) : checked;
  }

  /** Resolves a file or folder whose mode or times will be changed. */
  owned(attempt: PathAttempt): CheckedPath {
    const checked = this.follow(attempt);
    if (!checked.info.isDirectory) this.requireFile(checked.path, checked.info, attempt);
    return checked;
  }

  /** Opens a regular file. Throws if it is no longer the checked file. */
  openFile(
    checked: CheckedPath,
    options: { attempt: PathAttempt; open: Deno.OpenOptions },
  ): Deno.FsFile {
    const { attempt, open } = options;
    const { info } = checked;
    if (open.write || open.append) {
      if (info?.isDirectory) throw systemError("IsADirectory");
      assertNoJournal(checked, attempt);
    }
    if (info && !info.isDirectory) this.requireFile(checked.path, info, attempt);
    const file = Deno.openSync(checked.path, info ? open : { ...open, createNew: true });
    const opened = file.statSync();
    if (
      isSameFile(info ?? lookAt(checked.path), opened) && realPath(checked.path) === checked.path
    ) {
      return file;
    }
    file.close();
    throw refusalOf("PATH_OUTSIDE_WORKSPACE", attempt, "it was replaced while it was being opened");
  }

  /** Throws if a path is not a regular file, or is another name of a protected file. */
  requireFile(path: string, info: Deno.FileInfo, attempt: PathAttempt): void {
    if (info.isDirectory) throw systemError("IsADirectory");
    // guard: regular
    if (!info.isFile) {
      throw refusalOf("SANDBOX_DENIED", attempt, "it is neither a regular file nor a folder");
    }
    // guard: twin
    if (this.#protected.isTwin(path, { info, access: attempt.access })) {
      throw refusalOf("PATH_PROTECTED", attempt, "it is another name of a protected file");
    }
  }

  /**
   * Throws if a path must not be removed or moved, because it is a root or a folder that contains a
   * protected entry.
   */
  requireFree(checked: CheckedPath, options: { attempt: PathAttempt; movedTo?: string }): void {
    const { attempt, movedTo } = options;
    if (this.#isRoot(checked.path, attempt.access)) {
      throw refusalOf("PATH_PROTECTED", attempt, "it is a folder or file that was granted");
    }
    if (!checked.info?.isDirectory) return;
    const inner = this.#protected.findProtectedIn(checked.path, movedTo);
    if (inner === undefined) return;
    throw refusalOf(
      "PATH_PROTECTED",
      attempt,
      `it contains "${inner.slice(checked.path.length + 1)}"`,
    );
  }

  /**
   * Returns the missing folders of a path, the outermost first, and the folder that exists.
   */
  missing(attempt: PathAttempt): { readonly folders: readonly string[]; readonly base: string } {
    const names: string[] = [];
    let existing = this.lexical(attempt);
    while (lookAt(existing) === undefined && !this.#isRoot(existing, attempt.access)) {
      names.unshift(pathNames(existing).at(-1) ?? "");
      existing = parentOf(existing);
    }
    const info = lookAt(existing);
    const base = info === undefined
      ? this.#unlinkedRoot(existing, attempt)
      : this.#real(existing, attempt, true);
    let folder = base;
    const folders = names.map((name) => folder = joinPath(folder, name));
    this.#assertAllowed(folders.at(-1) ?? base, attempt);
    return { folders: info ? folders : [base, ...folders], base };
  }

  /**
   * Returns a root unchanged. Throws if its folder is a link in the workspace, because the new
   * entry would be created at the link's target.
   */
  #unlinkedRoot(root: string, attempt: PathAttempt): string {
    const folder = parentOf(root);
    if (attempt.access !== "write") return root;
    if (!within(this.#scope.workspace, folder) || lookAt(folder) === undefined) return root;
    if (realPath(folder) === folder) return root;
    throw refusalOf("PATH_OUTSIDE_WORKSPACE", attempt, "its folder is a link");
  }

  /**
   * Resolves links, and checks the result. `folder`: the path is only a folder of the used path.
   */
  #real(path: string, attempt: PathAttempt, folder = false): string {
    const real = this.#resolveLinks(path, attempt);
    // guard: links
    this.#assertAllowed(real, attempt, folder ? "folder" : "real");
    return real;
  }

  /** Resolves links. Errors are checked, too, because they must not reveal which files exist. */
  #resolveLinks(path: string, attempt: PathAttempt): string {
    try {
      return realPath(path);
    } catch (error) {
      if (this.#isRoot(path, attempt.access)) throw error;
      const folder = this.#real(parentOf(path), attempt, true);
      const info = lookAt(joinPath(folder, pathNames(path).at(-1) ?? ""));
      if (!info?.isSymlink) throw error;
      throw refusalOf(
        "PATH_OUTSIDE_WORKSPACE",
        attempt,
        "it is a link that leads to nothing inside",
      );
    }
  }

  #whyProtected(path: string, { access }: PathAttempt): string {
    const name = access === "write" ? this.#protected.closedDotName(path) : undefined;
    if (name === undefined || this.#protected.isListed(path, access)) return "it is protected";
    return "names that begin with a dot are closed at the top of a workspace. To open this one, " +
      `grant "write": [${quotedPath(name)}] to the server in .pml.json`;
  }

  #isRoot(path: string, access: AccessKind): boolean {
    return path === this.#scope.workspace || rootsOf(this.#scope, access).includes(path);
  }

  #assertAllowed(
    path: string,
    attempt: PathAttempt,
    // A path before its links are resolved, a folder of the path, or the path itself.
    as: "text" | "folder" | "real" = "real",
  ): void {
    const { workspace } = this.#scope;
    if (!rootsOf(this.#scope, attempt.access).some((root) => within(root, path))) {
      if (within(workspace, path)) {
        const kind = attempt.access === "write" ? "write" : "read";
        throw refusalOf("SANDBOX_DENIED", attempt, `the module has no ${kind} grant for it`);
      }
      throw refusalOf("PATH_OUTSIDE_WORKSPACE", attempt, "it is outside the workspace");
    }
    // guard: protected
    if (as !== "folder" && this.#protected.covers(path, attempt.access)) {
      throw refusalOf("PATH_PROTECTED", attempt, this.#whyProtected(path, attempt));
    }
    // guard: repository
    if (as === "real" && this.#protected.coversRepository(path, attempt.access)) {
      throw refusalOf("PATH_PROTECTED", attempt, "git takes its folder for a repository");
    }
  }
}

/** Throws for a journal of SQLite, because a forged journal makes SQLite delete another file. */
export function assertNoJournal({ path, info }: CheckedPath, attempt: PathAttempt): void {
  // guard: journals
  if (info?.isDirectory || !/-journal$/i.test(path)) return;
  throw refusalOf("SANDBOX_DENIED", attempt, "it is a journal of SQLite");
}

function assertFolderIfMeant(info: Deno.FileInfo | undefined, attempt: PathAttempt): void {
  if (info && !info.isDirectory && meansFolder(attempt)) throw systemError("NotADirectory");
}

/** Returns whether a path ends with a slash, which requires a folder. */
function meansFolder({ requestedPath }: PathAttempt): boolean {
  return PATHS.plain(requestedPath)?.endsWith("/") === true;
}

/**
 * Returns the absolute path of an attempt, computed from its text relative to the first root, and
 * why a name below the roots means another file. Throws if the path is not on a drive of this
 * machine.
 */
export function resolveText(
  attempt: Attempt,
  roots: readonly string[],
  rules: PathRules = PATHS,
): { readonly path: string; readonly whyUnsafe: string | undefined } {
  const requestedPath = rules.resolve(roots[0] ?? "", pathOf(attempt, rules));
  const path = roots.reduce((spelled, root) => rules.respell(root, spelled), requestedPath);
  const base = Math.max(
    ...roots.filter((root) => within(root, path)).map((root) => rules.namesOf(root).length),
  );
  return {
    path,
    whyUnsafe: rules.namesOf(path).slice(base).map(rules.whyUnsafeName).find(Boolean),
  };
}

function pathOf(attempt: Attempt, rules: PathRules): string {
  const { requestedPath } = attempt;
  // The length is checked first, because the checks of all parts would block other children.
  if (requestedPath.length > PATH_MAX) throw systemError("NameTooLong");
  if (requestedPath === "") throw systemError("NotFound");
  const named = /^file:\/\//i.test(requestedPath) ? pathOfUrl(requestedPath) : requestedPath;
  const path = named === undefined ? undefined : rules.plain(named);
  const why = named === undefined ? undefined : rules.whyNotLocal(named);
  if (why === undefined && path !== undefined && !path.includes("\0")) return path;
  throw refusalOf("PATH_OUTSIDE_WORKSPACE", attempt, why ?? "it is not a path on this machine");
}

function pathOfUrl(text: string): string | undefined {
  try {
    const url = new URL(text);
    return url.host === "" ? decodeURIComponent(url.pathname) : undefined;
  } catch {
    return undefined; // not a URL or wrongly encoded; the caller refuses both
  }
}

/** Returns the real path of a file or folder. Throws if it does not exist. */
export function realPath(path: string): string {
  const real = Deno.realPathSync(path);
  return PATHS.plain(real) ?? real;
}

/** Returns information about the entry itself; undefined if it does not exist. */
export function lookAt(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
