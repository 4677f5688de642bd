/**
 * Reads JSON that a module made, as plain values and nothing else.
 *
 * @module
 */

import type { PmlError } from "../core/errors.ts";
import { type Json, quoted } from "../core/json.ts";
import { failure } from "./_failure.ts";

const DEPTH_MAX = 200;
/** So many values cost the gateway about a tenth of a second and 50 MB. */
const VALUES_MAX = 500_000;
const PROTOTYPE_KEYS = new Set(["__proto__", "constructor", "prototype"]);

/** Parses a text; refuses what is no JSON, too deep, or has a key that reaches a prototype. */
export function plainJson(bytes: Uint8Array, what: string): Json {
  refuseMany(bytes, what);
  const value = parsed(bytes, what);
  check(value, { depth: 0, what });
  return value;
}

/** Counts values before they are made: each is behind a comma or a bracket outside of strings. */
function refuseMany(bytes: Uint8Array, what: string): void {
  // Two bytes a value at the least.
  if (bytes.length < 2 * VALUES_MAX) return;
  let values = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === 0x22) at = endOfString(bytes, at + 1);
    else if (byte === 0x2c || byte === 0x5b || byte === 0x7b) values++;
  }
  if (values <= VALUES_MAX) return;
  throw failure(
    "RESULT_TOO_LARGE",
    `Cannot use ${what}: it has over ${VALUES_MAX} JSON values in ${bytes.length} bytes`,
  );
}

/** Finds the quote that ends a string: one behind an even number of backslashes. */
function endOfString(bytes: Uint8Array, from: number): number {
  for (let end = bytes.indexOf(0x22, from); end >= 0; end = bytes.indexOf(0x22, end + 1)) {
    let start = end;
    while (bytes[start - 1] === 0x5c) start--;
    if ((end - start) % 2 === 0) return end;
  }
  return bytes.length;
}

function parsed(bytes: Uint8Array, what: string): Json {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch (cause) {
    throw invalid(what, "it is not JSON", cause);
  }
}

function check(value: unknown, at: { readonly depth: number; readonly what: string }): void {
  if (typeof value !== "object" || value === null) return;
  if (at.depth >= DEPTH_MAX) throw invalid(at.what, `it is nested deeper than ${DEPTH_MAX}`);
  const next = { ...at, depth: at.depth + 1 };
  const isList = Array.isArray(value);
  for (const [key, item] of Object.entries(value)) {
    if (!isList && PROTOTYPE_KEYS.has(key)) throw invalid(at.what, `it has the key ${quoted(key)}`);
    check(item, next);
  }
}

function invalid(what: string, why: string, cause?: unknown): PmlError {
  return failure("OUTPUT_INVALID", `Cannot use ${what}: ${why}`, { cause });
}
