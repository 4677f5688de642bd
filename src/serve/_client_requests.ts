/**
 * Sends requests to a client outside of the client's own requests, without the SDK.
 *
 * @module
 */

import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { type JsonObject, objectOf } from "../core/json.ts";
import { soon } from "../io/waiting.ts";

/** How long a client may take to answer, in milliseconds. */
const ANSWER_MS = 2_000;

/** The requests of one connection to its client. */
export class ClientRequests {
  readonly #send: (message: JSONRPCMessage) => void;
  readonly #waiting = new Map<string, (answer: JsonObject | undefined) => void>();

  /** Takes the function that sends a message to the client. */
  constructor(send: (message: JSONRPCMessage) => void) {
    this.#send = send;
  }

  /** Sends a request and returns the result; undefined if the client refuses or answers too late. */
  async request(method: string): Promise<JsonObject | undefined> {
    // No id of the SDK looks like it.
    const id = `pml-${crypto.randomUUID()}`;
    const { promise, resolve } = Promise.withResolvers<JsonObject | undefined>();
    this.#waiting.set(id, resolve);
    this.#send({ jsonrpc: "2.0", id, method });
    const isInTime = await soon(promise, ANSWER_MS);
    this.#waiting.delete(id);
    return isInTime ? await promise : undefined;
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
