/**
 * Serves requests that need no SDK: those of which nearly all the work of a client consists.
 *
 * @module
 */

import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { type JsonObject, objectOf } from "../core/json.ts";
import type { Cancel } from "../core/quick_tool.ts";
import type { Connection, RequestContext } from "../gateway/connection.ts";
import { EVENTS_TYPE, JSON_TYPE } from "../io/event_stream.ts";
import { type Era, eraOf, hasFitToken, lift } from "./_envelope.ts";
import { classify } from "./_json_rpc.ts";
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
  readonly notify: (one: object) => Promise<void>;
  /** Asks the client something. */
  readonly send: (...asked: readonly unknown[]) => Promise<unknown>;
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
  /** What is worked on, by the ids of the requests. */
  readonly #running = new Map<string, Pick<AbortController, "abort">>();

  /** Takes what serves the requests. */
  constructor(options: UsualRequestsOptions) {
    this.#options = options;
  }

  /** Serves a request. */
  take(given: JsonObject, request: UsualRequest): void {
    if (request.method === "tools/call" && this.#begins(given, request)) return;
    void this.#serve(given, request);
  }

  /** Cancels a request, if it is worked on. Its client waits for no answer. */
  cancel(id: string, reason: unknown): void {
    this.#running.get(id)?.abort(reason);
  }

  /** Cancels all. */
  [Symbol.dispose](): void {
    for (const abort of this.#running.values()) abort.abort(new Error("Connection closed"));
  }

  /** Begins to serve a call that can run at once. Returns false if it has to be served. */
  #begins(given: JsonObject, request: UsualRequest): boolean {
    const { opened, texts, headers } = this.#options;
    const connection = opened();
    if (connection === undefined) return false;
    const { id, method } = request;
    const { params, ...lifted } = lift(given);
    // What answers a question is no new call.
    if ("inputResponses" in lifted || lifted.requestState !== undefined) return false;
    const begun = new BegunRequest((said) => {
      this.#over(id, begun);
      if (said !== undefined) this.#options.answer(id, said);
    });
    begun.cancel = connection.begin(params, {
      id,
      envelope: lifted.envelope,
      headers,
      context: () => {
        const signal = begun.signal();
        return this.#contextOf(lifted, { id, method, signal, _meta: params._meta });
      },
      answered: (result) => begun.answer(texts.said(result, request)),
      failed: (error) => begun.answer(failure(error)),
    });
    if (begun.cancel === undefined) return false;
    if (!begun.isOver) this.#running.set(id, begun);
    return true;
  }

  async #serve(given: JsonObject, { id, method, era }: UsualRequest): Promise<void> {
    const abort = new AbortController();
    this.#running.set(id, abort);
    const { signal } = abort;
    const { texts, connect, answer } = this.#options;
    let said: string;
    try {
      const { params, ...lifted } = lift(given);
      const context = this.#contextOf(lifted, { id, method, signal, _meta: params._meta });
      const served = method === "ping" ? {} : await (await connect(era)).serve(params, context);
      said = texts.said(served, { method, era });
    } catch (error) {
      said = failure(error);
    }
    this.#over(id, abort);
    // A client that cancelled a request waits for no answer.
    if (!signal.aborted) answer(id, said);
  }

  /** Forgets a request that is over. A client that cancelled it may have used its id again. */
  #over(id: string, running: Pick<AbortController, "abort">): void {
    if (this.#running.get(id) === running) this.#running.delete(id);
  }

  #contextOf(
    { envelope, inputResponses, requestState }: Omit<ReturnType<typeof lift>, "params">,
    { id, ...request }: {
      readonly id: string;
      readonly method: string;
      readonly signal: AbortSignal;
      readonly _meta: unknown;
    },
  ): RequestContext {
    const { send, notify, headers } = this.#options;
    const mcpReq = {
      ...request,
      id: JSON.parse(id),
      envelope,
      inputResponses,
      requestState: () => requestState,
      ...{ send, notify },
    };
    // It has what the SDK's own context has.
    return { mcpReq, http: headers && { req: { headers } } } as unknown as RequestContext;
  }
}

/**
 * A request whose call began at once. It is answered once, or cancelled: a client that cancelled a
 * request waits for no answer.
 */
class BegunRequest {
  /** Cancels its call. */
  cancel: Cancel | undefined;
  #onOver: ((said?: string) => void) | undefined;
  #abort: AbortController | undefined;

  /** Takes what is called once, with the members of the answer if there is one. */
  constructor(onOver: (said?: string) => void) {
    this.#onOver = onOver;
  }

  /** Whether it was answered or cancelled. */
  get isOver(): boolean {
    return this.#onOver === undefined;
  }

  /** Returns the signal that aborts with it, which few requests need. */
  signal(): AbortSignal {
    return (this.#abort = new AbortController()).signal;
  }

  /** Answers it. */
  answer(said: string): void {
    this.#end()?.(said);
  }

  /** Cancels it. */
  abort(reason: unknown): void {
    const { cancel } = this;
    const over = this.#end();
    if (over === undefined) return;
    over();
    this.#abort?.abort(reason);
    cancel?.(reason);
  }

  /** Forgets its call. The engine keeps old tables of a Map, with what was in them, for long. */
  #end(): ((said?: string) => void) | undefined {
    const over = this.#onOver;
    this.#onOver = this.cancel = undefined;
    return over;
  }
}
