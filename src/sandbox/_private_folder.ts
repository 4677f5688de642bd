/**
 * Creates the private folder of a child in the PML home, and the lock file of a workspace.
 *
 * @module
 */

import { sha256 } from "../core/hash.ts";
import { randomHex } from "../core/random.ts";
import { join } from "node:path";
import { isAlive } from "../io/folder_lock.ts";
import { retryWhileBusy } from "../io/waiting.ts";

/** The private folders and files of one child. */
export interface PrivateFolder extends AsyncDisposable {
  readonly denoDir: string;
  readonly temp: string;
  /** A file that nothing in the child may read. */
  readonly canary: string;
  /** The lock file that all children of the workspace share. */
  readonly lock: string;
}

/** Creates the private folder of a child, and removes the folders of ended processes. */
export function openPrivateFolder(home: string, workspace: string, mark = ""): PrivateFolder {
  const parent = join(home, "sandbox");
  Deno.mkdirSync(parent, { recursive: true, mode: 0o700 });
  removeAbandoned(parent);
  // The process id alone is not enough: PML in another container may have the same id.
  const childFolder = join(parent, `${Deno.pid}-${mark}${randomHex(8)}`);
  const [denoDir, temp] = [join(childFolder, "deno"), join(childFolder, "temp")];
  for (const folder of [childFolder, denoDir, temp]) Deno.mkdirSync(folder, { mode: 0o700 });
  const canary = join(childFolder, "canary.mjs");
  // The file is empty, so that it can be created on a full disk, too.
  Deno.openSync(canary, { write: true, createNew: true, mode: 0o600 }).close();
  return {
    denoDir,
    temp,
    canary,
    lock: lockFile(home, workspace),
    [Symbol.asyncDispose]: () => removeFolder(childFolder),
  };
}

function lockFile(home: string, workspace: string): string {
  const folder = join(home, "locks");
  Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
  const name = sha256(workspace).slice(0, 32);
  const path = join(folder, `${name}.lock`);
  Deno.openSync(path, { create: true, append: true, mode: 0o600 }).close();
  return path;
}

function removeAbandoned(parent: string): void {
  for (const { name } of Deno.readDirSync(parent)) {
    const pid = Number(/^(\d+)-/.exec(name)?.[1]);
    if (pid > 0 && !isAlive(pid)) void removeFolder(join(parent, name));
  }
}

/**
 * Removes a folder. Never throws. It is asynchronous, because a module may have created thousands
 * of files.
 */
async function removeFolder(path: string): Promise<void> {
  const remove = () => retryWhileBusy(() => Deno.remove(path, { recursive: true }));
  // A module may have created folders without read permission.
  await remove().catch(() => makeReadable(path).then(remove)).catch(() => {
    // Another process removed the folder at the same time, or a file in it cannot be removed. This
    // must not prevent a start.
  });
}

async function makeReadable(folder: string): Promise<void> {
  await Deno.chmod(folder, 0o700);
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) await makeReadable(join(folder, name));
  }
}
