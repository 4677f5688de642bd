/**
 * SHA-256. The platform's module is loaded by the first hash, so that a start without hashes is
 * faster.
 *
 * @module
 */

import process from "node:process";

/** Returns the SHA-256 hash of bytes or UTF-8 text, in lower-case hexadecimal digits. */
export function sha256(data: string | Uint8Array): string {
  return process.getBuiltinModule("node:crypto").hash("sha256", data, "hex");
}
