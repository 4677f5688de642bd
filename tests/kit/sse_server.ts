/**
 * Servers of HTTP+SSE, the transport of 2024-11-05, on loopback: one that a test scripts, and the
 * server with all features. Both are strict about the requests of a client.
 *
 * @module
 */

import type { Transport } from "@modelcontextprotocol/server";
import type { ReceivedRequest } from "./full_http.ts";
import { fullServer } from "./full_server.ts";

type Json = Record<string, unknown>;

/** A received request. */
export interface SseRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  /** The message in it. */
  readonly message: Json;
  /** The stream for its answer; undefined if the session does not exist. */
  readonly stream: SseStream | undefined;
  /** Aborts when the sender has disconnected. */
  readonly signal: AbortSignal;
}

/** Returns the response to an HTTP request; undefined for the usual one. */
export type SseScript = (came: SseRequest) => Response | undefined | Promise<Response | undefined>;

/** A stream to one client. */
export class SseStream {
  /** Whether it is over, because one side has disconnected. */
  isLeft = false;
  readonly body: ReadableStream<Uint8Array>;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  /** Opens the stream. */
  constructor(onLeft: () => void = () => {}) {
    this.body = new ReadableStream({
      start: (controller) => void (this.#controller = controller),
      cancel: () => {
        this.isLeft = true;
        onLeft();
      },
    });
  }

  /** The capacity of the queue: positive if the client reads. */
  get room(): number {
    return this.#controller?.desiredSize ?? 0;
  }

  /** Writes text unchanged. */
  write(text: string): void {
    if (!this.isLeft) this.#controller?.enqueue(new TextEncoder().encode(text));
  }

  /** Sends a message. */
  say(message: Json): void {
    this.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
  }

  /** Ends it as a server does, or breaks the connection. */
  end(error?: Error): void {
    this.isLeft = true;
    try {
      if (error === undefined) this.#controller?.close();
      else this.#controller?.error(error);
    } catch {
      // The client has disconnected first.
    }
  }
}

/** A server that a test scripts. */
export class SseServer implements AsyncDisposable {
  /** The requests, in order. */
  readonly came: SseRequest[] = [];
  /** The streams, in order; the session of each is its index. */
  readonly streams: SseStream[] = [];
  /** The beginning of each stream. */
  begins: (session: number) => string = (session) =>
    `event: endpoint\ndata: /messages?session=${session}\n\n`;
  /** The tools that it lists. */
  tools: readonly Json[] = [{ name: "t", inputSchema: { type: "object" } }];
  readonly #script: SseScript;
  readonly #gone = new AbortController();
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  /** Listens on a free port of 127.0.0.1 by default. */
  constructor(script: SseScript = () => undefined, { port = 0 } = {}) {
    this.#script = script;
    const { signal } = this.#gone;
    const onError = () => new Response(null, { status: 500 });
    const options = { hostname: "127.0.0.1", port, onListen: () => {}, onError, signal };
    this.#server = Deno.serve(options, (request) => this.#answer(request));
  }

  /** The address. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}/sse`;
  }

  /** The port. */
  get port(): number {
    return this.#server.addr.port;
  }

  /** The MCP methods that it received, or the HTTP method of a request without one. */
  get methods(): readonly string[] {
    return this.came.map(({ method, message }) => String(message.method ?? method));
  }

  /** Stops listening and closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#gone.abort();
    await this.#server.finished;
  }

  async #answer(request: Request): Promise<Response> {
    const text = await request.text();
    const { method, headers, signal } = request;
    const url = new URL(request.url);
    const stream = this.streams[Number(url.searchParams.get("session") ?? NaN)];
    const message = text === "" ? {} : JSON.parse(text);
    const came = { method, path: url.pathname + url.search, headers, message, stream, signal };
    this.came.push(came);
    const own = await this.#script(came);
    if (own !== undefined) return own;
    if (url.pathname === "/sse") return this.#open(came);
    return this.#take(came);
  }

  #open({ method, headers }: SseRequest): Response {
    if (method !== "GET") return new Response("Method Not Allowed", { status: 405 });
    if (headers.get("accept") !== "text/event-stream") return new Response(null, { status: 406 });
    return this.stream();
  }

  /** Opens a stream. */
  stream(): Response {
    const stream = new SseStream();
    stream.write(this.begins(this.streams.push(stream) - 1));
    return new Response(stream.body, { headers: { "content-type": "text/event-stream" } });
  }

  #take({ method, path, headers, message, stream }: SseRequest): Response {
    if (method !== "POST" || !path.startsWith("/messages")) {
      return new Response(null, { status: 404 });
    }
    if (stream === undefined || stream.isLeft) {
      return new Response("Could not find session", { status: 404 });
    }
    const isJson = headers.get("content-type") === "application/json";
    if (!isJson || message.jsonrpc !== "2.0") return new Response(null, { status: 400 });
    const result = this.#usual(message);
    if (result !== undefined) stream.say({ id: message.id, ...result });
    return new Response("Accepted", { status: 202 });
  }

  #usual({ id, method }: Json): Json | undefined {
    if (id === undefined || method === undefined) return undefined;
    const capabilities = { tools: {}, resources: { subscribe: true } };
    const serverInfo = { name: "sse", version: "1" };
    switch (method) {
      case "initialize":
        return { result: { protocolVersion: "2024-11-05", capabilities, serverInfo } };
      case "tools/list":
        return { result: { tools: this.tools } };
      case "tools/call":
        return { result: { content: [{ type: "text", text: "done" }] } };
      case "resources/list":
        return { result: { resources: [{ uri: "test://a", name: "a" }] } };
      case "ping":
      case "resources/subscribe":
      case "resources/unsubscribe":
        return { result: {} };
    }
    return { error: { code: -32601, message: "Method not found" } };
  }
}

/** The server with all features, over HTTP+SSE. */
export class FullSse implements AsyncDisposable {
  /** Its actions, a line each. */
  readonly ledger: string[] = [];
  readonly #server: SseServer;

  /** Listens on a free port of 127.0.0.1. */
  constructor() {
    const make = fullServer({ isModern: false, note: (line) => void this.ledger.push(line) });
    const takers = new Map<SseStream, (message: Json) => void>();
    this.#server = new SseServer(async ({ method, path, headers, message, stream }) => {
      if (method === "GET" && path === "/sse") {
        const opened = this.#server.stream();
        const own = this.#server.streams.at(-1);
        if (own === undefined) return undefined;
        const transport: Transport = {
          start: () => Promise.resolve(),
          send: (said) => Promise.resolve(own.say(said as unknown as Json)),
          close: () => Promise.resolve(own.end()),
        };
        await make().connect(transport);
        takers.set(own, (said) => transport.onmessage?.(said as never));
        return opened;
      }
      const take = stream?.isLeft === false ? takers.get(stream) : undefined;
      // The usual response is that of a server that refuses.
      if (take === undefined || headers.get("content-type") !== "application/json") {
        return new Response("Session not found", { status: 404 });
      }
      take(message);
      return new Response("Accepted", { status: 202 });
    });
  }

  /** The address. */
  get url(): string {
    return this.#server.url;
  }

  /** The received requests. */
  get asked(): readonly ReceivedRequest[] {
    return this.#server.came.map(({ method, headers }) => ({
      method,
      headers: Object.fromEntries(headers),
    }));
  }

  /** Ends all streams and sessions. */
  forget(): Promise<void> {
    for (const stream of this.#server.streams) stream.end();
    return Promise.resolve();
  }

  /** Stops listening. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}
