/**
 * The private folder of a child under the PML home, and the lock file of a workspace.
 *
 * @module
 */

import { sha256 } from "../core/hash.ts";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import process from "node:process";

/** The private places of one child. */
export interface PrivateFolder extends AsyncDisposable {
  readonly denoDir: string;
  readonly temp: string;
  /** A file that nothing in the child may read. */
  readonly canary: string;
  /** The lock file that all children of the workspace share. */
  readonly lock: string;
}

/** Makes the private folder of a child, and takes away those of processes that are gone. */
export function openPrivateFolder(home: string, workspace: string, mark = ""): PrivateFolder {
  const all = join(home, "sandbox");
  Deno.mkdirSync(all, { recursive: true, mode: 0o700 });
  sweep(all);
  // By the number alone, the PML of another container that has the same would remove it.
  const own = join(all, `${process.pid}-${mark}${randomBytes(8).toString("hex")}`);
  const [denoDir, temp] = [join(own, "deno"), join(own, "temp")];
  for (const folder of [own, denoDir, temp]) Deno.mkdirSync(folder, { mode: 0o700 });
  const canary = join(own, "canary.mjs");
  // Empty, so that a full disk takes it.
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

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Not ours to signal is alive all the same.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Never throws, and blocks nobody: a module may have made many thousand files. */
async function removeFolder(path: string): Promise<void> {
  const remove = () => Deno.remove(path, { recursive: true });
  // A module may have closed folders that it made.
  await remove().catch(() => openUp(path).then(remove)).catch(() => {
    // Another process swept it at the same time, or what is left stays: it must not stop a start.
  });
}

async function openUp(folder: string): Promise<void> {
  await Deno.chmod(folder, 0o700);
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) await openUp(join(folder, name));
  }
}
