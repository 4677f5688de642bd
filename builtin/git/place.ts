/**
 * Finds a repository of the workspace, and refuses one that leads out of it.
 *
 * @module
 */

import type { Host } from "../../src/sandbox/host.ts";
import { absent, fail, quoted } from "./failure.ts";

/** The folders of a repository. All are real paths. */
export interface RepositoryPlace {
  /** Its work tree. */
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
const ENTERED = /^(info|sequencer|rebase-\w+|(logs|refs|reftable)(\/.*)?|objects(\/(info|pack))?)$/;
/** Hooks never run, and the socket is of a daemon that is never used. */
const SPARED = /^(hooks|fsmonitor--daemon\.ipc)$/;
const OPERATIONS: readonly (readonly [file: string, name: string])[] = [
  ["rebase-merge", "rebase"],
  ["rebase-apply", "rebase"],
  ["MERGE_HEAD", "merge"],
  ["CHERRY_PICK_HEAD", "cherry-pick"],
  ["REVERT_HEAD", "revert"],
  ["BISECT_LOG", "bisect"],
];

/** Looks for `.git` from a folder up to the workspace and no further. */
export async function findPlace(what: string, repo: string, host: Host): Promise<RepositoryPlace> {
  const { workspace } = host;
  const asked = resolve(workspace, repo);
  // One message for both cases: it must not tell whether something exists outside.
  const from = await Deno.realPath(asked).catch(() => "");
  if (!within(workspace, from)) throw fail(what, `no folder of the workspace is ${quoted(repo)}`);
  for (let root = from;; root = root.slice(0, root.lastIndexOf("/"))) {
    const info = await Deno.lstat(`${root}/.git`).catch(absent);
    if (info !== undefined) return await placed(what, { root, info, host });
    if (root !== workspace) continue;
    const hint = "give the folder of one as repo, or make one with git init";
    throw fail(what, `${quoted(repo)} lies in no git repository of the workspace; ${hint}`);
  }
}

async function placed(
  what: string,
  { root, info, host }: {
    readonly root: string;
    readonly info: Deno.FileInfo;
    readonly host: Host;
  },
): Promise<RepositoryPlace> {
  const follow = (file: string, target: string) => led(what, { file, target, host });
  let gitDir = `${root}/.git`;
  if (!info.isDirectory) {
    const [, target] = /^gitdir: (.+?)\s*$/.exec(await pointer(what, gitDir)) ?? [];
    if (target === undefined) throw fail(what, "its .git is a file that names no folder");
    gitDir = await follow(gitDir, target);
  }
  const names = await requirePlain(what, gitDir, host);
  let store = gitDir;
  if (names.has("commondir")) {
    const file = `${gitDir}/commondir`;
    store = await follow(file, (await pointer(what, file)).trimEnd());
    await requirePlain(what, store, host);
  }
  const alternates = await Deno.readTextFile(`${store}/objects/info/alternates`).catch(absent);
  if (alternates?.trim()) {
    const hint = "git repack -ad, then removing objects/info/alternates, makes it whole";
    throw fail(what, `it borrows objects from another repository; ${hint}`);
  }
  return { root, gitDir, operation: OPERATIONS.find(([file]) => names.has(file))?.[1] };
}

async function pointer(what: string, file: string): Promise<string> {
  const { isFile, size } = await Deno.lstat(file);
  if (!isFile || size > POINTER_MAX) {
    throw fail(what, `${quoted(file)} is a link, or no file that git wrote`);
  }
  return await Deno.readTextFile(file);
}

async function led(
  what: string,
  { file, target, host }: {
    readonly file: string;
    readonly target: string;
    readonly host: Host;
  },
): Promise<string> {
  const path = resolve(file.slice(0, file.lastIndexOf("/")), target);
  const real = await Deno.realPath(path).catch(() => "");
  const inner = within(host.workspace, real) ? real.slice(host.workspace.length) : "";
  // Tools that write files cannot write in a folder named .git, but in any other.
  if (`${inner}/`.includes("/.git/")) return real;
  const hint = "open the folder that contains both as the workspace";
  throw fail(what, `${quoted(file)} leads to no .git of the workspace; ${hint}`);
}

/**
 * Throws if git would read or write through a link or a pipe. Returns the names in the top folder.
 */
async function requirePlain(what: string, top: string, host: Host): Promise<Set<string>> {
  const names = new Set<string>();
  const folders = [""];
  for (const folder of folders) {
    host.signal.throwIfAborted();
    for await (const { name, isFile, isDirectory } of Deno.readDir(`${top}/${folder}`)) {
      const path = folder === "" ? name : `${folder}/${name}`;
      if (folder === "") names.add(name);
      if (isDirectory && ENTERED.test(path)) folders.push(path);
      if (isFile || isDirectory || SPARED.test(path)) continue;
      throw fail(what, `${quoted(path)} in its .git is a link or no file, which git would follow`);
    }
  }
  return names;
}

function resolve(folder: string, path: string): string {
  // `..` stays: it counts after links.
  const plain = slashed(path);
  return isWhole(plain) ? plain : `${folder}/${plain}`;
}

/** Returns a path with `/` between its names. */
export function slashed(path: string, os: string = Deno.build.os): string {
  return os === "windows" ? path.replaceAll("\\", "/") : path;
}

/** Returns whether a path is not relative to a folder. */
export function isWhole(path: string, os: string = Deno.build.os): boolean {
  return path.startsWith("/") || os === "windows" && /^[A-Za-z]:/.test(path);
}

function within(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
