/**
 * Bounds on JSON from outside. A text is looked over before it is parsed: a few megabytes of empty
 * objects would hold up everybody for seconds.
 *
 * @module
 */

import { PmlError } from "./errors.ts";

/** The most values: so many cost some 50 MB, and a fifth of a second at the worst. */
export const VALUES_MAX = 500_000;
const DEPTH_MAX = 10_000;

/** Longer names the platform tells apart by their length alone, and then compares with each other. */
const NAME_BYTES = 16_000;
const LONG_NAMES_MAX = 100;

const TOO_MANY = `it has over ${VALUES_MAX} JSON values`;
const TOO_LONG_NAMES = `it has over ${LONG_NAMES_MAX} names of more than ${NAME_BYTES} bytes`;
/** What is said of a text that is nested too deep. */
export const TOO_DEEP = `it is nested deeper than ${DEPTH_MAX}`;

/** How many bytes of a text are looked at one by one before its end is searched for. */
const NEAR = 48;
const UTF_8 = new TextDecoder();
const [QUOTE, BACKSLASH, COMMA, COLON, BLANK] = [0x22, 0x5c, 0x2c, 0x3a, 0x20];
/** How long the name `id` is, and how much of a message is looked at for its value. */
const [ID_NAME_MAX, ID_MAX] = [3, 400];
/** The bit by which `{` and `[`, and `}` and `]`, differ. */
const EITHER = 0x20;
const [OPENED, CLOSED] = [0x7b, 0x7d];

/**
 * Tells what of a JSON text is more than it may be; undefined where nothing is. Values are counted
 * by what stands before them: a comma, or the bracket of what is not empty, outside of texts.
 */
export function excessOf(bytes: Uint8Array): string | undefined {
  const { length } = bytes;
  // What is shorter cannot be nested too deep, and has too few values.
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
      // One with anything in it has a value more than commas.
      if (((bytes[at + 1] ?? 0) | EITHER) !== CLOSED) values++;
      if (++depth > DEPTH_MAX) return TOO_DEEP;
    }
    if (values > VALUES_MAX) return TOO_MANY;
    if (names > LONG_NAMES_MAX) return TOO_LONG_NAMES;
  }
  return undefined;
}

/** Finds the quote that ends a text. Most texts are short; the ends of long ones are searched for. */
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

/** Finds the id of a message that is too much to be parsed; undefined where it has none. */
export function idIn(message: Uint8Array): string | number | undefined {
  let id: string | number | undefined;
  let depth = 0;
  for (let at = 0; at < message.length; at++) {
    const byte = message[at] ?? 0;
    if (byte === QUOTE) {
      const from = at;
      at = endOfText(message, at + 1);
      // As a parser does, the last one is taken of several.
      if (depth === 1 && at - from <= ID_NAME_MAX) id = idAt(message.subarray(from)) ?? id;
    } else if ((byte | EITHER) === CLOSED) depth--;
    else if ((byte | EITHER) === OPENED) depth++;
  }
  return id;
}

/** Reads the member that begins here, if it is an id. */
function idAt(member: Uint8Array): string | number | undefined {
  const text = UTF_8.decode(member.subarray(0, ID_MAX));
  const [, id] = /^"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*[,}]/.exec(text) ?? [];
  return id === undefined ? undefined : JSON.parse(id);
}

/** Tells whether a text that ends there is the name of a member. */
function isName(bytes: Uint8Array, end: number): boolean {
  let next = end + 1;
  while ((bytes[next] ?? COLON) <= BLANK) next++;
  return bytes[next] === COLON;
}

/** Parses JSON that was looked over; undefined where it is none. */
export function parsedJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(UTF_8.decode(bytes));
  } catch {
    return undefined; // a log line, or half of a message
  }
}

/** Parses JSON; undefined where it is none, or more than it may be. */
export function boundedJson(bytes: Uint8Array): unknown {
  return excessOf(bytes) === undefined ? parsedJson(bytes) : undefined;
}

/** Makes the error of a result that is more than it may be. */
export function tooLarge(
  what: string,
  { why, detail }: { readonly why: string; readonly detail?: Record<string, unknown> | undefined },
): PmlError {
  return new PmlError("RESULT_TOO_LARGE", `Cannot use ${what}: ${why}`, {
    hint: "Ask for less: a part, a page or a narrower question",
    ...(detail && { detail }),
  });
}
