/**
 * The texts of large results, so that a result that nobody changes is passed on as it came.
 *
 * @module
 */

import { isObject } from "./json.ts";
import { parseJson } from "./parse_json.ts";

/** The text of a shorter result is made again in no time. */
const LARGE = 4_096;
const HEAD = /^\{"jsonrpc":"2\.0","id":(?:"[^"\\]{1,100}"|\d{1,15}),"result":/;
const TAIL = /,"jsonrpc":"2\.0","id":(?:"[^"\\]{1,100}"|\d{1,15})\}$/;
const FIRST = '{"result":';
/** How many characters before and after a result are searched. */
const AROUND = 200;

/** The texts that results were parsed from. */
const texts = new WeakMap<object, string>();

/** Parses a message, and remembers the text of its result if that is large. Throws as `JSON.parse`. */
export function parseMessage(text: string): unknown {
  if (text.length < LARGE) return parseJson(text);
  const [head = FIRST] = HEAD.exec(text.slice(0, AROUND)) ?? [];
  const [tail = "}"] = head === FIRST ? TAIL.exec(text.slice(-AROUND)) ?? [] : [];
  const said = text.slice(head.length, -tail.length);
  try {
    // What parses by itself is one value, so what is around it are the other members.
    const result: unknown = parseJson(said);
    const message = parseJson(`${head}null${tail}`);
    if (!isObject(result) || !text.startsWith(head) || !text.endsWith(tail)) {
      return parseJson(text);
    }
    // Some clients take a carriage return for the end of a line, and what follows for a message.
    if (!said.includes("\r")) texts.set(result, said);
    return { ...message, result };
  } catch {
    return parseJson(text);
  }
}

/** Returns the text that a result was parsed from, if it is large. */
export function textOfResult(result: object): string | undefined {
  return texts.get(result);
}
