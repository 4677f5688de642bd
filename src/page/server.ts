/**
 * The HTTP server of the page, for a browser on this machine: the checks of senders, the sign-in, the
 * files, and the events.
 *
 * @module
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import { type JsonObject, objectOf, textOf } from "../core/json.ts";
import { listen, type Listener, refusedSender } from "../io/listener.ts";
import { callAfter, type Clock } from "../io/waiting.ts";
import type { PageEvent } from "../control/api.ts";
import { readBody } from "../transport/http/body.ts";
import { PAGE_ASSETS } from "./assets.ts";
import { failureOf, PageFailure } from "./failure.ts";
import type { PageEventListener } from "./page_data.ts";
import { type Session, SignIns } from "./sign_in.ts";

/** Answers the requests of a signed-in browser. */
export interface PageApi {
  /** Answers `GET /api/NAME`; undefined for an unknown name. */
  read(name: string, query: URLSearchParams): Promise<unknown> | undefined;
  /** Answers `POST /api/NAME`; undefined for an unknown name. */
  act(name: string, body: JsonObject, signal: AbortSignal): Promise<unknown> | undefined;
  /** Passes events to `listener` until the result is disposed. */
  follow(listener: PageEventListener): Promise<Disposable>;
  /** Records an event of the page itself. */
  record(event: string, about: JsonObject): void;
}

const HOST = "127.0.0.1";
/** How long the page runs without an open tab, in milliseconds. */
export const IDLE_MS = 30 * 60_000;
/** The time between two events that only show that the server is alive, in milliseconds. */
const HEARTBEAT_MS = 15_000;
/** The maximum size of a body, and of the data that waits for a browser that reads slowly, in bytes. */
const [BODY_MAX, UNREAD_MAX] = [4 << 20, 4 << 20];
/** The maximum number of connections, and of open tabs. */
const [CONNECTIONS_MAX, STREAMS_MAX] = [128, 64];
/** How long pending answers may take when the page ends, in milliseconds. */
const DRAIN_MS = 500;

const HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; " +
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; " +
    "frame-ancestors 'none'",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
};
/** Removes service workers and stored data of this origin, but no cookies: all ports share them. */
const CLEARED = '"cache", "storage"';
const NEW_LINK_HINT = "Run `pml page` again: it opens a new link";

/** The page's server. It ends some time after its last tab was closed. */
export class PageServer implements AsyncDisposable {
  /** Resolves when no tab was open for a long time. */
  readonly idle: Promise<void>;
  readonly #api: PageApi;
  readonly #signIns: SignIns;
  readonly #idleMs: number;
  readonly #idleEnd = Promise.withResolvers<void>();
  readonly #streams = new Set<EventStream>();
  readonly #unreadBodies = { bodies: 0, bytes: 0 };
  #listener: Listener | undefined;
  #timer: Disposable | undefined;
  #isOver = false;

  private constructor(api: PageApi, idleMs: number, clock: Clock) {
    this.#api = api;
    this.#idleMs = idleMs;
    this.#signIns = new SignIns(clock);
    this.idle = this.#idleEnd.promise;
  }

