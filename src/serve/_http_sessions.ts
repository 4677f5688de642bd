/**
 * The sessions of clients of the older revisions. A session begins with `initialize`, and ends with
 * `DELETE`, or when nobody has used it for some time.
 *
 * @module
 */

import {
  isInitializeRequest,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
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
  /** How many requests, and streams, are open. */
  open: number;
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
  readonly #timer = setInterval(() => this.#endIdle(), CHECK_MS);
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
    const answer = session?.requests.answer(request, body);
    return session && answer && this.#during(session, answer);
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
    if (this.#all.size >= this.#options.most && !this.#endOldest()) {
      return rejection(503, { why: `${this.#options.most} sessions are in use` });
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
    const opened = Promise.withResolvers<Connection>();
    const server = await factory({ era: "legacy" }, (server) => {
      const connection = connect(server, false, server);
      opened.resolve(connection);
      return connection;
    });
    await server.connect(transport);
    const requests = new SessionRequests({
      ...{ transport, server, onError, texts: this.#texts },
      connection: await opened.promise,
    });
    const session: Session = { id, transport, sent, requests, open: 0, usedAt: performance.now() };
    this.#all.set(id, session);
    const response = await this.#through(session, request, body);
    if (!response.ok) await this.#end(session);
    return response;
  }

  async #through(session: Session, request: Request, body: unknown): Promise<Response> {
    const { transport } = session;
    return await this.#during(session, transport.handleRequest(request, { parsedBody: body }));
  }

  /** Counts a request as open until its answer was sent. */
  async #during<T extends Response | TextAnswer>(session: Session, answer: Promise<T>): Promise<T> {
    session.open++;
    const done = () => {
      session.open--;
      session.usedAt = performance.now();
    };
    try {
      const made = await answer;
      if (made instanceof TextAnswer) done();
      else followedBy(made, done);
      return made;
    } catch (error) {
      done();
      throw error;
    }
  }

  #endIdle(): void {
    const before = performance.now() - IDLE_MS;
    for (const session of this.#all.values()) {
      if (session.open === 0 && session.usedAt < before) void this.#end(session);
    }
  }

  #endOldest(): boolean {
    const [oldest] = [...this.#all.values()].filter(({ open }) => open === 0)
      .sort((one, other) => one.usedAt - other.usedAt);
    if (oldest !== undefined) void this.#end(oldest);
    return oldest !== undefined;
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
