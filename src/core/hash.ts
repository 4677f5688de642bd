/**
 * SHA-256, loaded by the first one who hashes: a start that hashes nothing is sooner ready.
 *
 * @module
 */

import process from "node:process";

/** Hashes bytes or UTF-8 text with SHA-256, in lower-case hexadecimal digits. */
export function sha256(data: string | Uint8Array): string {
  return process.getBuiltinModule("node:crypto").hash("sha256", data, "hex");
}