  /**
   * Listens on this machine; port 0 takes a free one. Without an open tab, the server ends after
   * `idleMs` milliseconds. Throws `USAGE` if the port is in use.
   */
  static async open(
    api: PageApi,
    port: number,
    { idleMs = IDLE_MS, clock = Date }: { readonly idleMs?: number; readonly clock?: Clock } = {},
  ): Promise<PageServer> {
    const server = new PageServer(api, idleMs, clock);
    server.#listener = await listen({
      host: HOST,
      port,
      what: "the page",
      connections: CONNECTIONS_MAX,
      answer: (request, response) => void server.#answer(request, response),
    });
    server.#restartIdleTimer();
    return server;
  }

  /** The origin, such as `http://127.0.0.1:41234`. */
  get origin(): string {
    return this.#listener?.origin ?? "";
  }

  /** The port. */
  get port(): number {
    return Number(new URL(this.origin).port);
  }

  /** Returns a new link. A browser can open it once, within a minute. */
  link(): string {
    this.#restartIdleTimer();
    return `${this.origin}/#${this.#signIns.link()}`;
  }

  /** Ends all sessions, and stops listening. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#timer?.[Symbol.dispose]();
    this.#signIns.end();
    for (const stream of this.#streams) stream[Symbol.dispose]();
    await this.#listener?.drain(DRAIN_MS);
  }

  /** Restarts the time after which the server is idle. While a tab is open, the server is not idle. */
  #restartIdleTimer(): void {
    this.#timer?.[Symbol.dispose]();
    // A stream that ends with the server must not keep the process running.
    this.#timer = this.#isOver || this.#streams.size > 0
      ? undefined
      : callAfter(this.#idleMs, () => this.#idleEnd.resolve());
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    try {
      await this.#route(request, response);
    } catch (error) {
      const { status, body } = failureOf(error);
      if (response.headersSent) return void response.destroy();
      // The rest of a refused body is not read, so the connection cannot be used again.
      if (!request.complete) response.setHeader("connection", "close");
      sendJson(response, body, status);
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#refuseForeign(request);
    const { method = "" } = request;
    // The browser looks for a new version of a service worker that another program left at this port.
    // The page itself removes the worker: to clear the data of the site here could remove the token of
    // a page that is signed in.
    // guard: page-worker
    if (request.headers["service-worker"] !== undefined) {
      throw new PageFailure(403, "FORBIDDEN", { message: "The page has no service worker" });
    }
    const [path = "", query = ""] = (request.url ?? "").split(/\?(.*)/s);
    const asset = PAGE_ASSETS.get(path);
    if (asset !== undefined) {
      if (method !== "GET") throw wrongMethod("GET");
      response.setHeader("content-type", asset.type);
      return void response.end(asset.text);
    }
    const [, name] = /^\/api\/([a-z]+(?:[/-][a-z]+)*)$/.exec(path) ?? [];
    if (name === undefined) throw notFound();
    if (name === "sign-in") return await this.#signIn(request, response);
    if (name === "clear") {
      if (method !== "POST") throw wrongMethod("POST");
      response.setHeader("clear-site-data", CLEARED);
      return sendJson(response, "{}");
    }
    const session = this.#sessionOf(request);
    if (name === "events") return await this.#follow(request, { response, session });
    await this.#call(request, { response, name, query: new URLSearchParams(query), session });
  }

  /** Refuses requests of other sites and programs. This check comes before all others. */
  #refuseForeign(request: IncomingMessage): void {
    const { headers } = request;
    const hosts = new Set([HOST, "localhost"].map((name) => `${name}:${this.port}`));
    const refuse = (message: string) => new PageFailure(403, "FORBIDDEN", { message });
    // guard: page-host
    if (refusedSender(request, { hosts }) !== undefined) {
      throw refuse("The request names another host or origin");
    }
    const { host = "", origin } = headers;
    // `refusedSender` also accepts other ports of this machine, such as that of a development server.
    // guard: page-origin
    if (origin !== undefined && origin !== `http://${host.toLowerCase()}`) {
      throw refuse("The request is from another origin");
    }
    const site = headers["sec-fetch-site"];
    // The browser opens the page from a file (`cross-site`) or by a typed address (`none`).
    const isOpening = request.url === "/" && headers["sec-fetch-mode"] === "navigate" &&
      headers["sec-fetch-dest"] === "document";
    // guard: page-site
    if (site !== undefined && site !== "same-origin" && !isOpening) {
      throw refuse("The request is from another site");
    }
    // Tokens of `pml serve` belong to clients and identities, which have no access to the page.
    // guard: page-identity
    if (headers.authorization !== undefined) throw refuse("The page accepts no tokens of clients");
  }

  #sessionOf(request: IncomingMessage): Session {
    const token = request.headers["x-pml-page"];
    const session = typeof token === "string"
      ? this.#signIns.sessionOf(this.#cookiesOf(request), token)
      : undefined;
    // guard: page-session
    if (session === undefined) {
      const message = "You are not signed in, or the sign-in has ended";
      throw new PageFailure(401, "SIGN_IN_EXPIRED", { message, hint: NEW_LINK_HINT });
    }
    return session;
  }

  async #signIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { secret } = await this.#bodyOf(request);
    const result = this.#signIns.signIn(textOf(secret), this.#cookiesOf(request));
    if (result.kind === "used") {
      this.#api.record("page link used twice", {});
      const message = "This link was used before. The session that it opened has ended now, " +
        "because one of the two uses may not be yours";
      throw new PageFailure(401, "LINK_USED", { message, hint: NEW_LINK_HINT });
    }
    if (result.kind === "expired") {
      const message = "This link is not valid: a link works once, within one minute";
      throw new PageFailure(401, "LINK_EXPIRED", { message, hint: NEW_LINK_HINT });
    }
    this.#api.record("page opened", {});
    const { cookie, token } = result;
    const flags = "HttpOnly; SameSite=Strict; Path=/";
    response.setHeader("set-cookie", `${this.#cookie}=${cookie}; ${flags}`);
    this.#restartIdleTimer();
    sendJson(response, JSON.stringify({ token }));
  }

  async #follow(
    request: IncomingMessage,
    { response, session }: { readonly response: ServerResponse; readonly session: Session },
  ): Promise<void> {
    if (request.method !== "GET") throw wrongMethod("GET");
    if (this.#streams.size >= STREAMS_MAX) {
      throw new PageFailure(503, "OVERLOADED", { message: "Too many tabs are open" });
    }
    const stream = new EventStream(response, session);
    this.#streams.add(stream);
    this.#restartIdleTimer();
    response.once("close", () => {
      stream[Symbol.dispose]();
      this.#streams.delete(stream);
      this.#restartIdleTimer();
    });
    stream.endWith(await this.#api.follow((event) => stream.send(event)));
  }

  async #call(
    request: IncomingMessage,
    { response, name, query, session }: {
      readonly response: ServerResponse;
      readonly name: string;
      readonly query: URLSearchParams;
      readonly session: Session;
    },
  ): Promise<void> {
    const { method } = request;
    if (method !== "GET" && method !== "POST") throw wrongMethod("GET", "POST");
    if (this.#streams.size === 0) this.#restartIdleTimer();
    const closing = new AbortController();
    response.once("close", () => closing.abort());
    const signal = AbortSignal.any([closing.signal, session.ending]);
    const answer = method === "GET"
      ? this.#api.read(name, query)
      : this.#api.act(name, await this.#bodyOf(request), signal);
    if (answer === undefined) throw notFound();
    const value = await answer;
    // The link may have been used a second time in the meantime.
    // guard: page-ended
    if (session.ending.aborted) {
      const message = "The sign-in has ended";
      throw new PageFailure(401, "SIGN_IN_EXPIRED", { message, hint: NEW_LINK_HINT });
    }
    sendJson(response, JSON.stringify(value));
  }

  async #bodyOf(request: IncomingMessage): Promise<JsonObject> {
    if (request.method !== "POST") throw wrongMethod("POST");
    const limits = {
      inputBytes: BODY_MAX,
      connections: CONNECTIONS_MAX,
      incomplete: this.#unreadBodies,
    };
    const { json, refused } = await readBody(request, limits);
    if (refused === undefined) return objectOf(json);
    const [status, why] = refused;
    throw new PageFailure(status, "BAD_REQUEST", { message: `PML refused the request: ${why}` });
  }

  /** The name of the cookie. It contains the port, because browsers send cookies to every port. */
  get #cookie(): string {
    return `pml_page_${this.port}`;
  }

  #cookiesOf({ headers: { cookie = "" } }: IncomingMessage): readonly string[] {
    return cookie.split(";").map((one) => one.trim().split("="))
      .filter(([name]) => name === this.#cookie).map(([, value = ""]) => value);
  }
}

