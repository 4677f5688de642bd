/**
 * Parses JSON of others.
 *
 * V8 may read the name of a member that is written with an escape as another name, which it has
 * seen at that place before: after `{"a\\":1}`, it may read the name of `{"a\u0062":1}` as `a\`. So
 * whoever has both read could have a text mean one thing here and another thing elsewhere, or
 * another time.
 *
 * @module
 */

import { isObject } from "./json.ts";

const COLON = /[ \t\n\r]*:/y;
/** A string, and what makes it the name of a member. */
const STRING = /"((?:[^"\\]|\\[^])*)"([ \t\n\r]*:)?/g;

/** Parses a JSON text. Throws as `JSON.parse` does. */
export function parseJson(text: string): ReturnType<typeof JSON.parse> {
  if (!hasEscapedName(text)) return JSON.parse(text);
  const mark = crypto.randomUUID();
  const names: string[] = [];
  const value = JSON.parse(text.replace(STRING, (whole, name: string, colon = "") => {
    if (colon === "" || !name.includes("\\")) return whole;
    return `"${mark}${names.push(JSON.parse(`"${name}"`)) - 1}"${colon}`;
  }));
  rename(value, (key) => key.startsWith(mark) ? names[Number(key.slice(mark.length))] : undefined);
  return value;
}

/** Returns whether the name of a member of a JSON text is written with an escape. */
function hasEscapedName(text: string): boolean {
  for (let at = text.indexOf("\\"); at >= 0; at = text.indexOf("\\", at)) {
    let quote = at;
    let escapes: number;
    do {
      quote = text.indexOf('"', quote + 1);
      escapes = quote;
      while (text[escapes - 1] === "\\") escapes--;
    } while ((quote - escapes) % 2 === 1);
    if (quote < 0) return false;
    COLON.lastIndex = at = quote + 1;
    if (COLON.test(text)) return true;
  }
  return false;
}

/** Renames members, also of what is nested. The order stays, and the last of a name counts. */
function rename(value: unknown, nameOf: (key: string) => string | undefined): void {
  const open = [value];
  for (const one of open) {
    if (typeof one !== "object" || one === null) continue;
    const entries = Object.entries(one);
    for (const [, member] of entries) open.push(member);
    if (!isObject(one) || !entries.some(([key]) => nameOf(key) !== undefined)) continue;
    for (const [key] of entries) Reflect.deleteProperty(one, key);
    for (const [key, member] of entries) {
      const all = { value: member, enumerable: true, writable: true, configurable: true };
      Object.defineProperty(one, nameOf(key) ?? key, all);
    }
  }
}
