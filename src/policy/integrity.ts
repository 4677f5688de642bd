/**
 * The hashes that approvals, locks and caches are bound to, and their comparison.
 *
 * @module
 */

import canonicalize from "canonicalize";
import { PmlError } from "../core/errors.ts";
import { withRoundedNumbers } from "../core/exact_number.ts";
import { integrityOf } from "../core/hash.ts";
import { type Json, sortedJsonText } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";

/** Returns whether a value is a hash in the form of `canonicalHash()`. */
export function isIntegrity(value: unknown): boolean {
  return typeof value === "string" && /^sha256-[0-9a-f]{64}$/.test(value);
}

/**
 * Returns the canonical JSON of a value (RFC 8785). The order of keys does not matter. Numbers are
 * rounded to doubles: `1` and `1.0` are the same, and so are integers beyond 2^53 with the same
 * double.
 */
export function canonicalText(value: unknown): string {
  return canonicalize(withRoundedNumbers(value)) ?? "";
}

/**
 * Returns the hash of a value's canonical JSON (RFC 8785): `sha256-` and 64 hexadecimal digits. The
 * order of keys does not matter, and numbers are rounded to doubles.
 *
 * @throws {Error} If JSON cannot contain the value: a number that is not finite, or a part of a
 * surrogate pair.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { canonicalHash } from "@casys/pml/registry";
 *
 * assert.equal(canonicalHash({ a: 1, b: 2 }), canonicalHash({ b: 2, a: 1.0 }));
 * assert.throws(() => canonicalHash({ a: Infinity }));
 * ```
 */
export function canonicalHash(value: unknown): string {
  return integrityOf(canonicalText(value));
}

/**
 * Returns the hash of a tool's definition. Numbers are hashed as doubles, as in earlier versions of
 * PML and of hubs, so that pins and locks stay valid. Never throws for a definition that was parsed
 * from JSON.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { definitionHash } from "@casys/pml/registry";
 *
 * const definition = { name: "greet", inputSchema: { type: "object" } };
 * assert.match(definitionHash(definition), /^sha256-[0-9a-f]{64}$/);
 * ```
 */
export function definitionHash(definition: ToolDefinition): string {
  try {
    return canonicalHash(definition);
  } catch {
    // The server truncated a text within a character, which canonical JSON does not allow.
    return integrityOf(sortedJsonText(withRoundedNumbers(definition) as unknown as Json));
  }
}

/**
 * Throws INTEGRITY_MISMATCH if the code is not the approved code. Does nothing if `approved` is
 * undefined.
 */
export function assertIntegrity(
  server: string,
  { approved, actual }: { readonly approved: string | undefined; readonly actual: string },
): void {
  if (approved === undefined || actual === approved) return;
  throw new PmlError(
    "INTEGRITY_MISMATCH",
    `Cannot run "${server}": its code is ${actual}, and ${approved} was approved`,
    { hint: "Review the change, then run `pml trust`" },
  );
}
