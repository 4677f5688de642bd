/**
 * Connects to an MCP server over HTTP+SSE, the transport of the revision 2024-11-05: all messages
 * of the server arrive on one stream of events. PML sends messages to an address that the stream
 * names.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import { type JsonObject, objectOf, quoted } from "../../core/json.ts";
import { contentType, drainBody, eachEvent, EVENTS_TYPE, TooLong } from "../../io/event_stream.ts";
import { callAfter, settlesWithin, unlessAborted } from "../../io/waiting.ts";
import type { Wire, WireEvents } from "../client/wire.ts";
import { invalidAnswerError, requestError, unreachedError } from "./_http_errors.ts";
import { LINGER_MS } from "./_http_request.ts";
import { ServerHttpSession } from "./_http_session.ts";
import { OrderedMessages } from "./_ordered_messages.ts";
import type { HttpWireOptions } from "./http_options.ts";
import { passMessage, SEND_MS } from "./http_wire.ts";

/** How long a stream may take to name the address for messages, in milliseconds. */
const ENDPOINT_MS = 3_000;
/**
 * How long PML waits for the responses to the last messages when it closes the stream, or when the
 * stream has ended, in milliseconds.
 */
const END_MS = 500;
/** The maximum length of the address for messages, in bytes. */
const ADDRESS_BYTES = 8_192;
/** The type of the events with messages. */
const MESSAGE = "message";

/** A server that answers on a stream of events. */
export class SseWire implements Wire {
  /** Always true, because the server can send notifications on the stream. */
  readonly reportsChanges = true;
  readonly address: URL | undefined;
  readonly #options: HttpWireOptions;
  readonly #events: WireEvents;
  readonly #session: ServerHttpSession;
  readonly #over = new AbortController();
  readonly #address = Promise.withResolvers<void>();
  /**
   * Whether the stream has named the address for messages, so that the server supports HTTP+SSE.
   */
  #hasEndpoint = false;
  /** Resolves when the server accepts the next message. */
  #ready: Promise<unknown> = this.#address.promise;
  readonly #messages = new OrderedMessages();
  /** The HTTP requests of messages, until they end. */
  readonly #sending = new Set<Promise<void>>();
  /** For the id of each open request: a function that ends its HTTP request after `LINGER_MS`. */
  readonly #open = new Map<unknown, () => void>();

