/**
 * Limits on JSON from outside. A text is checked before it is parsed, because parsing a few
 * megabytes of empty objects would block all clients for seconds.
 *
 * @module
 */

import { PmlError } from "./errors.ts";
import { parseExact } from "./exact_json.ts";
import type { Json } from "./json.ts";
import { parseJson } from "./parse_json.ts";

/** The most JSON values in a text. This many take some 50 MB and at worst a fifth of a second. */
export const VALUES_MAX = 500_000;
const DEPTH_MAX = 10_000;

/**
 * The platform distinguishes longer names by their length only, and then compares them with each
 * other, which is slow.
 */
const NAME_BYTES = 16_000;
const LONG_NAMES_MAX = 100;

const TOO_MANY = `it has over ${VALUES_MAX} JSON values`;
const TOO_LONG_NAMES = `it has over ${LONG_NAMES_MAX} names of more than ${NAME_BYTES} bytes`;
/** The reason for refusing a text that is nested too deep. */
export const TOO_DEEP = `it is nested deeper than ${DEPTH_MAX}`;

/** How many bytes of a string are read one by one before its end is searched for. */
const NEAR = 48;
const UTF_8 = new TextDecoder();
const [QUOTE, BACKSLASH, COMMA, COLON, BLANK] = [0x22, 0x5c, 0x2c, 0x3a, 0x20];
/** The length of the name `id`, and how many bytes of a message are searched for its value. */
const [ID_NAME_MAX, ID_MAX] = [3, 400];
/** The bit in which `{` and `[`, and `}` and `]`, differ. */
const EITHER = 0x20;
const [OPENED, CLOSED] = [0x7b, 0x7d];

/**
 * Returns which limit a JSON text exceeds; undefined if none. Values are counted by what precedes
 * them: a comma, or the bracket of a container that is not empty, outside of strings.
 */
export function excessOf(bytes: Uint8Array): string | undefined {
  const { length } = bytes;
  // A shorter text cannot be nested too deep, and has too few values.
  if (length < 2 * DEPTH_MAX) return undefined;
  let values = 0;
  let depth = 0;
  let names = 0;
  for (let at = 0; at < length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) {
      const end = endOfText(bytes, at + 1);
      if (end - at > NAME_BYTES && isName(bytes, end)) names++;
      at = end;
    } else if (byte === COMMA) values++;
    else if ((byte | EITHER) === CLOSED) depth--;
    else if ((byte | EITHER) === OPENED) {
      // A container that is not empty has one value more than it has commas.
      if (((bytes[at + 1] ?? 0) | EITHER) !== CLOSED) values++;
      if (++depth > DEPTH_MAX) return TOO_DEEP;
    }
    if (values > VALUES_MAX) return TOO_MANY;
    if (names > LONG_NAMES_MAX) return TOO_LONG_NAMES;
  }
  return undefined;
}

/**
 * Returns the index of the quote that ends a string. Most strings are short; the end of a long one
 * is searched for.
 */
function endOfText(bytes: Uint8Array, from: number): number {
  const { length } = bytes;
  for (let at = from; at < length;) {
    for (const near = at + NEAR; at < near; at++) {
      if (bytes[at] === QUOTE) return at;
      if (bytes[at] === BACKSLASH) at++;
    }
    const quote = bytes.indexOf(QUOTE, at);
    if (quote < 0) return length;
    let start = quote;
    while (start > at && bytes[start - 1] === BACKSLASH) start--;
    if ((quote - start) % 2 === 0) return quote;
    at = quote + 1;
  }
  return length;
}

/** Returns the id of a message that is too large to parse; undefined if it has none. */
export function idIn(message: Uint8Array): Json | undefined {
  let id: Json | undefined;
  let depth = 0;
  for (let at = 0; at < message.length; at++) {
    const byte = message[at] ?? 0;
    if (byte === QUOTE) {
      const from = at;
      at = endOfText(message, at + 1);
      // A parser takes the last of several ids, so this does too.
      if (depth === 1 && at - from <= ID_NAME_MAX) id = idAt(message.subarray(from)) ?? id;
    } else if ((byte | EITHER) === CLOSED) depth--;
    else if ((byte | EITHER) === OPENED) depth++;
  }
  return id;
}

/** Returns the value if an `id` member begins here. */
function idAt(member: Uint8Array): Json | undefined {
  const text = UTF_8.decode(member.subarray(0, ID_MAX));
  const [, id] = /^"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*[,}]/.exec(text) ?? [];
  return id === undefined ? undefined : parseExact(id);
}

/** Returns whether the string that ends here is the name of a member. */
function isName(bytes: Uint8Array, end: number): boolean {
  let next = end + 1;
  while ((bytes[next] ?? COLON) <= BLANK) next++;
  return bytes[next] === COLON;
}

/** Parses JSON that passed `excessOf`; undefined if it is not valid. */
export function parsedJson(
  bytes: Uint8Array,
  parse: (text: string) => unknown = parseJson,
): unknown {
  try {
    return parse(UTF_8.decode(bytes));
  } catch {
    return undefined; // for example a log line, or half of a message
  }
}

/** Parses JSON; undefined if it is not valid or exceeds a limit. */
export function boundedJson(
  bytes: Uint8Array,
  parse: (text: string) => unknown = parseJson,
): unknown {
  return excessOf(bytes) === undefined ? parsedJson(bytes, parse) : undefined;
}

/** The hint for a result that is too large. */
export const ASK_FOR_LESS = "Ask for less: a part, a page or a narrower question";

/** Returns the error of a result that exceeds a limit. */
export function tooLargeError(
  what: string,
  { why, detail }: { readonly why: string; readonly detail?: Record<string, unknown> | undefined },
): PmlError {
  return new PmlError("RESULT_TOO_LARGE", `Cannot use ${what}: ${why}`, {
    hint: ASK_FOR_LESS,
    ...(detail && { detail }),
  });
}
