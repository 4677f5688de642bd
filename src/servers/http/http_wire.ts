/**
 * Streamable HTTP as the wire of an MCP server: each request goes on a way of its own, and what the
 * server says of itself comes on one more.
 *
 * @module
 */

import type { PmlError } from "../../core/errors.ts";
import type { JsonObject } from "../../core/json.ts";
import { after, pause, soon } from "../../io/waiting.ts";
import { endsOf } from "../../io/lines.ts";
import { SessionLost, type Wire, type WireEnds } from "../client/wire.ts";
import { readText } from "../../protocol/message.ts";
import type { RequestId } from "../../protocol/rpc_peer.ts";
import {
  eachEvent,
  EVENTS_TYPE,
  leave,
  RETRY_MAX_MS,
  TooLong,
  typeOf,
  waitOf,
} from "../../io/event_stream.ts";
import { unreached } from "./_http_errors.ts";
import { HttpRequest, type HttpWay, REST_MS } from "./_http_request.ts";
import { HttpSession, placeAfter } from "./_http_session.ts";
import type { AddressState, HttpWireOptions } from "./http_options.ts";

/** How long what only tells something may take. */
export const TELL_MS = 30_000;
const END_MS = 500;

/** A server behind a URL. */
export class HttpWire implements Wire {
  readonly revisions: AddressState;
  readonly #way: HttpWay;
  /** What is under way: requests by their ids, and the rest. */
  readonly #open = new Map<RequestId | symbol, AbortController>();
  /** Over when the server knows that the handshake is. */
  #ready: Promise<unknown> = Promise.resolve();
  #hears = false;
  #isClosed = false;

  /** Sends nothing yet; throws where a header cannot be sent. */
  constructor(options: HttpWireOptions, ends: WireEnds) {
    this.#way = { options, ends, session: new HttpSession(options, (name) => ends.tool(name)) };
    this.revisions = options.transport;
  }

  /** Whether a stream is open on which the server tells of itself. */
  get tells(): boolean {
    return this.#hears;
  }

  /** Sends a message of JSON-RPC. */
  send(message: JsonObject): void {
    if (this.#isClosed) return;
    const { id, method } = message;
    if (typeof id === "number" && method !== undefined) {
      const request = new HttpRequest(id, message, this.#way);
      this.#open.set(id, request.abort);
      void request.run(this.#ready).finally(() => this.#open.delete(id));
      return;
    }
    const told = this.#tell(message);
    if (method !== "notifications/initialized") return;
    // A request that overtook it would be refused.
    this.#ready = told;
    told.then(() => this.#hear());
  }

  /** Takes back a request: the newest revision is told by the end of its stream. */
  cancel(id: RequestId): void {
    this.#open.get(id)?.abort();
    if (this.#way.session.version === undefined) return;
    this.send({ method: "notifications/cancelled", params: { requestId: id } });
  }

  /** Makes the error for what is not answered any more. */
  down(why: string, mayHaveRun: boolean): PmlError {
    return unreached(this.#way.options, why, { mayHaveRun });
  }

  /** Whether the server gave an id for the session. */
  get hasSession(): boolean {
    return this.#way.session.isKept;
  }

  /** Has the older transport tried, if the address may be one of it. */
  explain(error: PmlError): PmlError {
    return this.#way.options.transport.other(error);
  }

  /** Leaves all that is under way. */
  kill(): void {
    this.#isClosed = true;
    for (const abort of this.#open.values()) abort.abort();
  }

  /** Leaves all that is under way, and ends the session. */
  async close(): Promise<void> {
    this.kill();
    const { session } = this.#way;
    if (session.id === undefined) return;
    const abort = new AbortController();
    const ended = session.fetch("DELETE", { signal: abort.signal }).then(leave);
    await soon(ended, END_MS);
    abort.abort();
  }

  #opened(key: symbol): AbortController {
    const abort = new AbortController();
    this.#open.set(key, abort);
    return abort;
  }

  /** Sends what is not answered. */
  async #tell(message: JsonObject): Promise<void> {
    const key = Symbol();
    const abort = this.#opened(key);
    using _ = after(TELL_MS, () => abort.abort());
    try {
      const answer = await this.#way.session.fetch("POST", { message, signal: abort.signal });
      using _rest = after(REST_MS, () => abort.abort());
      await leave(answer);
    } catch {
      // What goes with a request is told by that: this only adds to it.
    } finally {
      this.#open.delete(key);
    }
  }

  /** Hears what a server of the older revisions says of itself, if it has a stream for that. */
  async #hear(): Promise<void> {
    const { session, ends } = this.#way;
    const { signal } = this.#opened(Symbol());
    const heard: Heard = { last: undefined, wait: waitOf(), isAgain: false };
    for (; !this.#isClosed; await pause(heard.wait, signal)) {
      try {
        const stream = await session.fetch("GET", { signal, last: heard.last });
        this.#hears = stream.ok && typeOf(stream) === EVENTS_TYPE;
        if (this.#hears) {
          await this.#take(stream, heard).finally(() => this.#interrupted());
        } else if (await this.#refused(stream, heard)) return;
      } catch (error) {
        if (error instanceof TooLong) return ends.broken(error.message);
        heard.wait = Math.min(heard.wait * 2, RETRY_MAX_MS);
      }
      this.#hears = false;
    }
  }

  /** Reports that a stream of notifications ended: the server may be another program now. */
  #interrupted(): void {
    const { options, ends } = this.#way;
    if (!this.#isClosed) {
      ends.failed(undefined, unreached(options, "its stream ended"), { isOver: false });
    }
  }

  async #take({ body }: Response, heard: Heard): Promise<void> {
    const { options, ends } = this.#way;
    // What it told in between it does not tell again.
    if (heard.isAgain && heard.last === undefined) ends.missed();
    heard.isAgain = true;
    await eachEvent(body, {
      ...options,
      take: (event) => {
        heard.last = placeAfter(event, heard.last);
        heard.wait = waitOf(event.retry);
        handOver(event.data, this.#way);
      },
    });
  }

  /** Takes a refusal of the stream. Returns whether it is not asked for again. */
  async #refused(stream: Response, heard: Heard): Promise<boolean> {
    const { options, session, ends } = this.#way;
    const { status } = stream;
    await leave(stream);
    if (status === 404 && session.isKept) {
      ends.missed();
      ends.failed(undefined, new SessionLost(options.name), { isOver: true });
      return true;
    }
    heard.wait = Math.min(heard.wait * 2, RETRY_MAX_MS);
    if (status >= 500) return !heard.isAgain;
    // It may not know the place any more.
    const isOver = heard.last === undefined;
    heard.last = undefined;
    return isOver;
  }
}

/** How far a stream was heard. */
interface Heard {
  last: string | undefined;
  wait: number;
  isAgain: boolean;
}

/** Hands over a message that belongs to no HTTP request, or tells that it is over the limits. */
export function handOver(
  data: Uint8Array,
  { ends, options: { limits: { resultBytes: max } } }: Pick<HttpWay, "ends" | "options">,
): void {
  const { length: size } = data;
  if (size === 0) return;
  const read = size > max
    ? { kind: "excess" as const, why: `it has more than ${max} bytes` }
    : readText(data, "server");
  if (read.kind === "excess") ends.excess(endsOf(data), { why: read.why });
  else ends.received(read.value);
}
