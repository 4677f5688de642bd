/**
 * The requests of PML to a client.
 *
 * @module
 */

import { isObject, type JsonObject, objectOf, textOf } from "../core/json.ts";
import { onAbort } from "../io/waiting.ts";
import { ERROR, RpcError } from "./errors.ts";

/** The options of a request. */
export interface OutgoingOptions {
  readonly params?: JsonObject;
  /** How long the client may take to answer, in milliseconds. */
  readonly ms: number;
  /** Cancels the request. */
  readonly signal?: AbortSignal | undefined;
  /** The id, as JSON, of the client's request that it belongs to. */
  readonly related?: string;
}

/** A request that the client has not answered. */
interface Waiting {
  readonly resolve: (result: JsonObject) => void;
  readonly reject: (reason: unknown) => void;
}

/** Sends requests on one connection and takes the answers. */
export class OutgoingRequests implements Disposable {
  readonly #send: (message: JsonObject, related?: string) => void;
  readonly #waiting = new Map<string, Waiting>();

  /** Takes the function that sends a message to the client. */
  constructor(send: (message: JsonObject, related?: string) => void) {
    this.#send = send;
  }

  /**
   * Sends a request and returns its result. Rejects with the error of the client, with -32001 if it
   * takes too long, and with the reason of the signal. The latter two cancel it at the client.
   */
  async request(
    method: string,
    { params, ms, signal, related }: OutgoingOptions,
  ): Promise<JsonObject> {
    signal?.throwIfAborted();
    const id = `pml-${crypto.randomUUID()}`;
    const { promise, resolve, reject } = Promise.withResolvers<JsonObject>();
    this.#waiting.set(id, { resolve, reject });
    const giveUp = (reason: unknown, text: string) => {
      if (!this.#waiting.has(id)) return;
      reject(reason);
      const params = { requestId: id, reason: text };
      this.#send({ jsonrpc: "2.0", method: "notifications/cancelled", params }, related);
    };
    const late = () => {
      const why = `The client did not answer ${method} within ${ms} ms`;
      giveUp(new RpcError(ERROR.requestTimeout, why), why);
    };
    const timer = setTimeout(late, ms);
    using _ = signal && onAbort(signal, () => giveUp(signal.reason, `${signal.reason}`));
    try {
      this.#send({ jsonrpc: "2.0", id, method, ...params && { params } }, related);
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(id);
    }
  }

  /** Takes the answer to a request. Returns false for any other message. */
  takes({ id, method, result, error }: JsonObject): boolean {
    const waiting = method === undefined ? this.#waiting.get(textOf(id)) : undefined;
    if (waiting === undefined) return false;
    if (!isObject(error)) waiting.resolve(objectOf(result));
    else waiting.reject(RpcError.of(error));
    return true;
  }

  /** Rejects all: the connection is closed. */
  [Symbol.dispose](): void {
    for (const { reject } of this.#waiting.values()) reject(new Error("Connection closed"));
  }
}
