/**
 * Hashes that approvals, locks and caches are bound to, and how they are compared.
 *
 * @module
 */

import canonicalize from "canonicalize";
import { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import type { ToolDefinition } from "../core/tool.ts";

/** Hashes exact bytes, or UTF-8 text: `sha256-` and 64 lower-case hexadecimal digits. */
export function integrityOf(content: string | Uint8Array): string {
  return `sha256-${sha256(content)}`;
}

/** Tells whether a value is such a hash. */
export function isIntegrity(value: unknown): boolean {
  return typeof value === "string" && /^sha256-[0-9a-f]{64}$/.test(value);
}

/** Hashes a value over canonical JSON (RFC 8785), so that key order does not count. */
export function canonicalHash(value: unknown): string {
  return integrityOf(canonicalize(value) ?? "");
}

/** Hashes a tool's definition. */
export function definitionHash(definition: ToolDefinition): string {
  return canonicalHash(definition);
}

/** Refuses code that is not the approved one; without a hash there is nothing to compare. */
export function assertIntegrity(
  server: string,
  { approved, atHand }: { readonly approved: string | undefined; readonly atHand: string },
): void {
  if (approved === undefined || atHand === approved) return;
  throw new PmlError(
    "INTEGRITY_MISMATCH",
    `Cannot run "${server}": its code is ${atHand}, and ${approved} was approved`,
    { hint: "Look at what changed, then run `pml trust`" },
  );
}
