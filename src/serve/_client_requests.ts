/**
 * Sends requests to a client outside of the client's own requests, without the SDK.
 *
 * @module
 */

import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { type JsonObject, objectOf } from "../core/json.ts";
import { onAbort, soon } from "../io/waiting.ts";

/** The options of a request to a client. */
export interface ClientRequestOptions {
  readonly params?: JsonObject;
  /** How long the client may take to answer. */
  readonly ms: number;
  readonly signal?: AbortSignal | undefined;
}

/** The requests of one connection to its client. */
export class ClientRequests {
  readonly #send: (message: JSONRPCMessage) => void;
  readonly #waiting = new Map<string, (answer: JsonObject | undefined) => void>();

  /** Takes the function that sends a message to the client. */
  constructor(send: (message: JSONRPCMessage) => void) {
    this.#send = send;
  }

  /**
   * Sends a request and returns the result; undefined if the client refuses or answers too late, or
   * the signal aborts.
   */
  async request(
    method: string,
    { params, ms, signal }: ClientRequestOptions,
  ): Promise<JsonObject | undefined> {
    // No id of the SDK looks like it.
    const id = `pml-${crypto.randomUUID()}`;
    const { promise, resolve } = Promise.withResolvers<JsonObject | undefined>();
    this.#waiting.set(id, resolve);
    this.#send({ jsonrpc: "2.0", id, method, ...params && { params } });
    using _ = signal && onAbort(signal, () => resolve(undefined));
    const isInTime = await soon(promise, ms) && signal?.aborted !== true;
    this.#waiting.delete(id);
    if (isInTime) return await promise;
    this.#send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } });
    return undefined;
  }

  /** Takes the answer to a request that was sent here. Returns false for other messages. */
  takes(message: JSONRPCMessage): boolean {
    if ("method" in message || !("id" in message)) return false;
    const resolve = this.#waiting.get(String(message.id));
    if (resolve === undefined) return false;
    resolve("result" in message ? objectOf(message.result) : undefined);
    return true;
  }
}
