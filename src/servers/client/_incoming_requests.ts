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

/** The options of `IncomingRequests`. */
export interface IncomingRequestsOptions {
  readonly send: (message: JsonObject) => void;
  /** Returns the result of a request. */
  readonly answer: (request: PeerRequest) => Promise<JsonObject>;
}

/** How many requests of a server may be open. */
const OPEN_MAX = 64;

/** Answers the requests of one server. */
export class IncomingRequests {
  /** The number of requests that the server has made. */
  count = 0;
  readonly #peer: RpcPeer;
  readonly #options: IncomingRequestsOptions;
  readonly #answering = new Set<Promise<void>>();

  /** Takes the peer that the requests come from. */
  constructor(peer: RpcPeer, options: IncomingRequestsOptions) {
    this.#peer = peer;
    this.#options = options;
  }

  /** Answers a request, which may have come on the stream of one request of PML. */
  take(message: RequestMessage, stream: RequestId | undefined): void {
    this.count++;
    const during = this.#peer.latest("onAsk", stream);
    const request = new IncomingServerRequest(message, during, {
      ...this.#options,
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
  readonly #options: IncomingRequestsOptions & { readonly peer: RpcPeer };
  readonly #abort = new AbortController();
  #isAnswered = false;

  constructor(
    { message, id }: RequestMessage,
    during: RequestOptions | undefined,
    options: IncomingRequestsOptions & { readonly peer: RpcPeer },
  ) {
    this.idText = id;
    this.method = textOf(message.method);
    this.params = objectOf(message.params);
    this.members = messageMembers(message);
    this.during = during;
    this.#id = message.id ?? null;
    this.#options = options;
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
      this.#options.send({ ...this.#taken(message.method, members?.message), ...message });
    };
  }

  serve(): Promise<JsonObject> {
    return this.#options.answer(this);
  }

  // An answer has the id as the server wrote it.
  answer(result: JsonObject): void {
    this.#isAnswered = true;
    this.#options.send({
      ...this.#taken(this.method, resultMembers(result)),
      id: this.#id,
      result,
    });
  }

  /** Returns members of a message to the server. One that sent such members itself takes them. */
  #taken(method: string, members: JsonObject | undefined): JsonObject | undefined {
    if (members === undefined || this.members !== undefined) return members;
    this.#options.peer.dropped(method, members);
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
    this.#options.send({ id: this.#id, error: answer });
  }
}
