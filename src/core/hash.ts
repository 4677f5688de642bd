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

/** Returns the same hash without loading `node:crypto`, for the files that each start reads. */
export async function sha256Async(data: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
}

/**
 * Returns the hash of exact bytes, or of UTF-8 text, as approvals, locks and caches have it:
 * `sha256-` and 64 lower-case hexadecimal digits.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { integrityOf } from "@casys/pml/registry";
 *
 * assert.equal(integrityOf("code"), integrityOf(new TextEncoder().encode("code")));
 * ```
 */
export function integrityOf(content: string | Uint8Array): string {
  return `sha256-${sha256(content)}`;
}
