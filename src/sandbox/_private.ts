/**
 * Creates the private folder of a child in the PML home, and the lock file of a workspace.
 *
 * @module
 */

import { sha256 } from "../core/hash.ts";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { isAlive } from "../io/folder_lock.ts";
import { repeated } from "../io/waiting.ts";

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
  const all = join(home, "sandbox");
  Deno.mkdirSync(all, { recursive: true, mode: 0o700 });
  sweep(all);
  // The process id alone is not enough: PML in another container may have the same one and would
  // remove the folder.
  const own = join(all, `${Deno.pid}-${mark}${randomBytes(8).toString("hex")}`);
  const [denoDir, temp] = [join(own, "deno"), join(own, "temp")];
  for (const folder of [own, denoDir, temp]) Deno.mkdirSync(folder, { mode: 0o700 });
  const canary = join(own, "canary.mjs");
  // The file is empty, so that it can be created on a full disk, too.
  Deno.openSync(canary, { write: true, createNew: true, mode: 0o600 }).close();
  return {
    denoDir,
    temp,
    canary,
    lock: lockFile(home, workspace),
    [Symbol.asyncDispose]: () => removeFolder(own),
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

function sweep(all: string): void {
  for (const { name } of Deno.readDirSync(all)) {
    const pid = Number(/^(\d+)-/.exec(name)?.[1]);
    if (pid > 0 && !isAlive(pid)) void removeFolder(join(all, name));
  }
}

/**
 * Removes a folder. Never throws. It is asynchronous, because a module may have created thousands
 * of files.
 */
async function removeFolder(path: string): Promise<void> {
  const remove = () => repeated(() => Deno.remove(path, { recursive: true }));
  // A module may have created folders without read permission.
  await remove().catch(() => openUp(path).then(remove)).catch(() => {
    // Another process removed it at the same time, or something cannot be removed. That must not
    // stop a start.
  });
}

async function openUp(folder: string): Promise<void> {
  await Deno.chmod(folder, 0o700);
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) await openUp(join(folder, name));
  }
}
