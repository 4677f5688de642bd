/**
 * Connects to an MCP server over Streamable HTTP: each message to the server is an HTTP request. In
 * older revisions, notifications of the server arrive on a separate stream.
 *
 * @module
 */

import type { PmlError } from "../../core/errors.ts";
import type { JsonObject } from "../../core/json.ts";
import { callAfter, pause, settlesWithin } from "../../io/waiting.ts";
import { endsOf } from "../../io/lines.ts";
import { SessionLost, type Wire, type WireEvents } from "../client/wire.ts";
import { readText } from "../../protocol/message.ts";
import type { RequestId } from "../../protocol/rpc_peer.ts";
import {
  contentType,
  drainBody,
  eachEvent,
  EVENTS_TYPE,
  RETRY_MAX_MS,
  retryDelay,
  TooLong,
} from "../../io/event_stream.ts";
import { unreachedError } from "./_http_errors.ts";
import { type HttpContext, LINGER_MS, ServerHttpRequest } from "./_http_request.ts";
import { eventIdAfter, ServerHttpSession } from "./_http_session.ts";
import { OrderedMessages } from "./_ordered_messages.ts";
import type { AddressState, HttpWireOptions } from "./http_options.ts";

/** How long sending a notification may take, in milliseconds. */
export const SEND_MS = 30_000;
/**
 * How long closing waits for the last messages, and for the end of the session, in milliseconds.
 */
const END_MS = 500;

/** A connection to a server at a URL. */
export class HttpWire implements Wire {
  readonly revisions: AddressState;
  readonly address: URL | undefined;
  readonly #context: HttpContext;
  /** The open HTTP requests. The key is the id of a JSON-RPC request, or a symbol for other ones. */
  readonly #open = new Map<RequestId | symbol, AbortController>();
  /** Resolves when the server has received the end of the handshake. */
  #ready: Promise<unknown> = Promise.resolve();
  readonly #messages = new OrderedMessages();
  #isListening = false;
  #isClosed = false;

