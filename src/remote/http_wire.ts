/**
 * Streamable HTTP as the wire of an MCP server: each request goes on a way of its own, and what the
 * server says of itself comes on one more.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import type { Fetch } from "../core/fetch.ts";
import { isObject, type JsonObject, objectOf, quoted } from "../core/json.ts";
import { excessOf, parsedJson } from "../core/json_bounds.ts";
import type { Room } from "../io/backlog.ts";
import { after, pause, soon } from "../io/waiting.ts";
import { endsOf } from "../io/lines.ts";
import { SessionLost, type Wire, type WireEnds } from "../mcp_client/wire.ts";
import {
  type BodyLimits,
  eachEvent,
  ERROR_BYTES,
  EVENTS_TYPE,
  leave,
  readBytes,
  readStart,
  type StreamEvent,
  TooLong,
  typeOf,
} from "./_event_stream.ts";
import { headerError, type Named, ownError, statusError, unusable } from "./_http_errors.ts";
import { requestHeaders } from "./_request_headers.ts";

/** What a server is reached with; values are filled in. */
export interface HttpWireOptions extends Named {
  readonly headers: Readonly<Record<string, string>>;
  /** What goes with a call of a tool and with nothing else. */
  readonly keyHeaders?: Readonly<Record<string, string>> | undefined;
  /** The hosts that the person named. */
  readonly named: ReadonlySet<string>;
  readonly fetch: Fetch;
  readonly limits: BodyLimits;
  readonly room: Room | undefined;
  /** Whether the server took the handshake of the older revisions before. */
  readonly isOlder: boolean;
  /** Told that it does. */
  readonly onOlder: () => void;
}

/** A request under way. */
interface Asking {
  readonly id: string;
  readonly message: JsonObject;
  readonly abort: AbortController;
  isAnswered: boolean;
  /** The last place in its stream that the server named. */
  last: string | undefined;
  retry: number | undefined;
}

const JSON_TYPE = "application/json";
/** What can stand in a header, as `fetch` sees it. */
const SENDABLE = /^[\t\x20-\x7e\x80-\xff]*$/;
const HEADER_MAX = 16_384;
const SESSION_ID = /^[\x21-\x7e]{1,1000}$/;
/** How long what only tells something may take. */
const TELL_MS = 30_000;
/** How long a stream may stay open after its answer has come. */
const REST_MS = 1_000;
const RETRY_MS = 1_000;
/** A server that wants it sooner or later has to take this. */
const [RETRY_MIN_MS, RETRY_MAX_MS] = [50, 30_000];
/** How often a stream that broke is asked for the rest of it. */
const RESUMES = 5;
const END_MS = 500;

/** A server behind a URL. */
export class HttpWire implements Wire {
  readonly newestFirst: boolean;
  readonly #options: HttpWireOptions;
  readonly #ends: WireEnds;
  /** What is under way: requests by their ids, and the rest. */
  readonly #open = new Map<string | symbol, AbortController>();
  /** Over when the server knows that the handshake is. */
  #ready: Promise<unknown> = Promise.resolve();
  #session: string | undefined;
  #version: string | undefined;
  #hears = false;
  #isClosed = false;

  /** Sends nothing yet; throws where a header cannot be sent. */
  constructor(options: HttpWireOptions, ends: WireEnds) {
    const { headers, keyHeaders, isOlder } = options;
    for (const [header, value] of Object.entries({ ...headers, ...keyHeaders })) {
      if (!SENDABLE.test(value) || value.length > HEADER_MAX) throw headerError(options, header);
    }
    this.#options = options;
    this.#ends = ends;
    this.newestFirst = !isOlder;
  }

  /** Whether a stream is open on which the server tells of itself. */
  get tells(): boolean {
    return this.#hears;
  }

  /** Sends a message of JSON-RPC. */
  send(message: JsonObject): void {
    if (this.#isClosed) return;
    const { id, method } = message;
    if (typeof id === "string" && method !== undefined) {
      void this.#ask({
        id,
        message,
        abort: this.#opened(id),
        isAnswered: false,
        last: undefined,
        retry: undefined,
      });
      return;
    }
    const told = this.#tell(message);
    if (method !== "notifications/initialized") return;
    // A request that overtook it would be refused.
    this.#ready = told;
    told.then(() => this.#hear());
  }

