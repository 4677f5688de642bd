/**
 * Serves requests that need no SDK: those of which nearly all the work of a client consists.
 *
 * @module
 */

import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { Cancellation } from "../core/cancellation.ts";
import { parseExact } from "../core/exact_json.ts";
import { type Json, type JsonObject, objectOf } from "../core/json.ts";
import type { AskOptions, Connection, RequestContext } from "../gateway/connection.ts";
import { EVENTS_TYPE, JSON_TYPE } from "../io/event_stream.ts";
import { type Era, eraOf, hasFitToken, lift, type Lifted } from "./_envelope.ts";
import { classify } from "../protocol/message.ts";
import { failure, LISTS, type ResultTexts } from "./_result_texts.ts";

/** A request that needs no SDK. */
export interface UsualRequest {
  /** The id, as JSON. */
  readonly id: string;
  readonly method: string;
  readonly era: Era;
}

/** The options of `UsualRequests`. */
export interface UsualRequestsOptions {
  readonly texts: ResultTexts;
  /** Opens the connection of the client, or returns it. */
  readonly connect: (era: Era) => Promise<Connection>;
  /** Returns the connection, once it is open. */
  readonly opened: () => Connection | undefined;
  /** Sends the answer to a request: the text of its members but for the id, which is JSON. */
  readonly answer: (id: string, said: string) => void;
  readonly notify: (notification: object) => Promise<void>;
  /** Sends a request to the client, and returns its result. */
  readonly ask: RequestContext["ask"];
  /** The headers that came over HTTP. */
  readonly headers?: Pick<Headers, "get">;
}

const USUAL = [...LISTS, "tools/call", "prompts/get", "resources/read", "completion/complete"];
const METHODS: Readonly<Record<Era, ReadonlySet<string>>> = {
  modern: new Set(USUAL),
  legacy: new Set([
    ...USUAL,
    ...["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"],
    ...["get", "result", "list", "cancel"].map((what) => `tasks/${what}`),
  ]),
};

/** Returns whether requests of a method need no SDK. */
export function isUsual(method: string, era: Era): boolean {
  return METHODS[era].has(method);
}

/** A usual request that came over HTTP. */
export interface PostedRequest extends UsualRequest {
  readonly message: JSONRPCMessage;
  readonly params: JsonObject;
}

/** The members that a request has. */
const MEMBERS = ["jsonrpc", "id", "method", "params"];

/** Returns the request of an era that a body is, if it is a usual one with nothing unusual in it. */
export function usualIn(body: unknown, era: Era): PostedRequest | undefined {
  const read = classify(body);
  if (read.kind !== "request" || !("method" in read.message)) return undefined;
  const { id, message } = read;
  const { method } = read.message;
  const params = objectOf(read.message.params);
  const isPlain = Object.keys(message).every((key) => MEMBERS.includes(key)) &&
    isUsual(method, era) && eraOf(params) === era && hasFitToken(params);
  return isPlain ? { id, message, method, era, params } : undefined;
}

/** Returns whether a client takes both a JSON text and a stream for an answer. */
export function takesBoth(accept = ""): boolean {
  return accept.includes(JSON_TYPE) && accept.includes(EVENTS_TYPE);
}

/** Serves the requests of one client. */
export class UsualRequests implements Disposable {
  readonly #options: UsualRequestsOptions;
  /** The requests that have no answer yet, by their ids as JSON. */
  readonly #open = new Map<string, OpenRequest>();

  /** Takes what serves the requests. */
  constructor(options: UsualRequestsOptions) {
    this.#options = options;
  }

  /** Serves a request. */
  take(given: JsonObject, request: UsualRequest): void {
    const lifted = lift(given);
    const open = new OpenRequest(request, lifted, this.#options);
    this.#open.set(request.id, open);
    void this.#serve(open, lifted.params, request);
  }

  /** Cancels a request that has no answer yet. Its client waits for none. */
  cancel(id: string, reason: unknown): void {
    this.#open.get(id)?.cancellation.cancel(reason);
  }

  /** Cancels all. */
  [Symbol.dispose](): void {
    for (const { cancellation } of this.#open.values()) {
      cancellation.cancel(new Error("Connection closed"));
    }
  }

  async #serve(
    open: OpenRequest,
    params: JsonObject,
    { id, method, era }: UsualRequest,
  ): Promise<void> {
    const { texts, opened, connect, answer } = this.#options;
    let text: string;
    try {
      const connection = opened() ?? await connect(era);
      const served = method === "ping" ? {} : await connection.serve(params, open);
      text = texts.said(served, { method, era });
    } catch (error) {
      text = failure(error);
    }
    // A client that cancelled a request may have used its id again.
    if (this.#open.get(id) === open) this.#open.delete(id);
    if (!open.cancellation.isCancelled) answer(id, text);
  }
}

/** A request that has no answer yet. */
class OpenRequest implements RequestContext {
  readonly cancellation: Cancellation = new Cancellation();
  readonly idText: string;
  readonly method: string;
  readonly #lifted: Lifted;
  readonly #options: UsualRequestsOptions;

  constructor({ id, method }: UsualRequest, lifted: Lifted, options: UsualRequestsOptions) {
    this.idText = id;
    this.method = method;
    this.#lifted = lifted;
    this.#options = options;
  }

  get id(): Json {
    return parseExact(this.idText);
  }

  get meta(): JsonObject | undefined {
    const { _meta } = this.#lifted.params;
    return _meta === undefined ? undefined : objectOf(_meta);
  }

  get envelope(): JsonObject | undefined {
    return this.#lifted.envelope;
  }

  get inputResponses(): JsonObject | undefined {
    return this.#lifted.inputResponses;
  }

  get requestState(): unknown {
    return this.#lifted.requestState;
  }

  get headers(): RequestContext["headers"] {
    return this.#options.headers;
  }

  async ask(method: string, params: JsonObject, options: AskOptions): Promise<JsonObject> {
    return await this.#options.ask(method, params, options);
  }

  notify(notification: { readonly method: string; readonly params: object }): Promise<void> {
    return this.#options.notify(notification);
  }
}
