/**
 * Streamable HTTP as the wire of an MCP server: each message is an HTTP request, and notifications
 * of the server arrive on a separate stream.
 *
 * @module
 */

import type { PmlError } from "../../core/errors.ts";
import type { JsonObject } from "../../core/json.ts";
import { after, pause, soon } from "../../io/waiting.ts";
import { endsOf } from "../../io/lines.ts";
import { SessionLost, type Wire, type WireEvents } from "../client/wire.ts";
import { readText } from "../../protocol/message.ts";
import type { RequestId } from "../../protocol/rpc_peer.ts";
import {
  contentType,
  eachEvent,
  EVENTS_TYPE,
  leave,
  RETRY_MAX_MS,
  TooLong,
  waitOf,
} from "../../io/event_stream.ts";
import { unreached } from "./_http_errors.ts";
import { type HttpWay, REST_MS, ServerHttpRequest } from "./_http_request.ts";
import { placeAfter, ServerHttpSession } from "./_http_session.ts";
import { OrderedMessages } from "./_ordered_messages.ts";
import type { AddressState, HttpWireOptions } from "./http_options.ts";

/** How long sending a notification may take, in milliseconds. */
export const TELL_MS = 30_000;
const END_MS = 500;

/** A connection to a server at a URL. */
export class HttpWire implements Wire {
  readonly revisions: AddressState;
  readonly #way: HttpWay;
  /** Open HTTP requests: JSON-RPC requests by their ids, and others. */
  readonly #open = new Map<RequestId | symbol, AbortController>();
  /** Resolves when the server has received the end of the handshake. */
  #ready: Promise<unknown> = Promise.resolve();
  readonly #messages = new OrderedMessages();
  #hears = false;
  #isClosed = false;

  /** Sends nothing yet. Throws if a header cannot be sent. */
  constructor(options: HttpWireOptions, events: WireEvents) {
    this.#way = {
      options,
      events,
      session: new ServerHttpSession(options, (name) => events.tool(name)),
    };
    this.revisions = options.addressState;
  }

  /** Whether the stream for notifications of the server is open. */
  get tells(): boolean {
    return this.#hears;
  }

  /** Sends a message of JSON-RPC. */
  send(message: JsonObject): void {
    if (this.#isClosed) return;
    const { id, method } = message;
    if (typeof id === "number" && method !== undefined) {
      const request = new ServerHttpRequest(id, message, this.#way);
      this.#open.set(id, request.abort);
      void request.run(this.#ready).finally(() => this.#open.delete(id));
      return;
    }
    const sent = this.#messages.add(() => this.#tell(message));
    if (method !== "notifications/initialized") return;
    // The server would refuse a request that arrives before the end of the handshake.
    this.#ready = sent;
    sent.then(() => this.#hear());
  }

  /** Cancels a request. In the stateless revision, closing its stream notifies the server. */
  cancel(id: RequestId, params: JsonObject): void {
    this.#open.get(id)?.abort();
    if (this.#way.session.version === undefined) return;
    this.send({ method: "notifications/cancelled", params });
  }

  /** Returns the error for requests that will not be answered. */
  down(why: string, mayHaveRun: boolean): PmlError {
    return unreached(this.#way.options, why, { mayHaveRun });
  }

  /** Whether the server sent a session id. */
  get hasSession(): boolean {
    return this.#way.session.isKept;
  }

  /** Makes the next connection try the older transport, if the address may support it. */
  explain(error: PmlError): PmlError {
    return this.#way.options.addressState.other(error);
  }

  /** Aborts all open requests. */
  kill(): void {
    this.#isClosed = true;
    for (const abort of this.#open.values()) abort.abort();
  }

  /** Waits briefly for notifications on their way, aborts all requests, and ends the session. */
  async close(): Promise<void> {
    await soon(this.#messages.sent(), END_MS);
    this.kill();
    const { session } = this.#way;
    if (session.id === undefined) return;
    const abort = new AbortController();
    const ended = session.fetch("DELETE", { signal: abort.signal }).then(leave);
    await soon(ended, END_MS);
    abort.abort();
  }

  #begin(key: symbol): AbortController {
    const abort = new AbortController();
    this.#open.set(key, abort);
    return abort;
  }

  /** Sends a notification or an answer. */
  async #tell(message: JsonObject): Promise<void> {
    if (this.#isClosed) return;
    const key = Symbol();
    const abort = this.#begin(key);
    using _ = after(TELL_MS, () => abort.abort());
    try {
      const answer = await this.#way.session.fetch("POST", { message, signal: abort.signal });
      using _rest = after(REST_MS, () => abort.abort());
      await leave(answer);
    } catch {
      // Failures of this kind are reported by the request that they belong to.
    } finally {
      this.#open.delete(key);
    }
  }

  /** Reads the notification stream of a server of the older revisions, if it has one. */
  async #hear(): Promise<void> {
    const { session, events } = this.#way;
    const { signal } = this.#begin(Symbol());
    const state: Heard = { last: undefined, wait: waitOf(), isAgain: false };
    for (; !this.#isClosed; await pause(state.wait, signal)) {
      try {
        const stream = await session.fetch("GET", { signal, last: state.last });
        this.#hears = stream.ok && contentType(stream) === EVENTS_TYPE;
        if (this.#hears) {
          await this.#take(stream, state).finally(() => this.#interrupted());
        } else if (await this.#refused(stream, state)) return;
      } catch (error) {
        if (error instanceof TooLong) return events.onProtocolError(error.message);
        state.wait = Math.min(state.wait * 2, RETRY_MAX_MS);
      }
      this.#hears = false;
    }
  }

  /** Reports that a stream of notifications ended: the server may be another program now. */
  #interrupted(): void {
    const { options, events } = this.#way;
    if (!this.#isClosed) {
      events.onFailure(undefined, unreached(options, "its stream ended"), { isOver: false });
    }
  }

  async #take({ body }: Response, state: Heard): Promise<void> {
    const { options, events } = this.#way;
    // Notifications sent during the break are lost.
    if (state.isAgain && state.last === undefined) events.onMissed();
    state.isAgain = true;
    await eachEvent(body, {
      ...options,
      take: (event) => {
        state.last = placeAfter(event, state.last);
        state.wait = waitOf(event.retry);
        passMessage(event.data, this.#way);
      },
    });
  }

  /** Handles a refusal of the stream. Returns whether it is final. */
  async #refused(stream: Response, state: Heard): Promise<boolean> {
    const { options, session, events } = this.#way;
    const { status } = stream;
    await leave(stream);
    if (status === 404 && session.isKept) {
      events.onMissed();
      events.onFailure(undefined, new SessionLost(options.name), { isOver: true });
      return true;
    }
    state.wait = Math.min(state.wait * 2, RETRY_MAX_MS);
    if (status >= 500) return !state.isAgain;
    // The server may have forgotten the event id.
    const isOver = state.last === undefined;
    state.last = undefined;
    return isOver;
  }
}

/** The position in a stream. */
interface Heard {
  last: string | undefined;
  wait: number;
  isAgain: boolean;
}

/** Passes on a message that belongs to no HTTP request, or reports that it exceeds the limits. */
export function passMessage(
  data: Uint8Array,
  { events, options: { limits: { resultBytes: max } } }: Pick<HttpWay, "events" | "options">,
): void {
  const { length: size } = data;
  if (size === 0) return;
  const read = size > max
    ? { kind: "excess" as const, why: `it has more than ${max} bytes` }
    : readText(data, "server");
  if (read.kind === "excess") events.excess(endsOf(data), { why: read.why });
  else events.onMessage(read.value);
}
