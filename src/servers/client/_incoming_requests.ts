/**
 * Answers the requests that a server sends to PML.
 *
 * @module
 */

import { messageOf, PmlError } from "../../core/errors.ts";
import { numberOf } from "../../core/exact_number.ts";
import { type Json, type JsonObject, objectOf, textOf } from "../../core/json.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";
import type { RequestMessage } from "../../protocol/message.ts";
import { messageMembers, resultMembers } from "../../protocol/message_members.ts";
import type {
  IncomingRequest,
  RequestId,
  RequestOptions,
  RpcPeer,
} from "../../protocol/rpc_peer.ts";
import type { PeerRequest } from "./_server_requests.ts";

/** The connection to the server that sends the requests. */
export interface AnsweringConnection {
  send(message: JsonObject): void;
  /** Returns the result of a request. */
  answer(request: PeerRequest): Promise<JsonObject>;
}

/** The maximum number of requests of a server that are open at the same time. */
const OPEN_MAX = 64;

/** Answers the requests of one server. */
export class IncomingRequests {
  /** The number of requests that the server has sent so far. */
  count = 0;
  readonly #peer: RpcPeer;
  readonly #connection: AnsweringConnection;
  readonly #answering = new Set<Promise<void>>();

  /** The requests come from `peer`, on `connection`. */
  constructor(peer: RpcPeer, connection: AnsweringConnection) {
    this.#peer = peer;
    this.#connection = connection;
  }

  /** Answers a request. `stream` is the id of PML's request on whose stream it arrived, if any. */
  take(message: RequestMessage, stream: RequestId | undefined): void {
    this.count++;
    const during = this.#peer.optionsOf("onServerRequest", stream);
    const request = new IncomingServerRequest(message, during, {
      connection: this.#connection,
      peer: this.#peer,
    });
    // guard: server-requests-open
    if (this.#peer.openCount >= OPEN_MAX) {
      return request.refuse(new Error("too many requests are open"));
    }
    const answering = this.#peer.serve(request).finally(() => this.#answering.delete(answering));
    this.#answering.add(answering);
  }

  /** Resolves when all requests that are open now are answered. */
  async waitForAnswers(): Promise<void> {
    await Promise.all(this.#answering);
  }
}

/** One request of a server. */
class IncomingServerRequest implements IncomingRequest, PeerRequest {
  readonly idText: string;
  readonly method: string;
  readonly params: JsonObject;
  readonly members: JsonObject | undefined;
  readonly during: RequestOptions | undefined;
  readonly #id: Json;
  readonly #connection: AnsweringConnection;
  readonly #peer: RpcPeer;
  readonly #abort = new AbortController();
  #isAnswered = false;

  constructor(
    { message, id }: RequestMessage,
    during: RequestOptions | undefined,
    { connection, peer }: { readonly connection: AnsweringConnection; readonly peer: RpcPeer },
  ) {
    this.idText = id;
    this.method = textOf(message.method);
    this.params = objectOf(message.params);
    this.members = messageMembers(message);
    this.during = during;
    this.#id = message.id ?? null;
    this.#connection = connection;
    this.#peer = peer;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get isCancelled(): boolean {
    return this.signal.aborted;
  }

  cancel(reason: unknown): void {
    this.#abort.abort(reason);
  }

  /** Sends a progress report to the server; undefined if the server sent no progress token. */
  get onProgress(): PeerRequest["onProgress"] {
    const { progressToken } = objectOf(this.params._meta);
    const isToken = typeof progressToken === "string" || numberOf(progressToken) !== undefined;
    if (!isToken) return undefined;
    return ({ members, ...progress }) => {
      if (this.isCancelled || this.#isAnswered) return;
      // A progress report is plain JSON.
      const params = { ...members?.params, ...progress, progressToken } as JsonObject;
      const message = { method: "notifications/progress", params };
      this.#connection.send({
        ...this.#acceptedMembers(message.method, members?.message),
        ...message,
      });
    };
  }

  serve(): Promise<JsonObject> {
    return this.#connection.answer(this);
  }

  // The answer repeats the id exactly as the server wrote it.
  answer(result: JsonObject): void {
    this.#isAnswered = true;
    this.#connection.send({
      ...this.#acceptedMembers(this.method, resultMembers(result)),
      id: this.#id,
      result,
    });
  }

  /**
   * Returns the members for a message to the server that JSON-RPC does not define. Returns
   * undefined if the server's request had no such members, because the server may refuse the
   * message with them.
   */
  #acceptedMembers(method: string, members: JsonObject | undefined): JsonObject | undefined {
    if (members === undefined || this.members !== undefined) return members;
    this.#peer.reportDropped(method, members);
    return undefined;
  }

  refuse(error: unknown): void {
    this.#isAnswered = true;
    const code = error instanceof RpcError ? error.code : ERROR.internalError;
    // Most servers pass on only the message, so the message includes the hint.
    const hint = error instanceof PmlError && error.hint !== undefined ? `. ${error.hint}` : "";
    const message = messageOf(error) + hint;
    const data = error instanceof RpcError ? error.data as Json | undefined : undefined;
    const answer = { code, message, ...data !== undefined && { data } };
    this.#connection.send({ id: this.#id, error: answer });
  }
}
