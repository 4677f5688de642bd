/**
 * One request of a client, and the text of its answer in the form of the client's revision.
 *
 * @module
 */

import { Cancellation } from "../core/cancellation.ts";
import { parseExact } from "../core/exact_json.ts";
import { isObject, type Json, type JsonObject, objectOf, textOf } from "../core/json.ts";
import { textOfItems, textOfResult } from "../core/json_text.ts";
import type { Maybe } from "../core/maybe.ts";
import type {
  ClientRequestOptions,
  Connection,
  Hello,
  RequestContext,
  SentNotification,
} from "./connection.ts";
import { ERROR, type ErrorObject } from "./errors.ts";
import { LIST_NAMES, LISTS } from "./lists.ts";
import { type RevisionKind, STATELESS_REVISIONS } from "./revisions.ts";
import { type SeparatedParams, separateReserved, statelessResult } from "./envelope.ts";
import { rpcErrorOf } from "./failures.ts";
import { errorText, type RequestMessage } from "./message.ts";
import { messageMembers } from "./message_members.ts";
import type { IncomingRequest } from "./rpc_peer.ts";
import { errorTypeOf, type RequestSpan } from "./trace.ts";
import { turnTime } from "../io/waiting.ts";

/** The member of a result that contains the items of a list, by the method of the list. */
const ITEM_MEMBERS: ReadonlyMap<string, string> = new Map(
  LIST_NAMES.map((name) => [LISTS[name].method, name]),
);
/** The members of a result that only the stateless revision has. */
const STATELESS_MEMBERS = ["resultType", "_meta", "ttlMs", "cacheScope"];

/** Writes the JSON texts of results. */
export class ResultTexts {
  readonly #hello: (isStateless: boolean) => Hello;
  #serverInfo: Hello["serverInfo"] | undefined;

  /** Takes a function that returns PML's description of itself. */
  constructor(hello: (isStateless: boolean) => Hello) {
    this.#hello = hello;
  }

  /** Returns the result of `server/discover`. */
  discoverResult(): JsonObject {
    const { capabilities, instructions } = this.#hello(true);
    const result = { supportedVersions: STATELESS_REVISIONS, capabilities, instructions };
    return this.#stateless("server/discover", result as unknown as JsonObject);
  }

  /** Returns the text of the result, or of an error if the result cannot be written as JSON. */
  membersText(
    result: JsonObject,
    request: { readonly method: string; readonly revisionKind: RevisionKind },
  ): string {
    try {
      return `"result":${this.resultText(result, request)}`;
    } catch (error) {
      return errorMembers(error); // for example if it is nested too deep
    }
  }

