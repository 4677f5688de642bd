/**
 * Keeps the texts of large results, so that PML passes on an unchanged result without writing its
 * JSON again.
 *
 * @module
 */

import { isObject } from "./json.ts";
import { parseExact } from "./exact_json.ts";
import { memoized } from "./memo.ts";

/** The minimum length of a kept text, in characters. Writing a shorter one again is fast. */
const LARGE_LENGTH = 4_096;
const HEAD = /^\{"jsonrpc":"2\.0","id":(?:"[^"\\]{1,100}"|\d{1,15}),"result":/;
const TAIL = /,"jsonrpc":"2\.0","id":(?:"[^"\\]{1,100}"|\d{1,15})\}$/;
const RESULT_FIRST_HEAD = '{"result":';
/** How many characters at the beginning and the end of a message are searched for its result. */
const SEARCHED_LENGTH = 200;

const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c];
/** The only bit in which `{` differs from `[`, and `}` from `]`. */
const BRACKET_BIT = 0x20;
const [OPEN_BRACE, CLOSE_BRACE] = [0x7b, 0x7d];

/** Characters that readers treat as line ends. Searching for each is faster than one pattern. */
const LINE_ENDS = ["\n", "\r", "\x85", "\u2028", "\u2029"];
const LINE_END = new RegExp(`[${LINE_ENDS.join("")}]`, "g");

/** The texts that results were parsed from, each in one line. */
const texts = new WeakMap<object, string>();

/** Parses a message, and keeps the text of a large result. Throws `SyntaxError` as `JSON.parse`. */
export function parseMessage(text: string): unknown {
  if (text.length < LARGE_LENGTH) return parseExact(text);
  const [head = RESULT_FIRST_HEAD] = HEAD.exec(text.slice(0, SEARCHED_LENGTH)) ?? [];
  const [tail = "}"] = head === RESULT_FIRST_HEAD
    ? TAIL.exec(text.slice(-SEARCHED_LENGTH)) ?? []
    : [];
  const content = text.slice(head.length, -tail.length);
  try {
    // If `content` parses, it is exactly one value, and the other members are in `head` and `tail`.
    const result: unknown = parseExact(content);
    const message = parseExact(`${head}null${tail}`);
    if (!isObject(result) || !text.startsWith(head) || !text.endsWith(tail)) {
      return parseExact(text);
    }
    // If a name occurs twice, PML reads the last member, but a client may read the first.
    const isPlain = hasEachOnce(content, result) ||
      memberCount(content) === Object.keys(result).length;
    if (isPlain) texts.set(result, toOneLine(content));
    return { ...message, result };
  } catch {
    return parseExact(text);
  }
}

/**
 * Returns whether the name of each member occurs only once in the text of an object, even as a part
 * of other values, and the text has no other spelling of it. This fast test is enough for most
 * texts.
 */
function hasEachOnce(text: string, object: object): boolean {
  if (text.includes("\\u") || text.includes("\\/")) return false;
  return Object.keys(object).every((key) => {
    const name = JSON.stringify(key);
    return !name.includes("\\") && text.indexOf(name) === text.lastIndexOf(name);
  });
}

/** Counts the members of an object in a valid JSON text. Counts a name that occurs twice twice. */
function memberCount(object: string): number {
  let [commas, depth] = [0, 0];
  for (let at = 0; at < object.length; at++) {
    const code = object.charCodeAt(at);
    if (code === QUOTE) at = endOfText(object, at + 1);
    else if (code === COMMA && depth === 1) commas++;
    else if ((code | BRACKET_BIT) === OPEN_BRACE) depth++;
    else if ((code | BRACKET_BIT) === CLOSE_BRACE) depth--;
  }
  return commas + 1;
}

/** Returns the index of the quote that ends the string whose content begins at `from`. */
function endOfText(json: string, from: number): number {
  for (let at = from;;) {
    const quote = json.indexOf('"', at);
    let start = quote;
    while (json.charCodeAt(start - 1) === BACKSLASH) start--;
    if ((quote - start) % 2 === 0) return quote;
    at = quote + 1;
  }
}

/** Returns the text of a large result in one line; undefined if none was kept. */
export function textOfResult(result: object): string | undefined {
  return texts.get(result);
}

/**
 * Returns the JSON text of the items of a list. Keeps the text for each array, because clients
 * request the same lists many times.
 */
export const textOfItems: (items: readonly unknown[]) => string = memoized(
  (items: readonly unknown[]) => JSON.stringify(items),
);

/**
 * Returns a JSON text without line ends, because a reader of lines would parse each part as a
 * message. A blank replaces a line break, which JSON allows between tokens. U+0085, U+2028 and
 * U+2029 occur only in strings and are escaped: some readers (Node's `readline`, Python's
 * `splitlines`) end lines there. Does not parse the text, so that all numbers stay exact.
 */
export function toOneLine(json: string): string {
  for (const end of LINE_ENDS) if (json.includes(end)) return json.replace(LINE_END, escapeLineEnd);
  return json;
}

function escapeLineEnd(end: string): string {
  return end < " " ? " " : `\\u${end.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