  /** Sends nothing yet. Throws if a header cannot be sent. */
  constructor(options: HttpWireOptions, events: WireEvents) {
    this.#context = {
      options,
      events,
      session: new ServerHttpSession(options, (name) => events.tool(name)),
    };
    this.revisions = options.addressState;
    this.address = URL.parse(options.url) ?? undefined;
  }

  /** Whether the stream for notifications of the server is open. */
  get reportsChanges(): boolean {
    return this.#isListening;
  }

  /** Sends a message of JSON-RPC. */
  send(message: JsonObject): void {
    if (this.#isClosed) return;
    const { id, method } = message;
    if (typeof id === "number" && method !== undefined) {
      const request = new ServerHttpRequest(id, message, this.#context);
      this.#open.set(id, request.abort);
      void request.run(this.#ready).finally(() => this.#open.delete(id));
      return;
    }
    const sent = this.#messages.add(() => this.#post(message));
    if (method !== "notifications/initialized") return;
    // The server would refuse a request that arrives before this message, which ends the handshake.
    this.#ready = sent;
    sent.then(() => this.#listen());
  }

  /** Cancels a request. In older revisions, also notifies the server; otherwise the abort does. */
  cancel(id: RequestId, params: JsonObject): void {
    this.#open.get(id)?.abort();
    if (this.#context.session.version === undefined) return;
    this.send({ method: "notifications/cancelled", params });
  }

  /** Returns the error for requests that will not be answered. */
  downError(why: string, mayHaveRun: boolean): PmlError {
    return unreachedError(this.#context.options, why, { mayHaveRun });
  }

  /** Whether the server sent a session id. */
  get hasSession(): boolean {
    return this.#context.session.isOpen;
  }

  /** The session id, if the server sent one. */
  get sessionId(): string | undefined {
    return this.#context.session.id;
  }

  /**
   * Returns the error for a refused handshake. Makes the next connection try the other transport.
   */
  explain(error: PmlError): PmlError {
    return this.#context.options.addressState.useOtherTransport(error);
  }

  /** Aborts all open requests. */
  kill(): void {
    this.#isClosed = true;
    for (const abort of this.#open.values()) abort.abort();
  }

  /**
   * Waits briefly for notifications that are being sent, aborts all requests, and ends the session.
   */
  async close(): Promise<void> {
    await settlesWithin(this.#messages.allSent(), END_MS);
    this.kill();
    const { session } = this.#context;
    if (session.id === undefined) return;
    const abort = new AbortController();
    const ended = session.fetch("DELETE", { signal: abort.signal }).then(drainBody);
    await settlesWithin(ended, END_MS);
    abort.abort();
  }

  #begin(key: symbol): AbortController {
    const abort = new AbortController();
    this.#open.set(key, abort);
    return abort;
  }

  /** Sends a notification or an answer. */
  async #post(message: JsonObject): Promise<void> {
    if (this.#isClosed) return;
    const key = Symbol();
    const abort = this.#begin(key);
    using _ = callAfter(SEND_MS, () => abort.abort());
    try {
      const answer = await this.#context.session.fetch("POST", { message, signal: abort.signal });
      using _lingerTimer = callAfter(LINGER_MS, () => abort.abort());
      await drainBody(answer);
    } catch {
      // The request to which the message belongs reports the failure.
    } finally {
      this.#open.delete(key);
    }
  }

  /** Reads the server's stream of notifications, if it has one. Only older revisions have one. */
  async #listen(): Promise<void> {
    const { session, events } = this.#context;
    const { signal } = this.#begin(Symbol());
    const state: StreamState = { last: undefined, wait: retryDelay(), isAgain: false };
    for (; !this.#isClosed; await pause(state.wait, signal)) {
      try {
        const stream = await session.fetch("GET", { signal, last: state.last });
        this.#isListening = stream.ok && contentType(stream) === EVENTS_TYPE;
        if (this.#isListening) {
          await this.#readStream(stream, state).finally(() => this.#reportInterruption());
        } else if (await this.#handleRefusal(stream, state)) return;
      } catch (error) {
        if (error instanceof TooLong) return events.onProtocolError(error.message);
        state.wait = Math.min(state.wait * 2, RETRY_MAX_MS);
      }
      this.#isListening = false;
    }
  }

  /** Reports that the stream of notifications ended: the server may be another program now. */
  #reportInterruption(): void {
    const { options, events } = this.#context;
    if (!this.#isClosed) {
      events.onFailure(undefined, unreachedError(options, "its stream ended"), { isLost: false });
    }
  }

  async #readStream({ body }: Response, state: StreamState): Promise<void> {
    const { options, events } = this.#context;
    // Without an event id to resume after, notifications from before this stream are lost.
    if (state.isAgain && state.last === undefined) events.onMissed();
    state.isAgain = true;
    await eachEvent(body, {
      ...options,
      take: (event) => {
        state.last = eventIdAfter(event, state.last);
        state.wait = retryDelay(event.retry);
        passMessage(event.data, this.#context);
      },
    });
  }

  /** Handles a refusal of the stream. Returns whether PML stops requesting it. */
  async #handleRefusal(stream: Response, state: StreamState): Promise<boolean> {
    const { options, session, events } = this.#context;
    const { status } = stream;
    await drainBody(stream);
    if (status === 404 && session.isOpen) {
      events.onMissed();
      events.onFailure(undefined, new SessionLost(options.name), { isLost: true });
      return true;
    }
    state.wait = Math.min(state.wait * 2, RETRY_MAX_MS);
    if (status >= 500) return !state.isAgain;
    // If the server only forgot the event id, a stream without it may work.
    const isFinal = state.last === undefined;
    state.last = undefined;
    return isFinal;
  }
}

/** The state of the stream of notifications, over all of its connections. */
interface StreamState {
  /** The last event id. */
  last: string | undefined;
  /** How long to wait before the next request for the stream, in milliseconds. */
  wait: number;
  /** Whether the stream was open before. */
  isAgain: boolean;
}

/** Passes on a message that belongs to no HTTP request, or reports that it exceeds a limit. */
export function passMessage(
  data: Uint8Array,
  { events, options: { limits: { resultBytes: max } } }: Pick<HttpContext, "events" | "options">,
): void {
  const { length: size } = data;
  if (size === 0) return;
  const read = size > max
    ? { kind: "excess" as const, why: `it has more than ${max} bytes` }
    : readText(data, "server");
  if (read.kind === "excess") events.onExcess(endsOf(data), { why: read.why });
  else events.onMessage(read.value);
}
