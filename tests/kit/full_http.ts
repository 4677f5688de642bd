/**
 * The server with all features, over Streamable HTTP on loopback, in either revision.
 *
 * @module
 */

import {
  createMcpHandler,
  type McpHttpHandler,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { fullServer } from "./full_server.ts";

/** A request to the server. */
export interface ReceivedRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Answers a request instead of the server; undefined lets it pass. */
export type HttpGuard = (request: Request) => Promise<Response | undefined>;

/** The server, and its records. */
export class FullHttp implements AsyncDisposable {
  /** Its actions, a line each. */
  readonly ledger: string[] = [];
  /** The requests, in order. */
  readonly asked: ReceivedRequest[] = [];
  readonly #sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #modern: McpHttpHandler | undefined;
  readonly #make: ReturnType<typeof fullServer>;
  readonly #guard: HttpGuard | undefined;

  /** Listens on a free port of 127.0.0.1, for one revision. */
  constructor(kind: "legacy" | "modern", { guard }: { readonly guard?: HttpGuard } = {}) {
    this.#guard = guard;
    const note = (line: string) => void this.ledger.push(line);
    const isModern = kind === "modern";
    const tell = {
      resourceUpdated: (uri: string) => this.#modern?.notify.resourceUpdated(uri),
      promptsChanged: () => this.#modern?.notify.promptsChanged(),
    };
    this.#make = fullServer({ isModern, note, ...(isModern && { tell }) });
    this.#modern = isModern ? createMcpHandler(this.#make, { legacy: "reject" }) : undefined;
    const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    this.#server = Deno.serve(options, (request) => this.serve(request));
  }

  /** Answers a request. */
  async serve(request: Request): Promise<Response> {
    this.asked.push({ method: request.method, headers: Object.fromEntries(request.headers) });
    const guarded = await this.#guard?.(request);
    return guarded ?? await (this.#modern?.fetch(request) ?? this.#older(request));
  }

  /** The address. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}/mcp`;
  }

  /** Drops all sessions, like a server that was restarted. */
  async forget(): Promise<void> {
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    for (const transport of sessions) await transport.close();
  }

  /** Stops listening, and closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.forget();
    await this.#modern?.close();
    await this.#server.shutdown();
  }

  async #older(request: Request): Promise<Response> {
    const known = request.headers.get("mcp-session-id");
    if (known !== null) {
      const transport = this.#sessions.get(known);
      if (transport !== undefined) return await transport.handleRequest(request);
      const error = { code: -32001, message: "Session not found" };
      return Response.json({ jsonrpc: "2.0", error, id: null }, { status: 404 });
    }
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void this.#sessions.set(id, transport),
      onsessionclosed: (id) => void this.#sessions.delete(id),
    });
    await this.#make().connect(transport);
    return await transport.handleRequest(request);
  }
}
