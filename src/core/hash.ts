/**
 * SHA-256.
 *
 * @module
 */

/** Returns the SHA-256 hash of bytes or UTF-8 text, in lower-case hexadecimal digits. */
export function sha256(data: string | Uint8Array): string {
  // Loaded by the first use: `node:crypto` takes longer to load than an empty Deno takes to start.
  // deno-lint-ignore no-process-global
  return process.getBuiltinModule("node:crypto").hash("sha256", data, "hex");
}
