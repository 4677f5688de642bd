/**
 * Parses JSON whose numbers keep their text.
 *
 * The parser first searches for numbers that `JSON.parse` would change. Nearly all messages have
 * none and go straight to `JSON.parse`. A reviver of `JSON.parse` could see the texts of all
 * numbers, but takes 20 times as long for a large message.
 *
 * @module
 */

import { type ExactNumber, exactNumber, isChangedByParsing } from "./exact_number.ts";
import { setMember } from "./json.ts";
import { parseJson } from "./parse_json.ts";

/** A number that parsing may change, or a part of a string that looks like one. */
const CANDIDATE = /(?:^|[[:,\s])-?(?:\d{16}|\d+[.eE]|0(?<=-0))/;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const NAME_END = /[ \t\n\r]*:/y;
/** A mark has 60 random bits, so a message cannot contain its own mark. */
const MARK_LENGTH = 18;
const [QUOTE, BACKSLASH, MINUS, ZERO, NINE] = [0x22, 0x5c, 0x2d, 0x30, 0x39];
const [PLUS, POINT, LOWER_E, UPPER_E] = [0x2b, 0x2e, 0x65, 0x45];

/**
 * Parses a JSON text. Numbers that `JSON.parse` would change, such as integers beyond 2^53, keep
 * their text: each is the object that `JSON.rawJSON()` creates.
 *
 * @throws {SyntaxError} If the text is not JSON.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { parseExact } from "@casys/pml/registry";
 *
 * const text = '{"id":12345678901234567890}';
 * assert.equal(JSON.stringify(parseExact(text)), text);
 * assert.notEqual(JSON.stringify(JSON.parse(text)), text);
 * ```
 */
export function parseExact(text: string): ReturnType<typeof JSON.parse> {
  if (!CANDIDATE.test(text)) return parseJson(text);
  const mark = crypto.randomUUID().slice(0, MARK_LENGTH);
  const numbers: ExactNumber[] = [];
  const places = new Map<string, number>();
  let rewritten = "";
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at + 1);
    if (code !== MINUS && !isDigit(code)) continue;
    const end = endOfNumber(text, at + 1);
    const number = text.slice(at, end);
    if (end > at + 1 && isChangedByParsing(number) && isNumber(text, { number, end })) {
      let place = places.get(number);
      if (place === undefined) places.set(number, place = numbers.push(exactNumber(number)) - 1);
      rewritten += `${text.slice(from, at)}"${mark}${place}"`;
      from = end;
    }
    at = end - 1;
  }
  const value: unknown = parseJson(rewritten + text.slice(from));
  return numbers.length === 0 ? value : withNumbers(value, mark, numbers);
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

/** Returns where the characters of a number end. */
function endOfNumber(text: string, from: number): number {
  for (let at = from;; at++) {
    const code = text.charCodeAt(at);
    const isPart = isDigit(code) || code === POINT || code === LOWER_E || code === UPPER_E ||
      code === PLUS || code === MINUS;
    if (!isPart) return at;
  }
}

/** Returns whether a text is a number of JSON. `JSON.parse` throws for others. */
function isNumber(
  text: string,
  { number, end }: { readonly number: string; readonly end: number },
): boolean {
  // Before a colon, the mark (a string) would turn invalid JSON into a valid name of a member.
  NAME_END.lastIndex = end;
  return NUMBER.test(number) && !NAME_END.test(text);
}

/** Returns the index of the quote that ends a string; the length of the text if there is none. */
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
function withNumbers(root: unknown, mark: string, numbers: readonly ExactNumber[]): unknown {
  const numberAt = (value: unknown) =>
    typeof value === "string" && value.startsWith(mark)
      ? numbers[Number(value.slice(mark.length))]
      : undefined;
  const containers = [root];
  const numberFor = (value: unknown) => {
    if (typeof value === "object" && value !== null) containers.push(value);
    return numberAt(value);
  };
  for (const container of containers) {
    if (Array.isArray(container)) {
      for (let at = 0; at < container.length; at++) {
        container[at] = numberFor(container[at]) ?? container[at];
      }
      continue;
    }
    for (const [name, value] of Object.entries(container as object ?? {})) {
      const number = numberFor(value);
      if (number !== undefined) {
        setMember(container as Record<string, never>, name, number as never);
      }
    }
  }
  return numberAt(root) ?? root;
}
