/**
 * Lets only one process at a time create a folder, and removes unfinished folders of killed
 * processes.
 *
 * @module
 */

import { dirname, join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { infoAt, stampAt, stampOf } from "./path_info.ts";
import { unlessGone } from "./private_files.ts";
import { retryWhileBusySync } from "./waiting.ts";

/** The age from which an unfinished installation counts as abandoned, in milliseconds. */
const ABANDONED_MS = 3_600_000;

/** Locks a folder until the result is disposed. Throws `OVERLOADED` if another process has it. */
export function lockFolder(folder: string): Disposable {
  const path = `${folder}.lock`;
  Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const options = { read: true, write: true, create: true, mode: 0o600 };
  // On Windows a file that is being removed cannot be opened.
  const file = retryWhileBusySync(() => Deno.openSync(path, options));
  // The previous owner removes the file at its end. If `file` was opened before that removal, the
  // path now leads to another file, or to none.
  if (!file.tryLockSync(true) || stampAt(path) !== stampOf(file.statSync())) {
    file.close();
    const message = `Cannot install ${quoted(folder, 400)}: another PML is installing it`;
    throw new PmlError("OVERLOADED", message, {
      hint: "Try again when the other one has finished",
    });
  }
  return {
    [Symbol.dispose]() {
      Deno.removeSync(path);
      file.close();
    },
  };
}

/** Removes abandoned installations in a folder. `isUnfinished` recognizes their names. */
export async function sweepAbandoned(
  folder: string,
  isUnfinished: (name: string) => boolean,
): Promise<void> {
  for (const { name } of Deno.readDirSync(folder)) {
    const path = join(folder, name);
    const since = Number(infoAt(path)?.mtime ?? Infinity);
    if (!isUnfinished(name) || Date.now() - since < ABANDONED_MS) continue;
    await Deno.remove(path, { recursive: true }).catch(unlessGone);
  }
}

/** Returns whether a process is running, even if another user owns it. */
export function isAlive(pid: number): boolean {
  try {
    // Not imported: `node:process` takes 6 ms to load.
    // deno-lint-ignore no-process-global
    return process.kill(pid, 0);
  } catch (error) {
    // ESRCH: there is no process with that number. EPERM: the process belongs to another user.
    return Object(error).code !== "ESRCH";
  }
}