  /** Returns the text of a result. */
  resultText(
    result: JsonObject,
    { method, revisionKind }: { readonly method: string; readonly revisionKind: RevisionKind },
  ): string {
    const name = ITEM_MEMBERS.get(method);
    if (name === undefined) {
      return revisionKind === "handshake"
        ? handshakeText(result)
        : this.#statelessText(method, result);
    }
    return listText(revisionKind === "handshake" ? result : this.#stateless(method, result), name);
  }

  /**
   * Returns a result with the members of the stateless revision. Reuses the text of a large result.
   */
  #statelessText(method: string, result: JsonObject): string {
    const text = textOfResult(result);
    const isBare = text !== undefined && !STATELESS_MEMBERS.some((name) => name in result);
    if (!isBare) return JSON.stringify(this.#stateless(method, result));
    return `${JSON.stringify(this.#stateless(method, {})).slice(0, -1)},${
      text.trimStart().slice(1)
    }`;
  }

  #stateless(method: string, result: JsonObject): JsonObject {
    return statelessResult(method, { result, serverInfo: this.#info });
  }

  get #info(): Hello["serverInfo"] {
    return this.#serverInfo ??= this.#hello(true).serverInfo;
  }
}

/** Returns the text of the member `error` of an answer. */
export function errorMembers(error: unknown): string {
  const { code, message, data } = isObject(error) ? error : { code: undefined };
  const integer = Number.isSafeInteger(code) ? code : ERROR.internalError;
  const rpcError = {
    code: integer === ERROR.resourceNotFound ? ERROR.invalidParams : integer,
    message: message ?? "Internal error",
    data,
  };
  return errorText(rpcError as ErrorObject); // an error of this code has a text
}

function handshakeText(result: JsonObject): string {
  return textOfResult(result) ?? JSON.stringify(result);
}

/** Returns the text of a list. The text of the items is cached for all revisions. */
function listText(result: JsonObject, name: string): string {
  const { [name]: items, ...rest } = result;
  if (!Array.isArray(items)) return JSON.stringify(result);
  const others = JSON.stringify(rest).slice(1);
  return `{"${name}":${textOfItems(items)}${others === "}" ? "" : ","}${others}`;
}

/** The connection over which a request came. */
export interface RequestHost {
  readonly texts: ResultTexts;
  /** Returns the connection of the client. Opens it if it is not open. */
  connection(revisionKind: RevisionKind): Maybe<Connection>;
  /** Sends the answer to a request. `id` is JSON; `members` is the text of the answer's members. */
  answer(id: string, members: string): void;
  /** Sends a notification about a request. `related` is the request's id as JSON. */
  notify(notification: SentNotification, related: string): Promise<void>;
  /** Sends a request to the client, and returns its result. */
  ask(method: string, options: ClientRequestOptions): Promise<JsonObject>;
  /** Returns whether the client has sent, and so takes, members that JSON-RPC does not define. */
  takesMembers(): boolean;
  /** The headers of the HTTP request. */
  readonly headers?: Pick<Headers, "get">;
}

/** The beginning of the text of an answer's members if it has a result. */
const RESULT_PREFIX = '"result":';

/** A request that has no answer yet. */
export class OpenRequest implements IncomingRequest, RequestContext {
  readonly cancellation: Cancellation = new Cancellation();
  readonly idText: string;
  readonly method: string;
  readonly revisionKind: RevisionKind;
  readonly members: JsonObject | undefined;
  readonly #separated: SeparatedParams;
  readonly #host: RequestHost;
  since = 0;
  trace: RequestSpan | undefined;
  /** The connection that serves the request. */
  #connection: Connection | undefined;
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
    this.#separated = separateReserved(objectOf(message.params));
    this.#host = host;
  }

  /** The id of the request. */
  get id(): Json {
    return parseExact(this.idText);
  }

  /** Whether the client no longer waits for an answer. */
  get isCancelled(): boolean {
    return this.cancellation.isCancelled;
  }

  /** The `_meta` of the request's params, without the reserved keys. */
  get meta(): JsonObject | undefined {
    const { _meta } = this.#separated.params;
    return _meta === undefined ? undefined : objectOf(_meta);
  }

  /** The reserved keys of the request's `_meta`, in the stateless revision. */
  get envelope(): JsonObject | undefined {
    return this.#separated.envelope;
  }

  /** The answers of the client to earlier questions. */
  get inputResponses(): JsonObject | undefined {
    return this.#separated.inputResponses;
  }

  /** The `requestState` that the client sends back. */
  get requestState(): unknown {
    return this.#separated.requestState;
  }

  /** The headers of the HTTP request. */
  get headers(): RequestContext["headers"] {
    return this.#host.headers;
  }

  /** Cancels the request. The client gets no answer. */
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
    this.#connection = connection;
    this.since = turnTime();
    return connection.serve(this.#separated.params, this);
  }

  /** Reports the end of the request to the connection that served it. */
  onEnded(result: unknown, error?: unknown): void {
    if (this.#connection === undefined) return;
    const { method } = this;
    const tool = method === "tools/call" ? textOf(this.#separated.params.name) : "";
    const now = turnTime();
    const type = errorTypeOf(result, error);
    this.#connection.countServed?.({ method, tool, ms: now - this.since, error: `${type ?? ""}` });
    this.trace?.end(now, type);
  }

  /** Answers with a result. */
  answer(result: JsonObject): void {
    const text = this.#host.texts.membersText(result, this);
    const otherMembers = this.#answerMembers;
    // If the result could not be written, `text` is an error, which has no other members.
    const hasNoMembers = otherMembers === undefined || !text.startsWith(RESULT_PREFIX);
    const members = hasNoMembers ? text : `${text},${JSON.stringify(otherMembers).slice(1, -1)}`;
    this.#host.answer(this.idText, members);
  }

  /** Whether the client takes members that JSON-RPC does not define. */
  get takesMembers(): boolean {
    return this.#host.takesMembers();
  }

  /** Adds members next to `result` to the answer. */
  answerWith(members: JsonObject): void {
    this.#answerMembers = members;
  }

  /** Answers with an error. */
  refuse(error: unknown): void {
    this.#host.answer(this.idText, errorMembers(rpcErrorOf(error)));
  }

  /** Sends a request to the client while this request waits, and returns its result. */
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
