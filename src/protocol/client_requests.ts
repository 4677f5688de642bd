/**
 * Serves the requests of one client.
 *
 * @module
 */

import { Cancellation } from "../core/cancellation.ts";
import { parseExact } from "../core/exact_json.ts";
import { type Json, type JsonObject, objectOf } from "../core/json.ts";
import type { AskOptions, Connection, RequestContext } from "./connection.ts";
import type { Era } from "./revisions.ts";
import { lift, type Lifted } from "./envelope.ts";
import { failure, type ResultTexts } from "./result_texts.ts";

/** A request. */
export interface ClientRequest {
  /** The id, as JSON. */
  readonly id: string;
  readonly method: string;
  readonly era: Era;
}

/** The options of `ClientRequests`. */
export interface ClientRequestsOptions {
  readonly texts: ResultTexts;
  /** Opens the connection of the client, or returns it. */
  readonly connect: (era: Era) => Promise<Connection>;
  /** Returns the connection, once it is open. */
  readonly opened: () => Connection | undefined;
  /** Sends the answer to a request: the text of its members but for the id, which is JSON. */
  readonly answer: (id: string, said: string) => void;
  /** Sends a notification. `related` is the id, as JSON, of the request that it belongs to. */
  readonly notify: (notification: object, related: string) => Promise<void>;
  /** Sends a request to the client, and returns its result. */
  readonly ask: (
    method: string,
    asked: AskOptions & { readonly params: JsonObject; readonly related: string },
  ) => Promise<JsonObject>;
  /** The headers that came over HTTP. */
  readonly headers?: Pick<Headers, "get">;
}

/** A request that came over HTTP. */
export interface PostedRequest extends ClientRequest {
  readonly params: JsonObject;
}

/** Serves the requests of one client. */
export class ClientRequests implements Disposable {
  readonly #options: ClientRequestsOptions;
  /** The requests that have no answer yet, by their ids as JSON. */
  readonly #open = new Map<string, OpenRequest>();

  /** Takes what serves the requests. */
  constructor(options: ClientRequestsOptions) {
    this.#options = options;
  }

  /** Serves a request. */
  take(given: JsonObject, request: ClientRequest): void {
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
    { id, method, era }: ClientRequest,
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
  readonly #options: ClientRequestsOptions;

  constructor({ id, method }: ClientRequest, lifted: Lifted, options: ClientRequestsOptions) {
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
    return await this.#options.ask(method, { ...options, params, related: this.idText });
  }

  notify(notification: { readonly method: string; readonly params: object }): Promise<void> {
    return this.#options.notify(notification, this.idText);
  }
}
