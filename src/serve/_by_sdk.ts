/**
 * Has the SDK serve what PML does not serve without it.
 *
 * @module
 */

import {
  isJSONRPCRequest,
  type JSONRPCMessage,
  type Server,
  type Transport,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { parseExact } from "../core/exact_json.ts";
import type { Face } from "../gateway/connection.ts";
import { withExactIds, withTextIds } from "../protocol/exact_ids.ts";

/** The id of `initialize` where the SDK is only told of it. Its answer is dropped. */
export const TOLD = `pml-${crypto.randomUUID()}`;

/** The options of `BySdk`. */
export interface BySdkOptions {
  readonly factory: (about: Parameters<Face["factory"]>[0]) => Promise<Server>;
  readonly send: (message: JSONRPCMessage) => Promise<void>;
  readonly close: () => void;
  readonly onError: (error: Error) => void;
}

/** The messages of one connection that the SDK answers. */
export class BySdk implements Transport, AsyncDisposable {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport["onmessage"];
  readonly #options: BySdkOptions;
  readonly #handle: ReturnType<typeof serveStdio>;
  /** Whether a request has an id that the SDK does not take. */
  #hasTextIds = false;

  /** Connects the SDK. */
  constructor(options: BySdkOptions) {
    const { factory, onError: onerror } = this.#options = options;
    this.#handle = serveStdio(factory, { transport: this, onerror });
  }

  /**
   * Has the SDK serve a message. The SDK drops a request that its schema does not fit: members
   * beside those of JSON-RPC are left out, and any other such request is answered with an error.
   */
  take(given: JSONRPCMessage): void {
    const message = withTextIds(given);
    this.#hasTextIds ||= message !== given;
    if (!("id" in message && "method" in message)) return this.onmessage?.(message);
    const { jsonrpc, id, method, params } = message;
    const request = { jsonrpc, id, method, ...params !== undefined && { params } };
    if (isJSONRPCRequest(request)) return this.onmessage?.(request);
    const error = { code: -32602, message: `Invalid params: ${method} does not take them` };
    void this.send({ jsonrpc, id, error });
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  send(message: JSONRPCMessage): Promise<void> {
    if (!("method" in message) && message.id === TOLD) return Promise.resolve();
    if (!this.#hasTextIds) return this.#options.send(message);
    const text = JSON.stringify(message);
    const exact = withExactIds(text);
    return this.#options.send(exact === text ? message : parseExact(exact));
  }

  close(): Promise<void> {
    return Promise.resolve(this.#options.close());
  }

  /** Ends what the SDK works on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.onclose?.();
    await this.#handle.close();
  }
}
