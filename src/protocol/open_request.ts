/**
 * One request of a client.
 *
 * @module
 */

import { Cancellation } from "../core/cancellation.ts";
import { parseExact } from "../core/exact_json.ts";
import { type Json, type JsonObject, objectOf, textOf } from "../core/json.ts";
import type { Maybe } from "../core/maybe.ts";
import type {
  ClientRequestOptions,
  Connection,
  RequestContext,
  SentNotification,
} from "./connection.ts";
import type { RevisionKind } from "./revisions.ts";
import { lift, type Lifted } from "./envelope.ts";
import { rpcErrorOf } from "./failures.ts";
import type { RequestMessage } from "./message.ts";
import { messageMembers } from "./message_members.ts";
import { errorMembers, type ResultTexts } from "./result_texts.ts";
import type { IncomingRequest } from "./rpc_peer.ts";

/** The connection that a request came on. */
export interface RequestHost {
  readonly texts: ResultTexts;
  /** Returns the connection of the client. Opens it if it is not open. */
  connection(revisionKind: RevisionKind): Maybe<Connection>;
  /** Sends the answer to a request. `members` is the text of its members; the id is JSON. */
  answer(id: string, members: string): void;
  /** Sends a notification. `related` is the id, as JSON, of the request that it belongs to. */
  notify(notification: SentNotification, related: string): Promise<void>;
  /** Sends a request to the client, and returns its result. */
  ask(method: string, options: ClientRequestOptions): Promise<JsonObject>;
  /** Returns whether the client has sent, and so takes, members that JSON-RPC does not define. */
  takesMembers(): boolean;
  /** The headers that came over HTTP. */
  readonly headers?: Pick<Headers, "get">;
}

/** How the text of the members of an answer begins that has a result. */
const RESULT = '"result":';

/** A request that has no answer yet. */
export class OpenRequest implements IncomingRequest, RequestContext {
  readonly cancellation: Cancellation = new Cancellation();
  readonly idText: string;
  readonly method: string;
  readonly revisionKind: RevisionKind;
  readonly members: JsonObject | undefined;
  readonly #lifted: Lifted;
  readonly #host: RequestHost;
  #answerMembers: JsonObject | undefined;

  /** Takes a request, and the connection that it came on. */
  constructor(
    { id, message }: RequestMessage,
    revisionKind: RevisionKind,
    host: RequestHost,
  ) {
    this.idText = id;
    this.method = textOf(message.method);
    this.revisionKind = revisionKind;
    this.members = messageMembers(message);
    this.#lifted = lift(objectOf(message.params));
    this.#host = host;
  }

  /** The id. */
  get id(): Json {
    return parseExact(this.idText);
  }

  /** Whether the client no longer waits for an answer. */
  get isCancelled(): boolean {
    return this.cancellation.isCancelled;
  }

  /** The `_meta` of its params. */
  get meta(): JsonObject | undefined {
    const { _meta } = this.#lifted.params;
    return _meta === undefined ? undefined : objectOf(_meta);
  }

  /** The reserved keys of its `_meta`, in the stateless revision. */
  get envelope(): JsonObject | undefined {
    return this.#lifted.envelope;
  }

  /** The answers of the client to earlier questions. */
  get inputResponses(): JsonObject | undefined {
    return this.#lifted.inputResponses;
  }

  /** The `requestState` that the client sends back. */
  get requestState(): unknown {
    return this.#lifted.requestState;
  }

  /** The headers that came with it over HTTP. */
  get headers(): RequestContext["headers"] {
    return this.#host.headers;
  }

  /** Cancels it. Its client no longer waits for an answer. */
  cancel(reason: unknown): void {
    this.cancellation.cancel(reason);
  }

  /** Returns the result. Opens the connection of the client if it is not open. */
  serve(): Promise<JsonObject> {
    const connection = this.#host.connection(this.revisionKind);
    return connection instanceof Promise
      ? connection.then((opened) => this.#serveOn(opened))
      : this.#serveOn(connection);
  }

  #serveOn(connection: Connection): Promise<JsonObject> {
    if (this.method === "ping") return Promise.resolve({});
    return connection.serve(this.#lifted.params, this);
  }

  /** Answers with a result. */
  answer(result: JsonObject): void {
    const text = this.#host.texts.membersOf(result, this);
    const others = this.#answerMembers;
    // If the result could not be written, `text` is an error, which has no other members.
    const isAlone = others === undefined || !text.startsWith(RESULT);
    const members = isAlone ? text : `${text},${JSON.stringify(others).slice(1, -1)}`;
    this.#host.answer(this.idText, members);
  }

  /** Whether the client takes members that JSON-RPC does not define. */
  get takesMembers(): boolean {
    return this.#host.takesMembers();
  }

  /** Adds members to the answer with the result. */
  answerWith(members: JsonObject): void {
    this.#answerMembers = members;
  }

  /** Answers with an error. */
  refuse(error: unknown): void {
    this.#host.answer(this.idText, errorMembers(rpcErrorOf(error)));
  }

  /** Sends a request to the client while this one waits, and returns its result. */
  async ask(
    method: string,
    params: JsonObject,
    options: ClientRequestOptions,
  ): Promise<JsonObject> {
    return await this.#host.ask(method, { ...options, params, related: this.idText });
  }

  /** Sends a notification to the client. */
  notify(notification: SentNotification): Promise<void> {
    return this.#host.notify(notification, this.idText);
  }
}
