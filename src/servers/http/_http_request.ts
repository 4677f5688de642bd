/**
 * Sends one request to a server over HTTP and reads its answer, which may be in a stream that
 * breaks.
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
  eachEvent,
  EVENTS_TYPE,
  JSON_TYPE,
  leave,
  readBytes,
  TooLong,
  waitOf,
} from "../../io/event_stream.ts";
import { invalidAnswer, requestError, unreached } from "./_http_errors.ts";
import { placeAfter, type ServerHttpSession } from "./_http_session.ts";
import type { HttpWireOptions } from "./http_options.ts";

/** The session and receivers of a request. */
export interface HttpWay {
  readonly options: HttpWireOptions;
  readonly session: ServerHttpSession;
  readonly events: WireEvents;
}

/** How long a response may stay open after its answer has arrived, in milliseconds. */
export const REST_MS = 1_000;
/** How often the rest of a stream that broke is requested. */
const RESUMES = 5;

/** A request without an answer yet. */
export class ServerHttpRequest {
  /** Aborts the request. */
  readonly abort = new AbortController();
  readonly #id: RequestId;
  readonly #message: JsonObject;
  readonly #way: HttpWay;
  #isAnswered = false;
  /** The last event id of its stream. */
  #last: string | undefined;
  #retry: number | undefined;

  /** Sends nothing yet. */
  constructor(id: RequestId, message: JsonObject, way: HttpWay) {
    this.#id = id;
    this.#message = message;
    this.#way = way;
  }

  /**
   * Sends the request as soon as the server is ready, and passes on all messages of its response.
   */
  async run(ready: Promise<unknown>): Promise<void> {
    const { signal } = this.abort;
    try {
      await ready;
      signal.throwIfAborted();
      await this.#take(await this.#way.session.fetch("POST", { message: this.#message, signal }));
    } catch (error) {
      if (signal.aborted || this.#isAnswered) return;
      const { options, session, events } = this.#way;
      const failure = requestError(options, error);
      events.onFailure(this.#id, failure, { isOver: session.isOver(failure) });
    }
  }

  async #take(response: Response): Promise<void> {
    const { options, session } = this.#way;
    if (!response.ok) {
      // A server that could not read the request does not know its id.
      return this.#received({ id: this.#id, error: await session.refused(response) });
    }
    if (isInitialize(this.#message)) session.begin(response);
    switch (contentType(response)) {
      case JSON_TYPE: {
        const json = parsed(await readBytes(response.body, options));
        for (const one of Array.isArray(json) ? json : [json]) this.#received(one);
        break;
      }
      case EVENTS_TYPE:
        await this.#follow(response);
        break;
      default:
        await leave(response);
        throw invalidAnswer(options, "its answer is neither JSON nor a stream of events");
    }
    if (!this.#isAnswered) throw invalidAnswer(options, "its response contains no JSON-RPC answer");
  }

  /** Reads a stream. Resumes it after a break, if the server supports that. */
  async #follow(response: Response): Promise<void> {
    let stream: Response | undefined = response;
    for (let tries = 0; !this.#isAnswered;) {
      const before = this.#last;
      const broke = stream && await this.#events(stream).catch((error) => error);
      if (this.#isAnswered) return;
      if (broke instanceof TooLong || this.abort.signal.aborted) throw broke;
      // Only servers of older revisions resume a stream, and only if they sent event ids.
      tries = this.#last === before ? tries + 1 : 1;
      const { options, session } = this.#way;
      // guard: stream-resumes
      if (session.version === undefined || this.#last === undefined || tries > RESUMES) {
        throw unreached(options, "it ended the stream before it answered");
      }
      stream = await this.#resumed();
    }
  }

  async #events({ body }: Response): Promise<void> {
    let rest: ReturnType<typeof setTimeout> | undefined;
    try {
      await eachEvent(body, {
        ...this.#way.options,
        take: (event) => {
          const { data, retry } = event;
          this.#last = placeAfter(event, this.#last);
          this.#retry = retry ?? this.#retry;
          if (data.length > 0) this.#received(parsed(data));
          // If the server ends the stream, its connection can be used by the next request.
          if (this.#isAnswered) rest ??= setTimeout(() => this.abort.abort(), REST_MS);
        },
      });
    } finally {
      clearTimeout(rest);
    }
  }

  async #resumed(): Promise<Response | undefined> {
    const { signal } = this.abort;
    await pause(waitOf(this.#retry), signal);
    try {
      const stream = await this.#way.session.fetch("GET", { signal, last: this.#last });
      if (stream.ok && contentType(stream) === EVENTS_TYPE) return stream;
      await leave(stream);
    } catch {
      // It is tried again, a few times.
    }
    return undefined;
  }

  #received(message: unknown): void {
    if (!isObject(message)) return this.#way.events.onMessage(message, this.#id);
    // A server that could not read the request does not know its id.
    const isUnnamed = (message.id ?? null) === null && isObject(message.error);
    if (isUnnamed) return this.#received({ ...message, id: this.#id });
    if (numberOf(message.id) === this.#id && message.method === undefined) {
      this.#isAnswered = true;
      const isGreeting = isInitialize(this.#message) && (message.error ?? null) === null;
      if (isGreeting) this.#way.session.greeted(message.result);
    }
    this.#way.events.onMessage(message, this.#id);
  }
}

/** Parses the answer of one request. Throws if it exceeds the limit. */
function parsed(bytes: Uint8Array): unknown {
  const read = readText(bytes, "server");
  if (read.kind === "excess") throw new TooLong(read.why, "result");
  return read.value;
}
