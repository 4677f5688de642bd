/**
 * SHA-256.
 *
 * @module
 */

import type { Hash } from "node:crypto";

/** Returns the SHA-256 hash of bytes or UTF-8 text, in lower-case hexadecimal digits. */
export function sha256(data: string | Uint8Array): string {
  // Loaded by the first use: `node:crypto` takes longer to load than an empty Deno takes to start.
  // deno-lint-ignore no-process-global
  return process.getBuiltinModule("node:crypto").hash("sha256", data, "hex");
}

/** Creates a SHA-256 hash that takes its data in pieces. */
export function sha256Pieces(): Hash {
  // deno-lint-ignore no-process-global
  return process.getBuiltinModule("node:crypto").createHash("sha256");
}

/** Does the same as `sha256` without loading `node:crypto`, for files that every start reads. */
export async function sha256Async(data: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
}

/**
 * Returns the hash of bytes or UTF-8 text in the form of approvals, locks and caches: `sha256-` and
 * 64 lower-case hexadecimal digits.
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
