/**
 * Parses JSON from a module and accepts only plain values.
 *
 * @module
 */

import type { PmlError } from "../core/errors.ts";
import { type Json, quoted } from "../core/json.ts";
import { exceededLimit, TOO_DEEP, tooLargeError } from "../core/json_bounds.ts";
import { isExactNumber } from "../core/exact_number.ts";
import { parseExact } from "../core/exact_json.ts";
import { sandboxError } from "./_failure.ts";

const DEPTH_MAX = 200;
const UTF_8 = new TextDecoder();
const PROTOTYPE_KEYS = new Set(["__proto__", "constructor", "prototype"]);

/**
 * Parses a text. Throws if it is not JSON, if it is nested too deeply, or if a key could change a
 * prototype.
 */
export function plainJson(bytes: Uint8Array, what: string): Json {
  const excess = exceededLimit(bytes);
  const text = UTF_8.decode(bytes);
  if (excess === TOO_DEEP) throw invalidError(what, excess);
  if (excess !== undefined) {
    throw tooLargeError(what, { why: `${excess} in ${text.length} characters` });
  }
  const value = parseText(text, what);
  check(value, { depth: 0, what });
  return value;
}

function parseText(text: string, what: string): Json {
  try {
    return parseExact(text);
  } catch (cause) {
    throw invalidError(what, "it is not JSON", cause);
  }
}

function check(value: unknown, at: { readonly depth: number; readonly what: string }): void {
  if (typeof value !== "object" || value === null || isExactNumber(value)) return;
  if (at.depth >= DEPTH_MAX) throw invalidError(at.what, `it is nested deeper than ${DEPTH_MAX}`);
  const next = { ...at, depth: at.depth + 1 };
  const isList = Array.isArray(value);
  for (const [key, item] of Object.entries(value)) {
    if (!isList && PROTOTYPE_KEYS.has(key)) {
      throw invalidError(at.what, `it has the key ${quoted(key)}`);
    }
    check(item, next);
  }
}

function invalidError(what: string, why: string, cause?: unknown): PmlError {
  return sandboxError("OUTPUT_INVALID", `Cannot use ${what}: ${why}`, { cause });
}
