/**
 * Finds a repository of the workspace. Refuses repositories whose files lead out of the workspace.
 *
 * @module
 */

import type { Host } from "../../src/sandbox/host.ts";
import { fail, ignoreMissing, quoted } from "./failure.ts";

/** The folders of a repository, as real paths. */
export interface RepositoryPlace {
  /** The folder of the work tree. */
  readonly root: string;
  readonly gitDir: string;
  /** An unfinished operation, such as a merge. */
  readonly operation: string | undefined;
}

const POINTER_MAX = 4_096;
/**
 * Folders in which git reads or appends to files by path. The other folders of an object store are
 * too many to check.
 */
const CHECKED_FOLDERS =
  /^(info|sequencer|rebase-\w+|(logs|refs|reftable)(\/.*)?|objects(\/(info|pack))?)$/;
/** Hooks are never run, and the socket belongs to a daemon that is never used. */
const IGNORED = /^(hooks|fsmonitor--daemon\.ipc)$/;
const OPERATIONS: readonly (readonly [file: string, name: string])[] = [
  ["rebase-merge", "rebase"],
  ["rebase-apply", "rebase"],
  ["MERGE_HEAD", "merge"],
  ["CHERRY_PICK_HEAD", "cherry-pick"],
  ["REVERT_HEAD", "revert"],
  ["BISECT_LOG", "bisect"],
];

/**
 * Searches for `.git` in a folder and in its parents up to the workspace. `what` is the attempted
 * action, for errors.
 */
export async function findPlace(what: string, repo: string, host: Host): Promise<RepositoryPlace> {
  const { workspace } = host;
  const requestedFolder = resolve(workspace, repo);
  // Missing folders and folders outside have the same message, which must not reveal what exists.
  const from = await Deno.realPath(requestedFolder).catch(() => "");
  if (!isWithin(workspace, from)) {
    throw fail(what, `${quoted(repo)} is not a folder in the workspace`);
  }
  for (let root = from;; root = root.slice(0, root.lastIndexOf("/"))) {
    const info = await Deno.lstat(`${root}/.git`).catch(ignoreMissing);
    if (info !== undefined) return await openPlace(what, { root, info, host });
    if (root !== workspace) continue;
    const hint = "give the folder of one as repo, or make one with git init";
    throw fail(what, `${quoted(repo)} lies in no git repository of the workspace; ${hint}`);
  }
}

async function openPlace(
  what: string,
  { root, info, host }: {
    readonly root: string;
    readonly info: Deno.FileInfo;
    readonly host: Host;
  },
): Promise<RepositoryPlace> {
  const follow = (file: string, target: string) => followPointer(what, { file, target, host });
  let gitDir = `${root}/.git`;
  if (!info.isDirectory) {
    const [, target] = /^gitdir: (.+?)\s*$/.exec(await readPointer(what, gitDir)) ?? [];
    if (target === undefined) throw fail(what, "its .git is a file that names no folder");
    gitDir = await follow(gitDir, target);
  }
  const names = await assertNoLinks(what, gitDir, host);
  let store = gitDir;
  if (names.has("commondir")) {
    const file = `${gitDir}/commondir`;
    store = await follow(file, (await readPointer(what, file)).trimEnd());
    await assertNoLinks(what, store, host);
  }
  const alternates = await Deno.readTextFile(`${store}/objects/info/alternates`).catch(
    ignoreMissing,
  );
  if (alternates?.trim()) {
    const hint = "run git repack -ad there and remove objects/info/alternates";
    throw fail(what, `it borrows objects from another repository; ${hint}`);
  }
  return { root, gitDir, operation: OPERATIONS.find(([file]) => names.has(file))?.[1] };
}

async function readPointer(what: string, file: string): Promise<string> {
  const { isFile, size } = await Deno.lstat(file);
  if (!isFile || size > POINTER_MAX) {
    throw fail(what, `${quoted(file)} is a link, or larger than git writes it`);
  }
  return await Deno.readTextFile(file);
}

async function followPointer(
  what: string,
  { file, target, host }: {
    readonly file: string;
    readonly target: string;
    readonly host: Host;
  },
): Promise<string> {
  const path = resolve(file.slice(0, file.lastIndexOf("/")), target);
  const real = await Deno.realPath(path).catch(() => "");
  const inner = isWithin(host.workspace, real) ? real.slice(host.workspace.length) : "";
  // Tools cannot write in a folder named .git. In other folders they could replace the target.
  if (`${inner}/`.includes("/.git/")) return real;
  const hint = "open a folder that contains this file and its target as the workspace";
  throw fail(what, `${quoted(file)} leads to no .git of the workspace; ${hint}`);
}

/**
 * Throws if git would read or write through a link or a pipe. Returns the names in the top folder.
 */
async function assertNoLinks(what: string, top: string, host: Host): Promise<Set<string>> {
  const names = new Set<string>();
  const folders = [""];
  for (const folder of folders) {
    host.signal.throwIfAborted();
    for await (const { name, isFile, isDirectory } of Deno.readDir(`${top}/${folder}`)) {
      const path = folder === "" ? name : `${folder}/${name}`;
      if (folder === "") names.add(name);
      if (isDirectory && CHECKED_FOLDERS.test(path)) folders.push(path);
      if (isFile || isDirectory || IGNORED.test(path)) continue;
      throw fail(
        what,
        `${quoted(path)} in its .git is a link or a special file, which git would open`,
      );
    }
  }
  return names;
}

function resolve(folder: string, path: string): string {
  // `..` stays in the path, because links are resolved before it.
  const plain = slashed(path);
  return isAbsolute(plain) ? plain : `${folder}/${plain}`;
}

/** Returns a path with `/` between its names. */
export function slashed(path: string, os: string = Deno.build.os): string {
  return os === "windows" ? path.replaceAll("\\", "/") : path;
}

/** Returns whether a path is not relative to a folder. */
export function isAbsolute(path: string, os: string = Deno.build.os): boolean {
  return path.startsWith("/") || os === "windows" && /^[A-Za-z]:/.test(path);
}

function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
