/**
 * Lets only one process at a time create a folder.
 *
 * @module
 */

import { dirname } from "node:path";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { stampAt, stampOf } from "./place.ts";

/** Locks a folder until it is disposed. Throws `OVERLOADED` if another process holds the lock. */
export function lockFolder(folder: string): Disposable {
  const path = `${folder}.lock`;
  Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = Deno.openSync(path, { read: true, write: true, create: true, mode: 0o600 });
  // The previous owner removes the file, which others may have opened before that.
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
