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
import { toReadable } from "./_readable.ts";
import { isListItem } from "./_server_lists.ts";

/** The connection to the server whose list is read. */
export interface ListConnection {
  request(method: string, params: JsonObject, options: RequestOptions): Promise<Json>;
  /** Returns the error for a server that breaks the protocol. */
  protocolError(why: string): Error;
}

/** A list as its server sent it. */
export interface ReceivedList {
  readonly items: readonly ListItem[];
  /** How long the list stays current by its `ttlMs`, in milliseconds; undefined if it has none. */
  readonly ttlMs: number | undefined;
}

/** The maximum number of pages of a list. */
const PAGES_MAX = 1_000;
/** The maximum length of a list as JSON, in characters. */
const LIST_MAX = 32_000_000;
/** The maximum length of the data of a log message, in characters. */
const LOG_MAX = 64_000;
/** The maximum length of the name of a logger, in characters. */
const LOGGER_MAX = 200;

/**
 * Reads all pages of a list, with one request for each page. Throws if the list has over `max`
 * items.
 */
export async function readList(
  name: ListName,
  connection: ListConnection,
  { max, ...options }: RequestOptions & { readonly max: number },
): Promise<ReceivedList> {
  const protocolError = (why: string) => connection.protocolError(why);
  const items: ListItem[] = [];
  const cursors = new Set<unknown>();
  let ttlMs: number | undefined;
  let cursor: Json | undefined;
  let length = 0;
  for (let page = 0;; page++) {
    // A partial list is not returned: the missing tools would count as removed.
    if (page === PAGES_MAX) throw protocolError(`its list of ${name} has over ${PAGES_MAX} pages`);
    const params: JsonObject = cursor === undefined ? {} : { cursor };
    const { method } = LISTS[name];
    const result = await connection.request(method, params, options).catch((error) => {
      if (error instanceof RpcError && error.code === ERROR.methodNotFound) return { [name]: [] };
      throw error;
    });
    const { [name]: pageItems, nextCursor, ttlMs: ttl } = objectOf(result);
    const pageMs = numberOf(ttl) ?? -1;
    // The list expires as soon as one of its pages expires.
    if (pageMs >= 0) ttlMs = Math.min(pageMs, ttlMs ?? pageMs);
    if (!Array.isArray(pageItems)) throw protocolError(`its ${name} are not a list`);
    length += JSON.stringify(pageItems).length;
    if (length > LIST_MAX) {
      throw protocolError(`its list of ${name} is over ${LIST_MAX} characters`);
    }
    // Invalid items are left out.
    items.push(
      ...pageItems.filter((item) => isListItem(name, item)).map((item) => toReadable(name, item)),
    );
    if (items.length > max) throw protocolError(`it has over ${max} ${name}`);
    // A repeated cursor ends the list, which would otherwise have no end.
    if (typeof nextCursor !== "string" || nextCursor === "" || cursors.has(nextCursor)) {
      return { items, ttlMs };
    }
    cursors.add(cursor = nextCursor);
  }
}

/**
 * Returns valid params of `notifications/message`. Puts the server's name before the logger, and
 * shortens long texts.
 */
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
    return visible(text, LOG_MAX); // the data is nested too deep
  }
}
