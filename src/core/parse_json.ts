/**
 * Parses untrusted JSON.
 *
 * V8 may read the name of a member that is written with an escape as another name, which it has
 * seen at that place before: after `{"a\\":1}`, it may read the name of `{"a\u0062":1}` as `a\`. An
 * attacker who can send both could give a text two meanings.
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
  let marked = "";
  let from = 0;
  // A text that is no JSON is still none with other names, so `JSON.parse` throws below.
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
    const other = `${mark}${names.size}`;
    names.set(other, JSON.parse(text.slice(start, at)));
    marked += text.slice(from, start + 1) + other;
    from = end;
  }
  const value = JSON.parse(marked + text.slice(from));
  if (names !== undefined) rename(value, names);
  return value;
}

/** Renames members, also nested ones. The order stays, and the last of a name counts. */
function rename(value: unknown, names: ReadonlyMap<string, string>): void {
  const open = [value];
  for (const one of open) {
    if (typeof one !== "object" || one === null) continue;
    const entries = Object.entries(one);
    for (const [, member] of entries) open.push(member);
    if (!isObject(one) || !entries.some(([key]) => names.has(key))) continue;
    for (const [key] of entries) Reflect.deleteProperty(one, key);
    for (const [key, member] of entries) {
      const all = { value: member, enumerable: true, writable: true, configurable: true };
      Object.defineProperty(one, names.get(key) ?? key, all);
    }
  }
}
