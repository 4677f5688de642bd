/**
 * The texts of large results, so that an unchanged result is passed on with its text.
 *
 * @module
 */

import { isObject } from "./json.ts";
import { parseExact } from "./exact_json.ts";
import { memoized } from "./memo.ts";

/** The text of a shorter result is made again in no time. */
const LARGE = 4_096;
const HEAD = /^\{"jsonrpc":"2\.0","id":(?:"[^"\\]{1,100}"|\d{1,15}),"result":/;
const TAIL = /,"jsonrpc":"2\.0","id":(?:"[^"\\]{1,100}"|\d{1,15})\}$/;
const FIRST = '{"result":';
/** How many characters before and after a result are searched. */
const AROUND = 200;

const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c];
/** The bit in which `{` and `[`, and `}` and `]`, differ. */
const EITHER = 0x20;
const [OPENED, CLOSED] = [0x7b, 0x7d];

/** The line ends of JSON texts. Searching them one by one is faster than one pattern. */
const LINE_ENDS = ["\n", "\r", "\x85", "\u2028", "\u2029"];
const LINE_END = new RegExp(`[${LINE_ENDS.join("")}]`, "g");

/** The texts that results were parsed from, each in one line. */
const texts = new WeakMap<object, string>();

/** Parses a message, and remembers the text of its result if that is large. Throws as `JSON.parse`. */
export function parseMessage(text: string): unknown {
  if (text.length < LARGE) return parseExact(text);
  const [head = FIRST] = HEAD.exec(text.slice(0, AROUND)) ?? [];
  const [tail = "}"] = head === FIRST ? TAIL.exec(text.slice(-AROUND)) ?? [] : [];
  const content = text.slice(head.length, -tail.length);
  try {
    // A text that parses is one value, so the text around it has the other members.
    const result: unknown = parseExact(content);
    const message = parseExact(`${head}null${tail}`);
    if (!isObject(result) || !text.startsWith(head) || !text.endsWith(tail)) {
      return parseExact(text);
    }
    // A client may take the first of two members with one name, and PML reads the last.
    const isPlain = hasEachOnce(content, result) ||
      memberCount(content) === Object.keys(result).length;
    if (isPlain) texts.set(result, inOneLine(content));
    return { ...message, result };
  } catch {
    return parseExact(text);
  }
}

/**
 * Returns whether each name occurs only once in the text of an object, also within other values, and
 * none can be written in another way. This finds most texts without reading them token by token.
 */
function hasEachOnce(text: string, object: object): boolean {
  if (text.includes("\\u") || text.includes("\\/")) return false;
  return Object.keys(object).every((key) => {
    const name = JSON.stringify(key);
    return !name.includes("\\") && text.indexOf(name) === text.lastIndexOf(name);
  });
}

/** Counts the members of an object in a valid JSON text, a name that occurs twice as two. */
function memberCount(object: string): number {
  let [commas, depth] = [0, 0];
  for (let at = 0; at < object.length; at++) {
    const code = object.charCodeAt(at);
    if (code === QUOTE) at = endOfText(object, at + 1);
    else if (code === COMMA && depth === 1) commas++;
    else if ((code | EITHER) === OPENED) depth++;
    else if ((code | EITHER) === CLOSED) depth--;
  }
  return commas + 1;
}

/** Returns where a text ends that begins at `from`. */
function endOfText(json: string, from: number): number {
  for (let at = from;;) {
    const quote = json.indexOf('"', at);
    let start = quote;
    while (json.charCodeAt(start - 1) === BACKSLASH) start--;
    if ((quote - start) % 2 === 0) return quote;
    at = quote + 1;
  }
}

/** Returns the text that a result was parsed from, in one line, if it is large. */
export function textOfResult(result: object): string | undefined {
  return texts.get(result);
}

/**
 * Returns the JSON text of the items of a list, which is written once for an array: clients get the
 * same lists again and again.
 */
export const textOfItems: (items: readonly unknown[]) => string = memoized(
  (items: readonly unknown[]) => JSON.stringify(items),
);

/**
 * Returns a JSON text without line ends. JSON allows them between tokens, where a blank has the same
 * meaning: a reader of lines would parse each part as a message. U+0085, U+2028 and U+2029 occur only
 * in strings and are escaped, because some readers end lines there (Node's `readline`, Python's
 * `splitlines`). Nothing is parsed, so that all numbers stay exact.
 */
export function inOneLine(json: string): string {
  for (const end of LINE_ENDS) if (json.includes(end)) return json.replace(LINE_END, withoutEnd);
  return json;
}

function withoutEnd(end: string): string {
  return end < " " ? " " : `\\u${end.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
