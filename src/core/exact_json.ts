/**
 * Parses JSON whose numbers keep their text.
 *
 * The texts of such numbers are found first, so that other messages, which are nearly all, are
 * parsed by the platform alone. The reviver of `JSON.parse` has the texts, too, but takes 20 times
 * as long for a large message.
 *
 * @module
 */

import { type ExactNumber, exactNumber, isChangedByParsing } from "./exact_number.ts";
import { setMember } from "./json.ts";
import { parseJson } from "./parse_json.ts";

/** A number that parsing may change, or a part of a string that looks like one. */
const CANDIDATE = /(?:^|[[:,\s])-?(?:\d{16}|\d+[.eE]|0(?<=-0))/;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const NAME_END = /[ \t\n\r]*:/y;
/** A mark has 60 random bits, so a message cannot contain its own. */
const MARK_LENGTH = 18;
const [QUOTE, BACKSLASH, MINUS, ZERO, NINE] = [0x22, 0x5c, 0x2d, 0x30, 0x39];

/** Parses a JSON text. Numbers that `JSON.parse` would change are raw. Throws as `JSON.parse` does. */
export function parseExact(text: string): ReturnType<typeof JSON.parse> {
  if (!CANDIDATE.test(text)) return parseJson(text);
  const mark = crypto.randomUUID().slice(0, MARK_LENGTH);
  const numbers: ExactNumber[] = [];
  const places = new Map<string, number>();
  let marked = "";
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at + 1);
    if (code !== MINUS && (code < ZERO || code > NINE)) continue;
    NUMBER.lastIndex = at;
    const [number = ""] = NUMBER.exec(text) ?? [];
    if (number === "") continue;
    const end = at + number.length;
    if (number.length > 1 && isChangedByParsing(number)) {
      // No number can be the name of a member, but the mark that replaces it could.
      NAME_END.lastIndex = end;
      if (NAME_END.test(text)) continue;
      let place = places.get(number);
      if (place === undefined) places.set(number, place = numbers.push(exactNumber(number)) - 1);
      marked += `${text.slice(from, at)}"${mark}${place}"`;
      from = end;
    }
    at = end - 1;
  }
  const value: unknown = parseJson(marked + text.slice(from));
  return numbers.length === 0 ? value : withNumbers(value, mark, numbers);
}

/** Returns where a string ends that begins before `from`; the end of the text if it does not end. */
function endOfString(text: string, from: number): number {
  for (let at = from;;) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return text.length;
    let start = quote;
    while (start > from && text.charCodeAt(start - 1) === BACKSLASH) start--;
    if ((quote - start) % 2 === 0) return quote;
    at = quote + 1;
  }
}

/** Replaces the marks in a value by their numbers. */
function withNumbers(whole: unknown, mark: string, numbers: readonly ExactNumber[]): unknown {
  const numberAt = (value: unknown) =>
    typeof value === "string" && value.startsWith(mark)
      ? numbers[Number(value.slice(mark.length))]
      : undefined;
  const open = [whole];
  for (const one of open) {
    if (typeof one !== "object" || one === null) continue;
    for (const name of Object.keys(one)) {
      const value: unknown = Reflect.get(one, name);
      const number = numberAt(value);
      if (number !== undefined) setMember(one as Record<string, never>, name, number as never);
      else if (typeof value === "object" && value !== null) open.push(value);
    }
  }
  return numberAt(whole) ?? whole;
}
