/**
 * SHA-256.
 *
 * @module
 */

import { nodeCrypto } from "./builtin.ts";

/** Returns the SHA-256 hash of bytes or UTF-8 text, in lower-case hexadecimal digits. */
export function sha256(data: string | Uint8Array): string {
  return nodeCrypto().hash("sha256", data, "hex");
}
