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

/** The maximum number of JSON values in a text. They take about 50 MB and at most 0.2 s. */
export const VALUES_MAX = 500_000;
const DEPTH_MAX = 10_000;

/** V8 hashes longer names by their length only, so that many of them are slow to parse. */
const NAME_BYTES = 16_000;
const LONG_NAMES_MAX = 100;

const TOO_MANY = `it has over ${VALUES_MAX} JSON values`;
const TOO_LONG_NAMES = `it has over ${LONG_NAMES_MAX} names of more than ${NAME_BYTES} bytes`;
/** The reason for refusing a text that is nested too deep. */
export const TOO_DEEP = `it is nested deeper than ${DEPTH_MAX}`;

/** How many bytes of a string are read one by one before `indexOf` searches for its end. */
const SCANNED_BYTES = 48;
const UTF_8 = new TextDecoder();
const [QUOTE, BACKSLASH, COMMA, COLON, BLANK] = [0x22, 0x5c, 0x2c, 0x3a, 0x20];
/** The length of `"id` in bytes, and how many bytes of a message are searched for the value. */
const [ID_NAME_MAX, ID_BYTES_MAX] = [3, 400];
/** The only bit in which `{` differs from `[`, and `}` from `]`. */
const BRACKET_BIT = 0x20;
const [OPEN_BRACE, CLOSE_BRACE] = [0x7b, 0x7d];

/**
 * Returns which limit a JSON text exceeds; undefined if none. To count the values, counts the
 * commas and opening brackets outside of strings: one of them precedes each value.
 */
export function exceededLimit(bytes: Uint8Array): string | undefined {
  const { length } = bytes;
  // A shorter text cannot be nested too deep, and has too few values.
  if (length < 2 * DEPTH_MAX) return undefined;
  let valueCount = 0;
  let depth = 0;
  let longNameCount = 0;
  for (let at = 0; at < length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) {
      const end = endOfText(bytes, at + 1);
      if (end - at > NAME_BYTES && isName(bytes, end)) longNameCount++;
      at = end;
    } else if (byte === COMMA) valueCount++;
    else if ((byte | BRACKET_BIT) === CLOSE_BRACE) depth--;
    else if ((byte | BRACKET_BIT) === OPEN_BRACE) {
      // A container that is not empty has one value more than it has commas.
      if (((bytes[at + 1] ?? 0) | BRACKET_BIT) !== CLOSE_BRACE) valueCount++;
      if (++depth > DEPTH_MAX) return TOO_DEEP;
    }
    if (valueCount > VALUES_MAX) return TOO_MANY;
    if (longNameCount > LONG_NAMES_MAX) return TOO_LONG_NAMES;
  }
  return undefined;
}

/**
 * Returns the index of the quote that ends a string. A loop is fastest for short strings, which
 * most are; `indexOf` for long ones.
 */
function endOfText(bytes: Uint8Array, from: number): number {
  const { length } = bytes;
  for (let at = from; at < length;) {
    for (const scanEnd = at + SCANNED_BYTES; at < scanEnd; at++) {
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
      // A parser takes the last of several `id` members, so this function does, too.
      if (depth === 1 && at - from <= ID_NAME_MAX) id = idAt(message.subarray(from)) ?? id;
    } else if ((byte | BRACKET_BIT) === CLOSE_BRACE) depth--;
    else if ((byte | BRACKET_BIT) === OPEN_BRACE) depth++;
  }
  return id;
}

/** Returns the value of an `id` member; undefined if the bytes begin with another member. */
function idAt(member: Uint8Array): Json | undefined {
  const text = UTF_8.decode(member.subarray(0, ID_BYTES_MAX));
  const [, id] = /^"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*[,}]/.exec(text) ?? [];
  return id === undefined ? undefined : parseExact(id);
}

/** Returns whether the string that ends here is the name of a member. */
function isName(bytes: Uint8Array, end: number): boolean {
  let next = end + 1;
  while ((bytes[next] ?? COLON) <= BLANK) next++;
  return bytes[next] === COLON;
}

/** Parses JSON that exceeds no limit (`exceededLimit`). Returns undefined if it is not valid. */
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
  return exceededLimit(bytes) === undefined ? parsedJson(bytes, parse) : undefined;
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
