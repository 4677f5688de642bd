/**
 * Records the state that a client sets on its connection, and decides which requests can be sent
 * again. A process needs both when it takes over a connection from another process.
 *
 * @module
 */

import { type JsonObject, memberOf, objectOf, textOf } from "../core/json.ts";
import { isInitialize } from "./initialize.ts";
import { isDefinedMethod } from "./revisions.ts";

/** The effect of a request on the state of its connection. */
interface StateChange {
  /** The part of the state. A later request about the same part replaces an earlier one. */
  readonly part: string;
  /** The member of the params that names the item, if the part has several. */
  readonly item?: string;
  /** Whether the request resets the part, so that a later process need not restore it. */
  readonly isReset?: true;
}

/** The requests that set a state, by their methods. In 2026-07-28, requests set none. */
const STATE_CHANGES: Readonly<Record<string, StateChange>> = {
  "initialize": { part: "handshake" },
  "logging/setLevel": { part: "level" },
  "resources/subscribe": { part: "subscription", item: "uri" },
  "resources/unsubscribe": { part: "subscription", item: "uri", isReset: true },
};
/** The notification that ends a handshake. */
const HANDSHAKE_END: JsonObject = { jsonrpc: "2.0", method: "notifications/initialized" };
const CALL = "tools/call";
/** The meta-tools of PML that only read. */
const READING_META_TOOLS: readonly string[] = ["search", "schema"];

/** The requests of a client that set the state of its connection. */
export class ConnectionState {
  readonly #requests = new Map<string, JsonObject>();

  /** Records a request of the client if it sets a part of the state. */
  record(request: JsonObject): void {
    const change = memberOf(STATE_CHANGES, textOf(request.method));
    if (change === undefined) return;
    const { part, item, isReset } = change;
    const key = item === undefined ? part : `${part} ${textOf(objectOf(request.params)[item])}`;
    if (isReset === true) this.#requests.delete(key);
    else this.#requests.set(key, request);
  }

  /**
   * Returns the messages that restore the state, the handshake first. `newId` creates the id of each
   * request. Leaves out the requests in `waiting`, which have no answer yet: the caller sends them.
   */
  *restore(waiting: readonly JsonObject[], newId: () => string): Generator<JsonObject> {
    const all = [...this.#requests.values()].filter((request) => !waiting.includes(request));
    for (const request of all) {
      yield { ...request, id: newId() };
      if (isInitialize(request)) yield HANDSHAKE_END;
    }
  }
}

/** Returns whether a request can be sent again although it may have run. */
export function isRepeatable({ method, params }: JsonObject): boolean {
  if (method !== CALL) return isDefinedMethod(textOf(method));
  return READING_META_TOOLS.includes(textOf(objectOf(params).name));
}
