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
  const text = new TextDecoder().decode(bytes);
  refuseMany(text, what);
  const value = parsed(text, what);
  check(value, { depth: 0, what });
  return value;
}

/** Counts values before they are made: each is behind a comma or a bracket outside of strings. */
function refuseMany(text: string, what: string): void {
  // Two characters a value at the least.
  if (text.length < 2 * VALUES_MAX) return;
  let values = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) at = endOfString(text, at + 1);
    else if (code === 0x2c || code === 0x5b || code === 0x7b) values++;
  }
  if (values <= VALUES_MAX) return;
  throw failure(
    "RESULT_TOO_LARGE",
    `Cannot use ${what}: it has over ${VALUES_MAX} JSON values in ${text.length} characters`,
  );
}

/** Finds the quote that ends a string: one behind an even number of backslashes. */
function endOfString(text: string, from: number): number {
  for (let end = text.indexOf('"', from); end >= 0; end = text.indexOf('"', end + 1)) {
    let start = end;
    while (text.charCodeAt(start - 1) === 0x5c) start--;
    if ((end - start) % 2 === 0) return end;
  }
  return text.length;
}

function parsed(text: string, what: string): Json {
  try {
    return JSON.parse(text);
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
