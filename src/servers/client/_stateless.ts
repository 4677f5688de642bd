/**
 * Sends requests of the stateless revision, each with the client capabilities. The server may
 * answer with `input_required`, which contains requests to the client. PML answers these requests,
 * and sends its own request again with the answers.
 *
 * @module
 */

import { isObject, type Json, type JsonObject, objectOf, quoted, textOf } from "../../core/json.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";
import { clientInfoFor, withMeta } from "./_meta.ts";
import { messageMembers } from "../../protocol/message_members.ts";
import { type RequestOptions, type RpcPeer, withoutClient } from "../../protocol/rpc_peer.ts";
import { clientError, type PeerRequest } from "./_server_requests.ts";

/** The connection on which requests are sent. */
export interface StatelessConnection {
  /** Aborts when the connection ends. */
  readonly endSignal: AbortSignal;
  /**
   * Returns the client capabilities that the server gets. `clientCapabilities` are the capabilities
   * of the client for which a request is sent, if there is one.
   */
  capabilitiesFor(clientCapabilities?: JsonObject): JsonObject;
  /**
   * Returns the `clientInfo` that the server gets. `info` is that of the requesting client, if any.
   */
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

  /** Creates the sender also for servers that may not support the stateless revision. */
  constructor(peer: RpcPeer, connection: StatelessConnection) {
    this.#peer = peer;
    this.#connection = connection;
  }

  /** Sends a request, answers the requests of the server, and returns the result. */
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

  /** Returns a request that checks whether the server answers. This revision has no `ping`. */
  probe(): { readonly method: string; readonly params: JsonObject } {
    const method = "server/discover";
    return { method, params: this.#withMeta({}, withoutClient(), method) };
  }

  /**
   * Subscribes to notifications. Resolves when the server ends the subscription; rejects on abort.
   */
  async listen(notifications: JsonObject, options: RequestOptions): Promise<void> {
    const params = this.#withMeta({ notifications }, options);
    const { cancellation, client } = options;
    await this.#peer.request("subscriptions/listen", params, {
      cancellation,
      client,
      isLongLived: true,
    });
  }

  /**
   * Answers all requests of an `input_required` result. Returns the additional params for the next
   * try.
   */
  async answersTo(result: JsonObject, during: RequestOptions): Promise<JsonObject> {
    const connection = this.#connection;
    const { inputRequests, requestState } = result;
    const requests = Object.entries(objectOf(inputRequests));
    if (requests.length > REQUESTS_MAX) {
      throw connection.protocolError(`it made over ${REQUESTS_MAX} requests at once`);
    }
    // If one request fails, the other requests are cancelled.
    const cancelOthers = new AbortController();
    const signal = AbortSignal.any([
      during.cancellation.signal,
      connection.endSignal,
      cancelOthers.signal,
    ]);
    const answers = requests.map(async ([key, rawRequest]) => {
      const { method, params, ...others } = objectOf(rawRequest);
      const members = messageMembers(others);
      const fields = { method: textOf(method), params: objectOf(params), members };
      const request = { key, ...fields, signal, during };
      try {
        return [key, await connection.answer(request)] as const;
      } catch (error) {
        // An error of PML or of the client is not the fault of the server.
        if (!(error instanceof RpcError)) throw error;
        if (error.code !== ERROR.methodNotFound) throw clientError(error);
        throw connection.protocolError(
          `it asked for ${quoted(request.method)}, but ${error.message}`,
        );
      }
    });
    try {
      const inputResponses = Object.fromEntries(await Promise.all(answers));
      return { inputResponses, ...(typeof requestState === "string" && { requestState }) };
    } finally {
      cancelOthers.abort(new RpcError(ERROR.methodNotFound, "another request failed"));
    }
  }

  #withMeta(params: JsonObject, options: RequestOptions, method?: string): JsonObject {
    const { info } = options.client;
    const capabilities = this.#connection.capabilitiesFor(options.client.capabilities);
    const clientInfo = clientInfoFor(this.#connection.clientInfo(info));
    return withMeta(params, options, { method, capabilities, clientInfo });
  }
}