  /** Takes back a request: the newest revision is told by the end of its stream. */
  cancel(id: string): void {
    this.#open.get(id)?.abort();
    if (this.#version === undefined) return;
    this.send({ method: "notifications/cancelled", params: { requestId: id } });
  }

  /** Makes the error for what is not answered any more. */
  down(why: string, mayHaveRun: boolean): PmlError {
    return new PmlError("UPSTREAM_DOWN", `Cannot reach ${quoted(this.#options.name)}: ${why}`, {
      hint: mayHaveRun
        ? "It may have been done; look before you do it again"
        : "Nothing was sent; try again",
      detail: { may_have_run: mayHaveRun },
    });
  }

  /** Looks whether the address is that of the older transport. */
  async explain(signal: AbortSignal): Promise<PmlError | undefined> {
    const { olderTransport } = await import("./_older_transport.ts");
    const get = (signal: AbortSignal) => this.#fetch("GET", { signal });
    return await olderTransport(this.#options.name, { get, signal });
  }

  /** Leaves all that is under way. */
  kill(): void {
    this.#isClosed = true;
    for (const abort of this.#open.values()) abort.abort();
  }

  /** Leaves all that is under way, and ends the session. */
  async close(): Promise<void> {
    this.kill();
    if (this.#session === undefined) return;
    const abort = new AbortController();
    const ended = this.#fetch("DELETE", { signal: abort.signal }).then(leave);
    await soon(ended, END_MS);
    abort.abort();
  }

  #opened(key: string | symbol): AbortController {
    const abort = new AbortController();
    this.#open.set(key, abort);
    return abort;
  }

  async #ask(asking: Asking): Promise<void> {
    const { id, message, abort: { signal } } = asking;
    try {
      await this.#ready;
      signal.throwIfAborted();
      const response = await this.#fetch("POST", { message, signal });
      await this.#answered(response, asking);
    } catch (error) {
      if (!signal.aborted && !asking.isAnswered) {
        const { failure, isOver } = this.#failure(error);
        this.#ends.failed(id, failure, { isOver });
      }
    } finally {
      this.#open.delete(id);
    }
  }

  async #answered(response: Response, asking: Asking): Promise<void> {
    if (!response.ok) return await this.#refused(response, asking);
    const isGreeting = asking.message.method === "initialize";
    const session = response.headers.get("mcp-session-id") ?? "";
    if (isGreeting && SESSION_ID.test(session)) this.#session = session;
    switch (typeOf(response)) {
      case JSON_TYPE: {
        const said = this.#parsed(await readBytes(response.body, this.#options));
        for (const one of Array.isArray(said) ? said : [said]) this.#received(one, asking);
        break;
      }
      case EVENTS_TYPE:
        await this.#follow(response, asking);
        break;
      default:
        await leave(response);
        throw unusable(this.#options, "its answer is neither JSON nor a stream of events");
    }
    if (!asking.isAnswered) throw unusable(this.#options, "what it answered is no answer");
  }

  /** Takes an error of JSON-RPC where the answer is one; another is told by its status. */
  async #refused(response: Response, asking: Asking): Promise<void> {
    const { status } = response;
    if (status === 404 && this.#session !== undefined) {
      await leave(response);
      throw new SessionLost(this.#options.name);
    }
    const isJson = typeOf(response) === JSON_TYPE;
    const text = await readStart(response.body, ERROR_BYTES);
    const { error } = objectOf(isJson ? parsedJson(new TextEncoder().encode(text)) : undefined);
    if (isObject(error) && status >= 400 && ![401, 403, 429].includes(status)) {
      // One that could not read the request does not know its id.
      return this.#received({ id: asking.id, error }, asking);
    }
    const location = response.headers.get("location");
    throw statusError(this.#options, { status, text, location });
  }

  async #follow(response: Response, asking: Asking): Promise<void> {
    let stream: Response | undefined = response;
    for (let tries = 0; !asking.isAnswered;) {
      const before = asking.last;
      const broke = stream && await this.#events(stream, asking).then(() => undefined, asIs);
      if (asking.isAnswered) return;
      if (broke instanceof TooLong || asking.abort.signal.aborted) throw broke;
      // Only the older revisions keep what was not heard, and only where they said so.
      tries = asking.last === before ? tries + 1 : 1;
      if (this.#version === undefined || asking.last === undefined || tries > RESUMES) {
        throw this.down("it ended the stream before it answered", true);
      }
      stream = await this.#resumed(asking);
    }
  }

  async #events(stream: Response, asking: Asking): Promise<void> {
    let rest: ReturnType<typeof setTimeout> | undefined;
    try {
      await this.#eachEvent(stream, ({ data, id, retry }) => {
        asking.last = id ?? asking.last;
        asking.retry = retry ?? asking.retry;
        if (data.length > 0) this.#received(this.#parsed(data), asking);
        // One that ends by itself leaves its connection to the next request.
        if (asking.isAnswered) rest ??= setTimeout(() => asking.abort.abort(), REST_MS);
      });
    } finally {
      clearTimeout(rest);
    }
  }

