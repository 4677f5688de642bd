/**
 * The sessions of clients of the older revisions. A session begins with `initialize`, and ends with
 * `DELETE`, or when nobody has used it for some time.
 *
 * @module
 */

import {
  isInitializeRequest,
  type Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { objectOf } from "../core/json.ts";
import type { Connection, Face } from "../gateway/connection.ts";
import type { Hello } from "../gateway/hello.ts";
import { followedBy, rejection, TextAnswer } from "./_http_answer.ts";
import type { PostRequest } from "./_http_direct.ts";
import { ResultTexts } from "./_result_texts.ts";
import { type SentBytes, SentEvents } from "./_sent_events.ts";
import { SessionRequests } from "./_session_requests.ts";

/** The options of `Sessions`. */
export interface SessionsOptions extends Face {
  readonly hello: (isModern: boolean) => Hello;
  /** The most sessions at once. The one that was unused for the longest time ends for a new one. */
  readonly most: number;
  /** How much that was sent is kept, in all sessions together. */
  readonly queuedBytes: number;
  readonly onError: (error: Error) => void;
  /** How the ids of sessions begin. */
  readonly prefix: string;
}

interface Session {
  readonly id: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly sent: SentEvents;
  readonly requests: SessionRequests;
  /** The ids of the requests that are open, as JSON, and other bodies and streams that are. */
  readonly open: Set<unknown>;
  usedAt: number;
}

const HEADER = "mcp-session-id";
/** How long a session lives without a request or a stream. */
const IDLE_MS = 30 * 60_000;
const CHECK_MS = 60_000;
/** How long a client waits before it asks for the rest of a stream that broke. */
const RETRY_MS = 1_000;

/** Keeps the sessions. */
export class Sessions implements AsyncDisposable {
  readonly #options: SessionsOptions;
  readonly #texts: ResultTexts;
  readonly #all = new Map<string, Session>();
  readonly #kept: SentBytes;
  readonly #timer = setInterval(() => {
    for (const one of this.#idle(performance.now() - IDLE_MS)) void this.#end(one);
  }, CHECK_MS);
  #isHushed = false;

  /** Keeps none yet. */
  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#texts = new ResultTexts(options.hello);
    this.#kept = { bytes: 0, most: options.queuedBytes };
    Deno.unrefTimer(this.#timer);
  }

  /** Answers a POST of a session that needs no SDK; undefined, with nothing done, for others. */
  direct(request: PostRequest, body: unknown): Promise<Response | TextAnswer> | undefined {
    const session = this.#all.get(`${request.headers[HEADER]}`);
    return session && this.#during(session, body, () => session.requests.answer(request, body));
  }

  /** Answers a request of an older revision. */
  async answer(request: Request, body: unknown): Promise<Response> {
    const id = request.headers.get(HEADER);
    if (id === null && isInitializeRequest(body)) return await this.#begin(request, body);
    if (id === null) return rejection(400, { why: "it has no Mcp-Session-Id" });
    const session = this.#all.get(id);
    // The client begins another session then.
    if (session === undefined) {
      return rejection(404, { why: "there is no such session", code: -32001 });
    }
    return await this.#through(session, request, body);
  }

  /** Ends the streams on which nothing is answered. */
  hush(): void {
    this.#isHushed = true;
    for (const { transport } of this.#all.values()) transport.closeStandaloneSSEStream();
  }

  /** Ends all sessions. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#all.values()].map((session) => this.#end(session)));
  }

  async #begin(request: Request, body: unknown): Promise<Response> {
    if (this.#isHushed) return rejection(503, { why: "PML is ending" });
    if (this.#all.size >= this.#options.most) {
      const [oldest] = this.#idle();
      if (!oldest) return rejection(503, { why: `${this.#options.most} sessions are in use` });
      void this.#end(oldest);
    }
    const id = `${this.#options.prefix}${crypto.randomUUID()}`;
    const sent = new SentEvents(this.#kept);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      eventStore: sent,
      retryInterval: RETRY_MS,
    });
    transport.onclose = () => this.#forget(session);
    transport.onerror = this.#options.onError;
    const { factory, connect, onError } = this.#options;
    let connection!: Connection; // the factory opens it
    const open = (server: Server) => connection = connect(server, false, server);
    const server = await factory({ era: "legacy" }, open);
    await server.connect(transport);
    const requests = new SessionRequests({
      ...{ transport, server, onError, connection, texts: this.#texts },
    });
    const session: Session = {
      ...{ id, transport, sent, requests, open: new Set() },
      usedAt: performance.now(),
    };
    this.#all.set(id, session);
    const response = await this.#through(session, request, body);
    if (!response.ok) await this.#end(session);
    return response;
  }

  async #through(session: Session, request: Request, body: unknown): Promise<Response> {
    const { transport } = session;
    const answer = () => transport.handleRequest(request, { parsedBody: body });
    return await this.#during(session, body, answer) as Response; // the SDK answers each
  }

  /** Counts a request as open until its answer was sent. No other may have its id meanwhile. */
  #during<T extends Response | TextAnswer>(
    session: Session,
    body: unknown,
    answer: () => Promise<T> | undefined,
  ): Promise<T | Response> | undefined {
    const { open } = session;
    const own = idsIn(body);
    // guard: http-ids
    if (new Set(own).size < own.length || own.some((one) => open.has(one))) {
      return Promise.resolve(rejection(400, { why: "its id is in use", code: -32600 }));
    }
    const coming = answer();
    if (coming === undefined) return undefined;
    own.forEach((one) => open.add(one));
    const done = () => {
      own.forEach((one) => open.delete(one));
      session.usedAt = performance.now();
    };
    coming.then((made) => made instanceof TextAnswer ? done() : followedBy(made, done), done);
    return coming;
  }

  /** Returns the sessions that nobody uses, the one that was used first before the others. */
  #idle(before = Infinity): readonly Session[] {
    return [...this.#all.values()].filter(({ open, usedAt }) => open.size === 0 && usedAt < before)
      .sort((one, other) => one.usedAt - other.usedAt);
  }

  async #end(session: Session): Promise<void> {
    this.#forget(session);
    await session.transport.close();
  }

  #forget({ id, sent, requests }: Session): void {
    this.#all.delete(id);
    requests[Symbol.dispose]();
    sent[Symbol.dispose]();
  }
}

/** Returns the ids of the requests in a body, as JSON, or something of its own. */
function idsIn(body: unknown): readonly unknown[] {
  const all = [body].flat().map(objectOf).filter((one) => "id" in one && "method" in one);
  return all.length === 0 ? [{}] : all.map(({ id }) => JSON.stringify(id));
}
