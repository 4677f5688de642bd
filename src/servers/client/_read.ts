/**
 * Reads the lists and log messages of servers, within limits. Invalid items are left out.
 *
 * @module
 */

import { numberOf } from "../../core/exact_number.ts";
import { type Json, type JsonObject, objectOf, textOf, visible } from "../../core/json.ts";
import { LEVELS } from "../../protocol/levels.ts";
import { type ListItem, type ListName, LISTS } from "../../protocol/lists.ts";
import type { RequestOptions } from "../../protocol/rpc_peer.ts";
import { withoutPmlMeta } from "../../protocol/result_members.ts";
import { safeTexts } from "../../protocol/safe_text.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";
import { readable } from "./_readable.ts";
import { isListItem } from "./_server_lists.ts";

/** The connection that a list is read on. */
export interface ListConnection {
  request(method: string, params: JsonObject, options: RequestOptions): Promise<Json>;
  /** Returns the error for a server that breaks the protocol. */
  protocolError(why: string): Error;
}

/** A list as its server sent it. */
export interface ReadList {
  readonly items: readonly ListItem[];
  /** How long it stays current by its `ttlMs`, in milliseconds. Undefined if it has none. */
  readonly ttlMs: number | undefined;
}

const PAGES_MAX = 1_000;
const LIST_MAX = 32_000_000;
/** The maximum length of the data of a log message, in characters. */
const LOG_MAX = 64_000;
const LOGGER_MAX = 200;

/** Reads all pages of a list, with at most `max` items. Each request has the options. */
export async function readList(
  name: ListName,
  connection: ListConnection,
  { max, ...options }: RequestOptions & { readonly max: number },
): Promise<ReadList> {
  const broken = (why: string) => connection.protocolError(why);
  const items: ListItem[] = [];
  const cursors = new Set<unknown>();
  let ttlMs: number | undefined;
  let cursor: Json | undefined;
  let length = 0;
  for (let page = 0;; page++) {
    // A partial list is not returned: the missing tools would count as removed.
    if (page === PAGES_MAX) throw broken(`its list of ${name} has over ${PAGES_MAX} pages`);
    const params: JsonObject = cursor === undefined ? {} : { cursor };
    const { method } = LISTS[name];
    const result = await connection.request(method, params, options).catch((error) => {
      if (error instanceof RpcError && error.code === ERROR.methodNotFound) return { [name]: [] };
      throw error;
    });
    const { [name]: some, nextCursor, ttlMs: ttl } = objectOf(result);
    const pageMs = numberOf(ttl) ?? -1;
    // The list expires with the first of its pages.
    if (pageMs >= 0) ttlMs = Math.min(pageMs, ttlMs ?? pageMs);
    if (!Array.isArray(some)) throw broken(`its ${name} are not a list`);
    length += JSON.stringify(some).length;
    if (length > LIST_MAX) throw broken(`its list of ${name} is over ${LIST_MAX} characters`);
    // An invalid item is left out; the others are used.
    items.push(
      ...some.filter((one) => isListItem(name, one)).map((one) => readable(name, one)),
    );
    if (items.length > max) throw broken(`it has over ${max} ${name}`);
    // A server that repeats a cursor would never end the list.
    if (typeof nextCursor !== "string" || nextCursor === "" || cursors.has(nextCursor)) {
      return { items, ttlMs };
    }
    cursors.add(cursor = nextCursor);
  }
}

/** Reads the params of `notifications/message`. Puts the server's name before the logger. */
export function logMessage(
  server: string,
  { logger, level, data = null, ...rest }: JsonObject,
): JsonObject {
  const text = JSON.stringify(data);
  return {
    ...(JSON.stringify(rest).length <= LOG_MAX && withoutPmlMeta(rest)),
    level: LEVELS.includes(textOf(level)) ? textOf(level) : "info",
    logger: typeof logger === "string" ? `${server}/${visible(logger, LOGGER_MAX)}` : server,
    data: safeData(data, text),
  };
}

function safeData(data: Json, text: string): Json {
  if (text.length > LOG_MAX) return visible(text, LOG_MAX);
  try {
    return safeTexts(data);
  } catch {
    return visible(text, LOG_MAX); // it is nested too deep
  }
}