  /** Requests the stream. Throws if a header cannot be sent. */
  constructor(options: HttpWireOptions, events: WireEvents) {
    this.#options = options;
    this.address = URL.parse(options.url) ?? undefined;
    this.#session = new ServerHttpSession(options, (name) => events.tool(name));
    this.#events = {
      ...events,
      onMessage: (message) => {
        const { id, method } = objectOf(message);
        if (method === undefined) this.#open.get(id)?.();
        events.onMessage(message);
      },
    };
    void this.#listen();
  }

  /** Sends a message of JSON-RPC. */
  send(message: JsonObject): void {
    // The end of the handshake becomes `#ready`, so it must not wait for a later value of it.
    const ready = this.#ready;
    const post = () => this.#post(message, ready);
    const sent: Promise<void> =
      (requestIdOf(message) === undefined ? this.#messages.add(post) : post())
        .finally(() => this.#sending.delete(sent));
    this.#sending.add(sent);
    if (message.method === "notifications/cancelled") {
      this.#open.get(objectOf(message.params).requestId)?.();
    }
    if (message.method !== "notifications/initialized") return;
    this.#session.isOpen = true;
    // The server would refuse a request that arrives before this message.
    this.#ready = sent;
  }

  /** Returns the error for requests that will not be answered. */
  downError(why: string, mayHaveRun: boolean): PmlError {
    return unreachedError(this.#options, why, { mayHaveRun });
  }

  /** Closes the stream, and aborts all open requests. */
  kill(): void {
    this.#over.abort();
  }

  /**
   * Waits briefly for messages that are being sent, and closes the stream. That ends the session.
   */
  async close(): Promise<void> {
    await this.#waitForSends();
    this.kill();
  }

  /** Waits briefly for messages that are being sent, if the handshake has ended. */
  async #waitForSends(): Promise<void> {
    // Before, the messages may wait for an address that the stream never names.
    if (this.#session.isOpen) await settlesWithin(Promise.all(this.#sending), END_MS);
  }

  async #post(message: JsonObject, ready: Promise<unknown>): Promise<void> {
    const id = requestIdOf(message);
    const [options, session, events] = [this.#options, this.#session, this.#events];
    const controller = new AbortController();
    const signal = AbortSignal.any([this.#over.signal, controller.signal]);
    using _ = id !== undefined ? undefined : callAfter(SEND_MS, () => controller.abort());
    let lingerTimer: Disposable | undefined;
    const endSoon = () => void (lingerTimer ??= callAfter(LINGER_MS, () => controller.abort()));
    if (id !== undefined) this.#open.set(id, endSoon);
    try {
      await unlessAborted(ready, signal);
      const response = await session.fetch("POST", { message, signal });
      // guard: sse-notice
      if (id === undefined) endSoon();
      if (response.ok) return await drainBody(response);
      const error = await session.readRefusal(response);
      if (id !== undefined) events.onMessage({ id, error });
    } catch (error) {
      if (id === undefined || signal.aborted) return;
      const failure = requestError(options, error);
      events.onFailure(id, failure, { isLost: session.isConnectionLost(failure) });
    } finally {
      lingerTimer?.[Symbol.dispose]();
      this.#open.delete(id);
    }
  }

  async #listen(): Promise<void> {
    const error = await this.#readStream().catch((error) => error);
    if (this.#over.signal.aborted) return;
    // The server may still refuse requests that are being sent. Such an error states that the
    // request did not run, so it is more useful than the error below.
    await this.#waitForSends();
    this.kill();
    if (this.#hasEndpoint && error instanceof TooLong) {
      return this.#events.onProtocolError(error.message);
    }
    const failure = requestError(this.#options, error);
    this.#events.onEnd(
      this.#hasEndpoint ? failure : this.#options.addressState.useOtherTransport(failure),
    );
  }

  /**
   * Reads the stream to its end. Returns the error for the end. Throws if the stream cannot be
   * read.
   */
  async #readStream(): Promise<unknown> {
    const [options, session] = [this.#options, this.#session];
    const { limits, waitForMemory } = options;
    const endpointLimit = new AbortController();
    const noEndpoint = invalidAnswerError(options, "its stream names no endpoint");
    const signal = AbortSignal.any([this.#over.signal, endpointLimit.signal]);
    const stream = await session.fetch("GET", { signal });
    using _ = callAfter(
      ENDPOINT_MS,
      () => void (this.#hasEndpoint || endpointLimit.abort(noEndpoint)),
    );
    // If the refusal is a JSON-RPC error, this throws nothing: no request waits for it, and the
    // type of the answer is wrong, too.
    if (!stream.ok) await session.readRefusal(stream);
    if (contentType(stream) !== EVENTS_TYPE) {
      await drainBody(stream);
      throw invalidAnswerError(options, "its answer is no stream");
    }
    await eachEvent(stream.body, {
      // `eachEvent()` ends the stream at its limit, but a result that is too large must end only its
      // request. So the stream has the larger limit, and `passMessage()` checks that of results.
      limits: { ...limits, resultBytes: limits.lineBytes },
      waitForMemory,
      hasTypes: true,
      take: ({ event = MESSAGE, data }) => {
        if (event === "endpoint") this.#setEndpoint(data);
        else if (event === MESSAGE) passMessage(data, { events: this.#events, options });
      },
    });
    return this.#hasEndpoint ? this.downError("it ended the stream", true) : noEndpoint;
  }

  /** Sets the address for messages. Throws if PML cannot use the address. */
  #setEndpoint(data: Uint8Array): void {
    // guard: sse-first-address
    if (this.#hasEndpoint) return;
    this.#hasEndpoint = true;
    const address = parseAddress(data, this.#options);
    this.#options.addressState.store({ isSse: true });
    this.#session.address = address.href;
    this.#address.resolve();
  }
}

/**
 * Parses the address for messages. Throws if it has another origin than the stream, because
 * messages contain keys, or if it is not an address to which PML can send messages.
 */
function parseAddress(data: Uint8Array, { name, url, requestUrl = url }: HttpWireOptions): URL {
  const refusal = (why: string) =>
    new PmlError("UPSTREAM_PROTOCOL", `Cannot use ${quoted(name)}: ${why}`, {
      hint: "Nothing was sent there. The author of the server has to correct the address",
      detail: { may_have_run: false },
    });
  if (data.length > ADDRESS_BYTES) {
    throw refusal(`its address for messages has more than ${ADDRESS_BYTES} bytes`);
  }
  const address = URL.parse(new TextDecoder().decode(data), requestUrl);
  if (address === null || !/^https?:$/.test(address.protocol)) {
    throw refusal("its address for messages is not a valid URL of HTTP");
  }
  if (address.username + address.password !== "") {
    throw refusal("its address for messages contains a user name or a password");
  }
  // guard: sse-origin
  if (address.origin !== new URL(url).origin) {
    const where = quoted(address.origin, 200);
    throw refusal(`it wants messages sent to ${where}, which is not its own origin`);
  }
  return address;
}

/** Returns the id of a request; undefined for another message. */
function requestIdOf({ id, method }: JsonObject): number | undefined {
  return typeof id === "number" && method !== undefined ? id : undefined;
}
