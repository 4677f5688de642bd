/**
 * HTTP+SSE of the revision 2024-11-05 as the wire of an MCP server: all messages of the server
 * arrive on one stream of events, and messages to it are sent to an address that the stream names.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import { type JsonObject, objectOf, quoted } from "../../core/json.ts";
import { contentType, eachEvent, EVENTS_TYPE, leave, TooLong } from "../../io/event_stream.ts";
import { after, soon, unlessAborted } from "../../io/waiting.ts";
import type { Wire, WireEvents } from "../client/wire.ts";
import { invalidAnswer, requestError, unreached } from "./_http_errors.ts";
import { REST_MS } from "./_http_request.ts";
import { ServerHttpSession } from "./_http_session.ts";
import { OrderedMessages } from "./_ordered_messages.ts";
import type { HttpWireOptions } from "./http_options.ts";
import { passMessage, TELL_MS } from "./http_wire.ts";

/** How long a stream may take to name the address for messages, in milliseconds. */
const LOOK_MS = 3_000;
/** How long the end of a stream waits for responses to the last messages, in milliseconds. */
const END_MS = 500;
const ADDRESS_BYTES = 8_192;
const MESSAGE = "message";

/** A server that answers on a stream of events. */
export class SseWire implements Wire {
  /** The stream is always open. */
  readonly tells = true;
  readonly #options: HttpWireOptions;
  readonly #events: WireEvents;
  readonly #session: ServerHttpSession;
  readonly #over = new AbortController();
  readonly #address = Promise.withResolvers<void>();
  /** Whether the stream named an address, so that the server supports HTTP+SSE. */
  #isFound = false;
  /** Resolves when the server accepts the next message. */
  #ready: Promise<unknown> = this.#address.promise;
  readonly #messages = new OrderedMessages();
  /** The messages whose HTTP requests are not over. */
  readonly #sending = new Set<Promise<void>>();
  /** The requests whose HTTP requests are open, with functions that end these soon. */
  readonly #open = new Map<unknown, () => void>();

  /** Requests the stream. Throws if a header cannot be sent. */
  constructor(options: HttpWireOptions, events: WireEvents) {
    this.#options = options;
    this.#session = new ServerHttpSession(options, (name) => events.tool(name));
    this.#events = {
      ...events,
      onMessage: (message) => {
        const { id, method } = objectOf(message);
        if (method === undefined) this.#open.get(id)?.();
        events.onMessage(message);
      },
    };
    void this.#hear();
  }

  /** Sends a message of JSON-RPC. */
  send(message: JsonObject): void {
    const post = () => this.#post(message);
    const sent: Promise<void> =
      (requestIdOf(message) === undefined ? this.#messages.add(post) : post())
        .finally(() => this.#sending.delete(sent));
    this.#sending.add(sent);
    if (message.method === "notifications/cancelled") {
      this.#open.get(objectOf(message.params).requestId)?.();
    }
    if (message.method !== "notifications/initialized") return;
    this.#session.isKept = true;
    // The server would refuse a request that arrives before this message.
    this.#ready = sent;
  }

  /** Returns the error for requests that will not be answered. */
  down(why: string, mayHaveRun: boolean): PmlError {
    return unreached(this.#options, why, { mayHaveRun });
  }

  /** Closes the stream, and aborts all open requests. */
  kill(): void {
    this.#over.abort();
  }

  /** Waits briefly for messages on their way, and closes the stream, which ends the session. */
  async close(): Promise<void> {
    await this.#waitForSends();
    this.kill();
  }

  async #waitForSends(): Promise<void> {
    if (this.#session.isKept) await soon(Promise.all(this.#sending), END_MS);
  }

  async #post(message: JsonObject): Promise<void> {
    const id = requestIdOf(message);
    const [options, session, events] = [this.#options, this.#session, this.#events];
    const controller = new AbortController();
    const signal = AbortSignal.any([this.#over.signal, controller.signal]);
    using _ = id !== undefined ? undefined : after(TELL_MS, () => controller.abort());
    let rest: Disposable | undefined;
    const endSoon = () => void (rest ??= after(REST_MS, () => controller.abort()));
    if (id !== undefined) this.#open.set(id, endSoon);
    try {
      await unlessAborted(this.#ready, signal);
      const response = await session.fetch("POST", { message, signal });
      // guard: sse-notice
      if (id === undefined) endSoon();
      if (response.ok) return await leave(response);
      const error = await session.refused(response);
      if (id !== undefined) events.onMessage({ id, error });
    } catch (error) {
      if (id === undefined || signal.aborted) return;
      const failure = requestError(options, error);
      events.onFailure(id, failure, { isOver: session.isOver(failure) });
    } finally {
      rest?.[Symbol.dispose]();
      this.#open.delete(id);
    }
  }

  async #hear(): Promise<void> {
    const error = await this.#stream().catch((error) => error);
    if (this.#over.signal.aborted) return;
    // The server did not run requests that it refuses now.
    await this.#waitForSends();
    this.kill();
    if (this.#isFound && error instanceof TooLong) {
      return this.#events.onProtocolError(error.message);
    }
    const failure = requestError(this.#options, error);
    this.#events.onEnd(this.#isFound ? failure : this.#options.addressState.other(failure));
  }

  /** Reads the stream to its end. Returns the error for that, or throws it. */
  async #stream(): Promise<unknown> {
    const [options, session] = [this.#options, this.#session];
    const { limits, room } = options;
    const look = new AbortController();
    const nameless = invalidAnswer(options, "its stream names no endpoint");
    const signal = AbortSignal.any([this.#over.signal, look.signal]);
    const stream = await session.fetch("GET", { signal });
    using _ = after(LOOK_MS, () => void (this.#isFound || look.abort(nameless)));
    if (!stream.ok) await session.refused(stream);
    if (contentType(stream) !== EVENTS_TYPE) {
      await leave(stream);
      throw invalidAnswer(options, "its answer is no stream");
    }
    await eachEvent(stream.body, {
      // A message that is over the limit of results ends its request, and not the stream.
      limits: { ...limits, resultBytes: limits.lineBytes },
      room,
      hasTypes: true,
      take: ({ event = MESSAGE, data }) => {
        if (event === "endpoint") this.#begin(data);
        else if (event === MESSAGE) passMessage(data, { events: this.#events, options });
      },
    });
    return this.#isFound ? this.down("it ended the stream", true) : nameless;
  }

  /** Takes the address for messages. Throws if it has another origin: no key may be sent there. */
  #begin(data: Uint8Array): void {
    // guard: sse-first-address
    if (this.#isFound) return;
    this.#isFound = true;
    const { name, url, requestUrl = url } = this.#options;
    const text = new TextDecoder().decode(data.subarray(0, ADDRESS_BYTES + 1));
    const to = data.length > ADDRESS_BYTES ? null : URL.parse(text, requestUrl);
    // guard: sse-origin
    if (to === null || to.username + to.password !== "" || to.origin !== new URL(url).origin) {
      const where = quoted(to?.origin ?? "no valid address", 200);
      const why = `it wants messages sent to ${where}, which is not its own origin`;
      throw new PmlError("UPSTREAM_PROTOCOL", `Cannot use ${quoted(name)}: ${why}`, {
        hint: "Nothing was sent there. The server has to be mended",
        detail: { may_have_run: false },
      });
    }
    this.#options.addressState.store({ isSse: true });
    this.#session.address = to.href;
    this.#address.resolve();
  }
}

/** Returns the id of a request; undefined for another message. */
function requestIdOf({ id, method }: JsonObject): number | undefined {
  return typeof id === "number" && method !== undefined ? id : undefined;
}
