/**
 * Sends one request to a server over HTTP and reads its answer. If the stream breaks before the
 * answer has arrived, resumes it.
 *
 * @module
 */

import { numberOf } from "../../core/exact_number.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { pause } from "../../io/waiting.ts";
import type { WireEvents } from "../client/wire.ts";
import { isInitialize } from "../../protocol/initialize.ts";
import { readText } from "../../protocol/message.ts";
import type { RequestId } from "../../protocol/rpc_peer.ts";
import {
  contentType,
  drainBody,
  eachEvent,
  EVENTS_TYPE,
  JSON_TYPE,
  readBytes,
  retryDelay,
  TooLong,
} from "../../io/event_stream.ts";
import { invalidAnswerError, requestError, unreachedError } from "./_http_errors.ts";
import { eventIdAfter, type ServerHttpSession } from "./_http_session.ts";
import type { HttpWireOptions } from "./http_options.ts";

/** The connection on which a request is sent. */
export interface HttpContext {
  readonly options: HttpWireOptions;
  readonly session: ServerHttpSession;
  readonly events: WireEvents;
}

/**
 * How long an HTTP response may stay open after the JSON-RPC answer has arrived, in milliseconds.
 */
export const LINGER_MS = 1_000;
/** The maximum number of times in a row that a stream is resumed without a new event. */
const RESUMES = 5;

/** A request without an answer yet. */
export class ServerHttpRequest {
  /** Aborts the request. */
  readonly abort = new AbortController();
  readonly #id: RequestId;
  readonly #message: JsonObject;
  readonly #context: HttpContext;
  #isAnswered = false;
  /** The last event id of the request's stream. */
  #last: string | undefined;
  /** How long the server wants clients to wait before they resume, in milliseconds. */
  #retry: number | undefined;

  /** Sends nothing yet. */
  constructor(id: RequestId, message: JsonObject, context: HttpContext) {
    this.#id = id;
    this.#message = message;
    this.#context = context;
  }

  /**
   * Sends the request as soon as the server is ready, and passes on all messages of its response.
   */
  async run(ready: Promise<unknown>): Promise<void> {
    const { signal } = this.abort;
    try {
      await ready;
      signal.throwIfAborted();
      await this.#take(
        await this.#context.session.fetch("POST", { message: this.#message, signal }),
      );
    } catch (error) {
      if (signal.aborted || this.#isAnswered) return;
      const { options, session, events } = this.#context;
      const failure = requestError(options, error);
      events.onFailure(this.#id, failure, { isLost: session.isConnectionLost(failure) });
    }
  }

  async #take(response: Response): Promise<void> {
    const { options, session } = this.#context;
    if (!response.ok) {
      // The answer may lack the id: a server that could not read the request does not know it.
      return this.#deliver({ id: this.#id, error: await session.readRefusal(response) });
    }
    if (isInitialize(this.#message)) session.begin(response);
    switch (contentType(response)) {
      case JSON_TYPE: {
        const json = parseAnswer(await readBytes(response.body, options));
        for (const message of Array.isArray(json) ? json : [json]) this.#deliver(message);
        break;
      }
      case EVENTS_TYPE:
        await this.#follow(response);
        break;
      default:
        await drainBody(response);
        throw invalidAnswerError(options, "its answer is neither JSON nor a stream of events");
    }
    if (!this.#isAnswered) {
      throw invalidAnswerError(options, "its response contains no JSON-RPC answer");
    }
  }

  /** Reads a stream of events. Resumes the stream after a break, if the server supports that. */
  async #follow(response: Response): Promise<void> {
    let stream: Response | undefined = response;
    for (let tries = 0; !this.#isAnswered;) {
      const before = this.#last;
      const streamError = stream && await this.#events(stream).catch((error) => error);
      if (this.#isAnswered) return;
      if (streamError instanceof TooLong || this.abort.signal.aborted) throw streamError;
      // Only servers of older revisions resume a stream, and only if they sent event ids.
      tries = this.#last === before ? tries + 1 : 1;
      const { options, session } = this.#context;
      // guard: stream-resumes
      if (session.version === undefined || this.#last === undefined || tries > RESUMES) {
        throw unreachedError(options, "it ended the stream before it answered");
      }
      stream = await this.#resume();
    }
  }

  async #events({ body }: Response): Promise<void> {
    let lingerTimer: ReturnType<typeof setTimeout> | undefined;
    try {
      await eachEvent(body, {
        ...this.#context.options,
        take: (event) => {
          const { data, retry } = event;
          this.#last = eventIdAfter(event, this.#last);
          this.#retry = retry ?? this.#retry;
          if (data.length > 0) this.#deliver(parseAnswer(data));
          // Waits a little for the server to end the stream: then the next request can use its TCP
          // connection.
          if (this.#isAnswered) lingerTimer ??= setTimeout(() => this.abort.abort(), LINGER_MS);
        },
      });
    } finally {
      clearTimeout(lingerTimer);
    }
  }

  async #resume(): Promise<Response | undefined> {
    const { signal } = this.abort;
    await pause(retryDelay(this.#retry), signal);
    try {
      const stream = await this.#context.session.fetch("GET", { signal, last: this.#last });
      if (stream.ok && contentType(stream) === EVENTS_TYPE) return stream;
      await drainBody(stream);
    } catch {
      // The caller tries again, a few times.
    }
    return undefined;
  }

  #deliver(message: unknown): void {
    if (!isObject(message)) return this.#context.events.onMessage(message, this.#id);
    // A server that could not read the request does not know its id.
    const isUnnamed = (message.id ?? null) === null && isObject(message.error);
    if (isUnnamed) return this.#deliver({ ...message, id: this.#id });
    if (numberOf(message.id) === this.#id && message.method === undefined) {
      this.#isAnswered = true;
      const isHandshake = isInitialize(this.#message) && (message.error ?? null) === null;
      if (isHandshake) this.#context.session.onInitialized(message.result);
    }
    this.#context.events.onMessage(message, this.#id);
  }
}

/** Parses the answer of one request. Throws if it exceeds the limit. */
function parseAnswer(bytes: Uint8Array): unknown {
  const read = readText(bytes, "server");
  if (read.kind === "excess") throw new TooLong(read.why, "result");
  return read.value;
}
