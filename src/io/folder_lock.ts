/**
 * Lets one process at a time make a folder.
 *
 * @module
 */

import { dirname } from "node:path";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { stampAt, stampOf } from "./place.ts";

/** Holds a folder that is being made, until it is disposed; throws where another does. */
export function alone(folder: string): Disposable {
  const path = `${folder}.lock`;
  Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = Deno.openSync(path, { read: true, write: true, create: true, mode: 0o600 });
  // Who was just done took the file away, which others may have opened before.
  if (!file.tryLockSync(true) || stampAt(path) !== stampOf(file.statSync())) {
    file.close();
    const message = `Cannot install ${quoted(folder, 400)}: another PML is installing it`;
    throw new PmlError("OVERLOADED", message, { hint: "Run it again when the other is done" });
  }
  return {
    [Symbol.dispose]() {
      Deno.removeSync(path);
      file.close();
    },
  };
}
