/**
 * Ids of requests beyond 2^53, as texts for code that takes no such numbers, such as the SDK.
 *
 * @module
 */

import { isExactNumber } from "../core/exact_number.ts";
import { isObject, objectOf } from "../core/json.ts";

/** No message of a client begins a text so: it is random, and is never sent. */
const PREFIX = `pml-${crypto.randomUUID()}:`;
const TEXT_ID = new RegExp(`"${PREFIX}(-?\\d[\\d.eE+-]*)"`, "g");
const CANCELLED = "notifications/cancelled";

/**
 * Returns a message, or several, with texts for the numbers that name its request and its progress:
 * the same object if it has none beyond 2^53.
 */
export function withTextIds<T>(message: T): T {
  if (Array.isArray(message)) {
    const all = message.map(withTextIds);
    return all.every((one, at) => one === message[at]) ? message : all as T;
  }
  if (!isObject(message)) return message;
  const id = textFor(message.id);
  const params = message.params === undefined ? undefined : withTextsIn(message);
  if (id === message.id && params === message.params) return message;
  return { ...message, ..."id" in message && { id }, ...params !== undefined && { params } };
}

/** Returns a JSON text with the numbers again. */
export function withExactIds(json: string): string {
  return json.includes(PREFIX) ? json.replace(TEXT_ID, (_, digits: string) => digits) : json;
}

function withTextsIn({ method, params }: Record<string, unknown>): unknown {
  const { requestId, _meta } = objectOf(params);
  const { progressToken } = objectOf(_meta);
  const isCancelled = method === CANCELLED && isExactNumber(requestId);
  if (!isCancelled && !isExactNumber(progressToken)) return params;
  return {
    ...objectOf(params),
    ...isCancelled && { requestId: textFor(requestId) },
    ...isExactNumber(progressToken) &&
      { _meta: { ...objectOf(_meta), progressToken: textFor(progressToken) } },
  };
}

function textFor(id: unknown): unknown {
  return isExactNumber(id) ? `${PREFIX}${id.rawJSON}` : id;
}
