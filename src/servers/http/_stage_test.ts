/**
 * A stage for tests of HTTP servers: the servers of a PML in this process, and a server on
 * 127.0.0.1 that the test scripts.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listenAgain } from "../../../tests/kit/free_port.ts";
import { checkedCall } from "../_server_double_test.ts";
import { type Call, NO_CLIENT, type ToolResult } from "../../protocol/call.ts";
import { Cancellation } from "../../core/cancellation.ts";
import { PmlError } from "../../core/errors.ts";
import { type JsonObject, objectOf } from "../../core/json.ts";
import type { ListName } from "../../protocol/lists.ts";
import { toolId } from "../../core/tool_id.ts";
import { NO_CLIENTS, upstreamsHost } from "../client/_upstreams_host_test.ts";
import type { UpstreamClients } from "../client/upstream_clients.ts";
import { Upstreams } from "../client/upstreams.ts";
import type { UpstreamServer } from "../client/wire.ts";
import { GuardedFetch } from "../../transport/http/client/guarded_fetch.ts";
import { HttpServers } from "./http_servers.ts";
import type { HttpServersHost, HttpValues } from "./http_options.ts";

/** The options of the stage. */
export interface StageOptions extends Partial<Pick<HttpServersHost, "authorization">> {
  readonly server?: Partial<HttpValues>;
  readonly limits?: { readonly startMs?: number; readonly lineBytes?: number };
  readonly able?: JsonObject;
}

/** The servers of a PML. One of them is at a URL. */
export class Stage implements AsyncDisposable {
  /** The events that came without a request. */
  readonly told: string[] = [];
  readonly upstreams: Upstreams;
  readonly #way: UpstreamServer;
  readonly #network = new GuardedFetch();
  readonly #home: string;

  private constructor(url: string, { home, ...options }: StageOptions & { readonly home: string }) {
    this.#home = home;
    const limits = {
      startMs: 5_000,
      lineBytes: 65_000_000,
      resultBytes: 33_554_432,
      catalogTools: 1_000,
      ...options.limits,
    };
    const idle = { idleMs: 60_000, idleChildren: 8 };
    const { authorization = () => Promise.resolve(undefined) } = options;
    const { fetch } = this.#network;
    const http = new HttpServers({ fetch, limits, home, authorization });
    const server: HttpValues = {
      name: "far",
      url,
      headers: {},
      written: {},
      named: new Set([new URL(url).host]),
      tools: undefined,
      definition: url,
      ...options.server,
    };
    this.#way = http.of(server);
    const clients: UpstreamClients = {
      ...NO_CLIENTS,
      capabilities: () => options.able ?? {},
      onListChanged: (_, list) => void this.told.push(`changed ${list}`),
      onResourceUpdated: (_, uri) => void this.told.push(`updated ${uri}`),
      onLog: ({ level }) => void this.told.push(`logged ${level}`),
      onElicitationComplete: ({ elicitationId }) =>
        void this.told.push(`elicited ${elicitationId}`),
    };
    const host = upstreamsHost(home, {
      clients,
      limits: { ...limits, ...idle },
      upstreamOf: () => this.#way,
      roots: () => Promise.resolve([{ uri: "file:///work", name: "workspace" }]),
      logServer: (_, level, text) => void this.told.push(`${level} ${text}`),
    });
    this.upstreams = new Upstreams(host);
  }

  /** Opens nothing yet. */
  static async at(url: string, options: StageOptions = {}): Promise<Stage> {
    return new Stage(url, { ...options, home: await mkdtemp(join(tmpdir(), "pml-http-")) });
  }

