/**
 * Requests of the newest revision: each says what the client can do, and its result may be that the
 * server wants to know something first.
 *
 * @module
 */

import { isObject, type Json, type JsonObject, objectOf, quoted, textOf } from "../core/json.ts";
import { withMeta } from "./_meta.ts";
import { Answered, type Asked, type Peer, type RequestOptions } from "./_peer.ts";
import { NO_SUCH_METHOD } from "./_revisions.ts";

/** What such requests need. */
export interface NewestOptions {
  /** What the client can do for a server. */
  readonly able: () => JsonObject;
  /** Answers what the server asks. */
  readonly answer: (asked: Asked) => Promise<JsonObject>;
  /** Makes the error of a server that does not answer as it should. */
  readonly broken: (why: string) => Error;
  /** Aborts when the connection is over. */
  readonly over: AbortSignal;
}

/** How much a server may ask in one answer. */
const ASKED_MAX = 64;
/** How often a server may ask before it answers. */
const ROUNDS_MAX = 20;

/** Sends requests in the words of the newest revision. */
export class NewestRequests {
  readonly #peer: Peer;
  readonly #options: NewestOptions;

  /** Sends them to a peer, which need not have said that it knows them. */
  constructor(peer: Peer, options: NewestOptions) {
    this.#peer = peer;
    this.#options = options;
  }

  /** Sends a request and gives its result; what the server wants to know first is asked meanwhile. */
  async request(method: string, params: JsonObject, options: RequestOptions): Promise<Json> {
    let answers: JsonObject = {};
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const said = this.#withMeta({ ...params, ...answers }, options, method);
      const result = await this.#peer.request(method, said, options);
      if (!isObject(result) || result.resultType !== "input_required") return result;
      answers = await this.answersTo(result as JsonObject, options); // parsed JSON
    }
    throw this.#options.broken(`it asked ${ROUNDS_MAX} times before it answered`);
  }

  /** Has the server tell of what is wanted, until it ends that, or the signal aborts. */
  async listen(wanted: JsonObject, options: RequestOptions): Promise<void> {
    const said = this.#withMeta({ notifications: wanted }, options);
    await this.#peer.request("subscriptions/listen", said, { ...options, lasts: true });
  }

  /** Has all answered that a result asks for. */
  async answersTo(result: JsonObject, during: RequestOptions): Promise<JsonObject> {
    const { answer, broken, over } = this.#options;
    const { inputRequests, requestState } = result;
    const requests = Object.entries(objectOf(inputRequests));
    if (requests.length > ASKED_MAX) throw broken("it asks too much at once");
    // Where one fails the others are taken back.
    const failed = new AbortController();
    const signal = AbortSignal.any([during.signal, over, failed.signal]);
    const asked = requests.map(async ([key, one]) => {
      const { method, params } = objectOf(one);
      const request = { method: textOf(method), params: objectOf(params), signal, during };
      try {
        return [key, await answer(request)] as const;
      } catch (error) {
        // What PML refuses is no error of the server.
        if (!(error instanceof Answered)) throw error;
        throw broken(`it asked for ${quoted(request.method)}, but ${error.message}`);
      }
    });
    try {
      const inputResponses = Object.fromEntries(await Promise.all(asked));
      return { inputResponses, ...(typeof requestState === "string" && { requestState }) };
    } finally {
      failed.abort(new Answered(NO_SUCH_METHOD, "another question failed"));
    }
  }

  #withMeta(params: JsonObject, options: RequestOptions, method?: string): JsonObject {
    return withMeta(params, { ...options, method, able: this.#options.able() });
  }
}
