/**
 * Finds the linked worktrees of a git repository: the trust in a file also covers the same file in
 * other checkouts of that repository.
 *
 * @module
 */

import { dirname, join, relative, resolve } from "node:path";
import { namesIn } from "../io/private_files.ts";
import { readRegularText } from "../io/regular_file.ts";
import type { TrustStore } from "./trust.ts";

/** The largest size, in bytes, of a git file that contains a path. */
const MOST_BYTES = 8_192;
/** The maximum number of worktrees of a repository that are searched. */
const MOST_WORKTREES = 200;

/**
 * Trusts a file if the user trusts the same file with the same hash in another worktree. Returns
 * whether this is the case.
 */
export async function copyTrust(
  store: TrustStore,
  { path, hash }: { readonly path: string; readonly hash: string },
): Promise<boolean> {
  for (const other of await pathsInOtherWorktrees(path)) {
    const same = await store.record(other);
    if (!same?.hashes.includes(hash)) continue;
    await store.trust({ ...same, path, hash });
    // The trust in the other file may have been revoked meanwhile.
    // guard: worktree-taken-over
    if ((await store.record(other))?.hashes.includes(hash)) return true;
    await store.revoke(path);
  }
  return false;
}

/** Revokes the trust in a file in every worktree. Returns whether it was trusted anywhere. */
export async function revokeAll(store: TrustStore, path: string): Promise<boolean> {
  const paths = [path, ...await pathsInOtherWorktrees(path)];
  const revoke = () => Promise.all(paths.map((each) => store.revoke(each)));
  // Twice, because a process may have copied trust between worktrees during the first pass.
  return [...await revoke(), ...await revoke()].includes(true);
}

/** A checkout of a repository. */
interface Checkout {
  readonly root: string;
  /** The real path of the folder `.git` that all checkouts share. */
  readonly common: string;
}

/** Returns the paths of a file in the other checkouts; an empty list if there is no repository. */
async function pathsInOtherWorktrees(path: string): Promise<readonly string[]> {
  const here = await checkoutAround(dirname(path));
  if (here === undefined) return [];
  const { root, common } = here;
  const folder = join(common, "worktrees");
  const roots = [dirname(common)];
  for (const name of await namesIn(folder).catch(() => [])) {
    const gitFolder = await undefinedIfUnreadable(() => pathIn(join(folder, name, "gitdir")));
    if (gitFolder !== undefined && roots.length <= MOST_WORKTREES) roots.push(dirname(gitFolder));
  }
  const others = [];
  for (const other of roots) {
    // A folder does not belong to a repository only because it claims so.
    const isOther = other !== root && (await checkoutAt(other))?.common === common;
    if (isOther) others.push(join(other, relative(root, path)));
  }
  return others;
}

async function checkoutAround(folder: string): Promise<Checkout | undefined> {
  const checkout = await checkoutAt(folder);
  const parent = dirname(folder);
  return checkout ?? (parent === folder ? undefined : await checkoutAround(parent));
}

/** Returns the checkout whose root is this folder, if its repository lists the checkout. */
async function checkoutAt(root: string): Promise<Checkout | undefined> {
  return await undefinedIfUnreadable(async () => {
    const git = join(root, ".git");
    if ((await Deno.lstat(git)).isDirectory) return { root, common: await Deno.realPath(git) };
    const gitFolder = await pathIn(git, "gitdir: ");
    const common = await pathIn(join(gitFolder, "commondir"));
    const isKnown = await pathIn(join(gitFolder, "gitdir")) === git &&
      dirname(gitFolder) === join(common, "worktrees");
    // guard: worktree-claimed
    return isKnown ? { root, common } : undefined;
  });
}

/** Returns the real path that a git file contains. */
async function pathIn(file: string, label = ""): Promise<string> {
  const text = readRegularText(file, { most: MOST_BYTES });
  if (!text.startsWith(label)) throw new TypeError(`${file} does not contain a path`);
  return await Deno.realPath(resolve(dirname(file), text.slice(label.length).trim()));
}

/** Returns undefined if the file is missing or not in git's format. */
async function undefinedIfUnreadable<T>(read: () => Promise<T>): Promise<T | undefined> {
  return await read().catch(() => undefined);
}