  /** Calls a tool of the server, or sends it another request. */
  async call(tool: string, args: JsonObject = {}, more: Partial<Call> = {}): Promise<ToolResult> {
    const call = checkedCall({
      id: toolId("far", tool),
      arguments: args,
      via: "call",
      actor: "local",
      cancellation: new Cancellation(),
      client: NO_CLIENT,
      callId: "c1",
      ...more,
    });
    const outcome = await this.upstreams.call(this.#way, call, false);
    if (outcome.kind === "ask") throw new TypeError("it is no question");
    return outcome.result;
  }

  /** Returns a list of the server. */
  async list(name: ListName): Promise<readonly JsonObject[]> {
    return await this.upstreams.listOf(this.#way, name) as readonly JsonObject[];
  }

  /** Closes the connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.upstreams[Symbol.asyncDispose]();
    this.#network[Symbol.dispose]();
    await rm(this.#home, { recursive: true });
  }
}

/** A request that a scripted server received. */
export interface Came {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  /** The message in it. */
  readonly message: JsonObject;
  /** The text of the message. */
  readonly text: string;
  /** Aborts when the sender has disconnected. */
  readonly signal: AbortSignal;
}

/** Returns the answer of a scripted server; undefined for the normal answer. */
export type Script = (came: Came) => Response | undefined | Promise<Response | undefined>;

/** A server of the newest or an older revision with scripted answers. */
export class Scripted implements AsyncDisposable {
  /** The requests, in order. */
  readonly came: Came[] = [];
  /** The tools that it lists. */
  tools: readonly JsonObject[] = [{ name: "t", inputSchema: { type: "object" } }];
  readonly #script: Script;
  readonly #isOlder: boolean;
  readonly #gone = new AbortController();
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  /** Listens on 127.0.0.1, at a free port unless one is given. */
  constructor(script: Script = () => undefined, { isOlder = false, port = 0 } = {}) {
    this.#script = script;
    this.#isOlder = isOlder;
    const { signal } = this.#gone;
    const options = { hostname: "127.0.0.1", port, onListen: () => {}, signal };
    this.#server = listenAgain(() => Deno.serve(options, (request) => this.#answer(request)));
  }

  /** The port that it listens on. */
  get port(): number {
    return this.#server.addr.port;
  }

  /** Its address. */
  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp?key=of-the-url`;
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
    const { method, url, headers, signal } = request;
    const { pathname: path } = new URL(url);
    const message = objectOf(text === "" ? {} : JSON.parse(text));
    const came: Came = { method, path, headers, message, text, signal };
    this.came.push(came);
    return await this.#script(came) ?? this.#usual(came);
  }

  #usual({ method, message: { id, method: asked } }: Came): Response {
    if (method !== "POST") return new Response(null, { status: 405 });
    if (id === undefined) return new Response(null, { status: 202 });
    switch (asked) {
      case "server/discover":
        if (this.#isOlder) break;
        return answer(id, { supportedVersions: ["2026-07-28"], capabilities: { tools: {} } });
      case "initialize": {
        if (!this.#isOlder) break;
        const result = { protocolVersion: "2025-06-18", capabilities: { tools: {} } };
        return answer(id, result, { "mcp-session-id": "s1" });
      }
      case "tools/list":
        return answer(id, { tools: this.tools });
      case "tools/call":
        return answer(id, { content: [{ type: "text", text: "done" }] });
      case "ping":
        return answer(id, {});
    }
    const error = { code: -32601, message: "Method not found" };
    return Response.json({ jsonrpc: "2.0", id, error }, { status: 404 });
  }
}

/** Returns an answer as JSON. */
export function answer(
  id: JsonObject[string] | undefined,
  result: unknown,
  headers: Record<string, string> = {},
): Response {
  return Response.json({ jsonrpc: "2.0", id, result }, { headers });
}

/** Returns an answer as a stream: the given events, and its end unless it stays open. */
export function stream(
  texts: readonly string[],
  { stays = false }: { readonly stays?: boolean } = {},
): Response {
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      for (const text of texts) controller.enqueue(new TextEncoder().encode(text));
      if (!stays) controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** Returns one event with a message. */
export function event(message: object, lines = ""): string {
  return `${lines}data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`;
}

/** Returns the error of a call that fails. */
export async function failed(call: Promise<unknown>): Promise<PmlError> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof PmlError, String(error));
    return error;
  }
  return assert.fail("it did not fail");
}
