/**
 * Requests of the stateless revision. Each carries the client capabilities. The server may answer with
 * `input_required`: requests to the client that it needs answered first.
 *
 * @module
 */

import { isObject, type Json, type JsonObject, objectOf, quoted, textOf } from "../../core/json.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";
import { clientInfoFor, withMeta } from "./_meta.ts";
import { messageMembers } from "../../protocol/message_members.ts";
import { type RequestOptions, type RpcPeer, withoutClient } from "../../protocol/rpc_peer.ts";
import { type PeerRequest, refusedByClient } from "./_server_requests.ts";

/** The connection that requests are sent on. */
export interface StatelessConnection {
  /** Aborts when the connection ends. */
  readonly over: AbortSignal;
  /** Returns the client capabilities that the server gets, for a client with these or for all. */
  capabilitiesFor(able?: JsonObject): JsonObject;
  /** Returns the name of the client that the server gets, for a client with this one or for all. */
  clientInfo(info?: JsonObject): JsonObject | undefined;
  /** Answers a request of the server. */
  answer(request: PeerRequest): Promise<JsonObject>;
  /** Returns the error for a server that breaks the protocol. */
  protocolError(why: string): Error;
}

/** The maximum number of requests in one `input_required` result. */
const REQUESTS_MAX = 64;
/** The maximum number of `input_required` results for one request. */
const ROUNDS_MAX = 20;

/** Sends requests of the stateless revision. */
export class StatelessRequests {
  readonly #peer: RpcPeer;
  readonly #connection: StatelessConnection;

  /** Takes the peer, which may not support the stateless revision, and its connection. */
  constructor(peer: RpcPeer, connection: StatelessConnection) {
    this.#peer = peer;
    this.#connection = connection;
  }

  /** Sends a request, answers the server's own requests, and returns the result. */
  async request(method: string, params: JsonObject, options: RequestOptions): Promise<Json> {
    let answers: JsonObject = {};
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const all = this.#withMeta({ ...params, ...answers }, options, method);
      const result = await this.#peer.request(method, all, options);
      if (!isObject(result) || result.resultType !== "input_required") return result;
      answers = await this.answersTo(result as JsonObject, options); // parsed JSON
    }
    throw this.#connection.protocolError(`it asked ${ROUNDS_MAX} times before it answered`);
  }

  /** Sends a notification. */
  notify(method: string, params: JsonObject, options: RequestOptions): void {
    this.#peer.notify(method, this.#withMeta(params, options), options);
  }

  /** Returns the request by which PML asks whether the server answers. There is no `ping`. */
  probe(): { readonly method: string; readonly params: JsonObject } {
    const method = "server/discover";
    return { method, params: this.#withMeta({}, withoutClient(), method) };
  }

  /** Subscribes to notifications. Resolves when the server ends it; rejects on abort. */
  async listen(notifications: JsonObject, options: RequestOptions): Promise<void> {
    const params = this.#withMeta({ notifications }, options);
    const { cancellation, client } = options;
    await this.#peer.request("subscriptions/listen", params, { cancellation, client, lasts: true });
  }

  /** Answers all requests of an `input_required` result. Returns the params for the next try. */
  async answersTo(result: JsonObject, during: RequestOptions): Promise<JsonObject> {
    const connection = this.#connection;
    const { inputRequests, requestState } = result;
    const requests = Object.entries(objectOf(inputRequests));
    if (requests.length > REQUESTS_MAX) {
      throw connection.protocolError(`it made over ${REQUESTS_MAX} requests at once`);
    }
    // If one fails, the others are cancelled.
    const failed = new AbortController();
    const signal = AbortSignal.any([during.cancellation.signal, connection.over, failed.signal]);
    const answers = requests.map(async ([key, one]) => {
      const { method, params, ...others } = objectOf(one);
      const members = messageMembers(others);
      const own = { method: textOf(method), params: objectOf(params), members };
      const request = { key, ...own, signal, during };
      try {
        return [key, await connection.answer(request)] as const;
      } catch (error) {
        // An error of PML or of the client is not the fault of the server.
        if (!(error instanceof RpcError)) throw error;
        if (error.code !== ERROR.methodNotFound) throw refusedByClient(error);
        throw connection.protocolError(
          `it asked for ${quoted(request.method)}, but ${error.message}`,
        );
      }
    });
    try {
      const inputResponses = Object.fromEntries(await Promise.all(answers));
      return { inputResponses, ...(typeof requestState === "string" && { requestState }) };
    } finally {
      failed.abort(new RpcError(ERROR.methodNotFound, "another request failed"));
    }
  }

  #withMeta(params: JsonObject, options: RequestOptions, method?: string): JsonObject {
    const { able, info } = options.client;
    const capabilities = this.#connection.capabilitiesFor(able);
    const clientInfo = clientInfoFor(this.#connection.clientInfo(info));
    return withMeta(params, options, { method, capabilities, clientInfo });
  }
}