  async #resumed({ last, retry, abort: { signal } }: Asking): Promise<Response | undefined> {
    await pause(waitOf(retry), signal);
    try {
      const stream = await this.#fetch("GET", { signal, last });
      if (stream.ok && typeOf(stream) === EVENTS_TYPE) return stream;
      await leave(stream);
    } catch {
      // It is tried again, a few times.
    }
    return undefined;
  }

  #received(message: unknown, asking: Asking): void {
    const { id, message: { method } } = asking;
    if (isObject(message) && message.id === id && message.method === undefined) {
      asking.isAnswered = true;
      if (method === "initialize" && message.error === undefined) this.#greeted(message.result);
    }
    this.#ends.received(message, id);
  }

  #greeted(result: unknown): void {
    const { protocolVersion } = objectOf(result);
    const isOne = typeof protocolVersion === "string" && SESSION_ID.test(protocolVersion);
    this.#version = isOne ? protocolVersion : "2025-03-26";
    this.#options.onOlder();
  }

  /** Sends what is not answered. */
  async #tell(message: JsonObject): Promise<void> {
    const key = Symbol();
    const abort = this.#opened(key);
    using _ = after(TELL_MS, () => abort.abort());
    try {
      await leave(await this.#fetch("POST", { message, signal: abort.signal }));
    } catch {
      // What goes with a request is told by that: this only adds to it.
    } finally {
      this.#open.delete(key);
    }
  }

  /** Hears what a server of the older revisions says of itself, if it has a stream for that. */
  async #hear(): Promise<void> {
    const { signal } = this.#opened("");
    let last: string | undefined;
    let wait = RETRY_MS;
    let isAgain = false;
    for (; !this.#isClosed; await pause(wait, signal)) {
      try {
        const stream = await this.#fetch("GET", { signal, last });
        this.#hears = stream.ok && typeOf(stream) === EVENTS_TYPE;
        if (!this.#hears) return await leave(stream);
        // What it told in between it does not tell again.
        if (isAgain && last === undefined) this.#ends.missed();
        isAgain = true;
        await this.#eachEvent(stream, ({ data, id, retry }) => {
          last = id ?? last;
          wait = waitOf(retry);
          if (data.length > 0) this.#told(data);
        });
      } catch (error) {
        if (error instanceof TooLong) return this.#ends.broken(error.message);
        wait = Math.min(wait * 2, RETRY_MAX_MS);
      }
      this.#hears = false;
    }
  }

  async #eachEvent(stream: Response, take: (event: StreamEvent) => void): Promise<void> {
    if (stream.body !== null) await eachEvent(stream.body, { ...this.#options, take });
  }

  #fetch(
    method: string,
    { message, last, signal }: {
      readonly message?: JsonObject;
      readonly last?: string | undefined;
      readonly signal: AbortSignal;
    },
  ): Promise<Response> {
    const { url, fetch, headers, keyHeaders, named } = this.#options;
    const own = {
      ...lowered(headers),
      ...(message?.method === "tools/call" && lowered(keyHeaders ?? {})),
      "accept": method === "GET" ? EVENTS_TYPE : `${JSON_TYPE}, ${EVENTS_TYPE}`,
      ...(this.#session !== undefined && { "mcp-session-id": this.#session }),
      ...(this.#version !== undefined && { "mcp-protocol-version": this.#version }),
      ...(last !== undefined && { "last-event-id": last }),
    };
    if (message === undefined) return fetch(url, { method, headers: own, signal, named });
    const about = requestHeaders(message, (name) => this.#ends.tool(name));
    return fetch(url, {
      method,
      headers: { ...own, ...about, "content-type": JSON_TYPE },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
      signal,
      named,
    });
  }

  #failure(error: unknown): { readonly failure: PmlError; readonly isOver: boolean } {
    const failure = error instanceof TooLong || error instanceof PmlError
      ? ownError(this.#options, error)
      : this.down("the connection broke", true);
    const { code, detail } = failure;
    // One that could not be reached, or forgot us, is greeted anew.
    return { failure, isOver: code === "UPSTREAM_DOWN" && detail?.may_have_run === false };
  }

  /** Parses what came for one request; throws where it is more than it may be. */
  #parsed(bytes: Uint8Array): unknown {
    const why = excessOf(bytes);
    if (why === undefined) return parsedJson(bytes);
    throw new TooLong(why, "result");
  }

  /** Takes what a server says of itself. */
  #told(data: Uint8Array): void {
    const why = excessOf(data);
    if (why === undefined) this.#ends.received(parsedJson(data));
    else this.#ends.excess(endsOf(data), { why });
  }
}

function lowered(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

function waitOf(retry = RETRY_MS): number {
  return Math.min(Math.max(retry, RETRY_MIN_MS), RETRY_MAX_MS);
}

function asIs(error: unknown): unknown {
  return error;
}
