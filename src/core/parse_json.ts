/**
 * Parses untrusted JSON.
 *
 * V8 has an error in names of members that contain an escape: it may return a name that it parsed
 * earlier at the same place. After `{"a\\":1}`, it may read the name in `{"a\u0062":1}` as `a\`. An
 * attacker who can send both texts could give one of them two meanings.
 *
 * @module
 */

import { isObject } from "./json.ts";

const COLON = /[ \t\n\r]*:/y;
const BACKSLASH = 92;

/**
 * Parses a JSON text as `JSON.parse` does, without its error for names of members with escapes.
 *
 * @throws {SyntaxError} If the text is not JSON.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { parseJson } from "@casys/pml/registry";
 *
 * assert.deepEqual(parseJson('{"a\\u0062":1}'), { ab: 1 });
 * ```
 */
export function parseJson(text: string): ReturnType<typeof JSON.parse> {
  let mark = "";
  let names: Map<string, string> | undefined;
  let rewritten = "";
  let from = 0;
  // Replacing names does not make invalid JSON valid, so `JSON.parse` still throws below.
  for (let at = text.indexOf("\\"); at >= 0; at = text.indexOf("\\", at)) {
    let end = at;
    let escapes: number;
    do {
      escapes = end = text.indexOf('"', end + 1);
      while (text.charCodeAt(escapes - 1) === BACKSLASH) escapes--;
    } while ((end - escapes) % 2 === 1);
    if (end < 0) break;
    const escape = at;
    COLON.lastIndex = at = end + 1;
    if (!COLON.test(text)) continue;
    const start = text.lastIndexOf('"', escape);
    mark ||= crypto.randomUUID();
    names ??= new Map();
    const placeholder = `${mark}${names.size}`;
    names.set(placeholder, JSON.parse(text.slice(start, at)));
    rewritten += text.slice(from, start + 1) + placeholder;
    from = end;
  }
  const value = JSON.parse(rewritten + text.slice(from));
  if (names !== undefined) rename(value, names);
  return value;
}

/**
 * Renames members at any depth. Keeps their order; if a name occurs twice, the last member wins.
 */
function rename(value: unknown, names: ReadonlyMap<string, string>): void {
  const values = [value];
  for (const current of values) {
    if (typeof current !== "object" || current === null) continue;
    const entries = Object.entries(current);
    for (const [, member] of entries) values.push(member);
    if (!isObject(current) || !entries.some(([key]) => names.has(key))) continue;
    for (const [key] of entries) Reflect.deleteProperty(current, key);
    for (const [key, member] of entries) {
      const descriptor = { value: member, enumerable: true, writable: true, configurable: true };
      Object.defineProperty(current, names.get(key) ?? key, descriptor);
    }
  }
}