/** The events of one tab, as lines of JSON. */
class EventStream implements Disposable {
  readonly #response: ServerResponse;
  readonly #beat: ReturnType<typeof setInterval>;
  #subscription: Disposable | undefined;
  /** The state to send after the browser has read the earlier events. */
  #pendingState: PageEvent | undefined;
  #isOver = false;

  constructor(response: ServerResponse, { ending }: Session) {
    this.#response = response;
    response.setHeader("content-type", "application/x-ndjson");
    response.flushHeaders();
    response.on("drain", () => {
      const latestState = this.#pendingState;
      this.#pendingState = undefined;
      if (latestState !== undefined) this.send(latestState);
    });
    this.#beat = setInterval(() => this.send({ type: "beat", now: Date.now() }), HEARTBEAT_MS);
    // guard: page-stream-ends
    ending.addEventListener("abort", () => this[Symbol.dispose](), { once: true });
  }

  /** Sets the subscription that ends with the stream. */
  endWith(subscription: Disposable): void {
    this.#subscription = subscription;
    if (this.#isOver) subscription[Symbol.dispose]();
  }

  /** Sends an event. A browser that reads slowly receives only the latest state. */
  send(event: PageEvent): void {
    if (this.#isOver) return;
    // guard: page-unread
    if (this.#response.writableLength > UNREAD_MAX) {
      if (event.type === "state") this.#pendingState = event;
      return;
    }
    this.#response.write(`${JSON.stringify(event)}\n`);
  }

  /** Ends the stream. */
  [Symbol.dispose](): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#beat);
    this.#subscription?.[Symbol.dispose]();
    this.#response.end();
  }
}

function sendJson(response: ServerResponse, body: string, status = 200): void {
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.end(body);
}

function notFound(): PageFailure {
  return new PageFailure(404, "NOT_FOUND", { message: "There is nothing at this address" });
}

function wrongMethod(...allowed: readonly string[]): PageFailure {
  const message = `This address needs the method ${allowed.join(" or ")}`;
  return new PageFailure(405, "BAD_REQUEST", { message });
}
