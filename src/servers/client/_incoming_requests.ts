/**
 * The requests that a server makes.
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

/** The connection whose server makes the requests. */
export interface AnsweringConnection {
  send(message: JsonObject): void;
  /** Returns the result of a request. */
  answer(request: PeerRequest): Promise<JsonObject>;
}

/** How many requests of a server may be open. */
const OPEN_MAX = 64;

/** Answers the requests of one server. */
export class IncomingRequests {
  /** The number of requests that the server has made. */
  count = 0;
  readonly #peer: RpcPeer;
  readonly #connection: AnsweringConnection;
  readonly #answering = new Set<Promise<void>>();

  /** Takes the peer that the requests come from, and its connection. */
  constructor(peer: RpcPeer, connection: AnsweringConnection) {
    this.#peer = peer;
    this.#connection = connection;
  }

  /** Answers a request, which may have come on the stream of one request of PML. */
  take(message: RequestMessage, stream: RequestId | undefined): void {
    this.count++;
    const during = this.#peer.latest("onAsk", stream);
    const request = new IncomingServerRequest(message, during, {
      connection: this.#connection,
      peer: this.#peer,
    });
    // guard: server-requests-open
    if (this.#peer.open >= OPEN_MAX) return request.refuse(new Error("too many requests are open"));
    const answering = this.#peer.serve(request).finally(() => this.#answering.delete(answering));
    this.#answering.add(answering);
  }

  /** Resolves when the present requests are answered. */
  async answered(): Promise<void> {
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

  /** Undefined if the server sent no progress token. */
  get onProgress(): PeerRequest["onProgress"] {
    const { progressToken } = objectOf(this.params._meta);
    const isToken = typeof progressToken === "string" || numberOf(progressToken) !== undefined;
    if (!isToken) return undefined;
    return ({ members, ...progress }) => {
      if (this.isCancelled || this.#isAnswered) return;
      // A report is JSON.
      const params = { ...members?.params, ...progress, progressToken } as JsonObject;
      const message = { method: "notifications/progress", params };
      this.#connection.send({ ...this.#taken(message.method, members?.message), ...message });
    };
  }

  serve(): Promise<JsonObject> {
    return this.#connection.answer(this);
  }

  // An answer has the id as the server wrote it.
  answer(result: JsonObject): void {
    this.#isAnswered = true;
    this.#connection.send({
      ...this.#taken(this.method, resultMembers(result)),
      id: this.#id,
      result,
    });
  }

  /** Returns members of a message to the server. One that sent such members itself takes them. */
  #taken(method: string, members: JsonObject | undefined): JsonObject | undefined {
    if (members === undefined || this.members !== undefined) return members;
    this.#peer.dropped(method, members);
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
