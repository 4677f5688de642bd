/**
 * Reads what servers list and log: bounded, and with what is none left out.
 *
 * @module
 */

import { isObject, type Json, type JsonObject, textOf, visible } from "../core/json.ts";
import { LEVELS } from "../core/levels.ts";
import type { ListItem, ListName } from "../core/lists.ts";
import { Answered } from "./_peer.ts";
import { readable } from "./_readable.ts";
import { isListItem } from "./_server_lists.ts";

/** How a list is read. */
export interface Reading {
  /** Asks for a page. */
  readonly ask: (params: JsonObject) => Promise<Json>;
  /** Makes the error of a server that does not answer as it should. */
  readonly broken: (why: string) => Error;
  /** The most items. */
  readonly max: number;
}

const NO_SUCH_METHOD = -32601;
const PAGES_MAX = 1_000;
const LIST_MAX = 32_000_000;
/** The most characters of a log message's content that clients get. */
const LOG_MAX = 64_000;
const LOGGER_MAX = 200;

/** Reads all pages of a list. */
export async function readList(
  name: ListName,
  { ask, broken, max }: Reading,
): Promise<readonly ListItem[]> {
  const items: ListItem[] = [];
  const seen = new Set<unknown>();
  let cursor: Json | undefined;
  let length = 0;
  for (let page = 0; page < PAGES_MAX; page++) {
    const result = await ask(cursor === undefined ? {} : { cursor }).catch((error) => {
      if (error instanceof Answered && error.code === NO_SUCH_METHOD) return { [name]: [] };
      throw error;
    });
    const { [name]: some, nextCursor } = isObject(result) ? result : {};
    if (!Array.isArray(some)) throw broken(`its list of ${name} is none`);
    length += JSON.stringify(some).length;
    if (length > LIST_MAX) throw broken(`its list of ${name} is over ${LIST_MAX} characters`);
    // One that is none is left out; the others count.
    items.push(
      ...some.filter((one) => isListItem(name, one)).map((one) => readable(name, one)),
    );
    if (items.length > max) throw broken(`it has over ${max} ${name}`);
    // A cursor that comes again would be asked for ever.
    if (typeof nextCursor !== "string" || nextCursor === "" || seen.has(nextCursor)) break;
    seen.add(cursor = nextCursor);
  }
  return items;
}

/** Reads the params of `notifications/message`; the logger begins with the server's name. */
export function logMessage(
  server: string,
  { logger, level, data = null, ...rest }: JsonObject,
): JsonObject {
  const text = JSON.stringify(data);
  return {
    ...(JSON.stringify(rest).length <= LOG_MAX && rest),
    level: LEVELS.includes(textOf(level)) ? textOf(level) : "info",
    logger: typeof logger === "string" ? `${server}/${logger.slice(0, LOGGER_MAX)}` : server,
    data: text.length > LOG_MAX ? visible(text, LOG_MAX) : data,
  };
}
