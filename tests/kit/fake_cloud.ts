/**
 * A cloud on loopback: the hub at `/mcp` and proxied servers at any other path, which use the
 * newest revision of MCP, keep their requests, and fail as the test configures.
 *
 * @module
 */

import { listenAgain } from "./free_port.ts";

/** A request to the cloud. */
export interface CloudRequest {
  /** The method of HTTP. */
  readonly verb: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The method of MCP, if the request is a message. */
  readonly method: string | undefined;
  /** The name of the called tool. */
  readonly tool: string | undefined;
  /** The whole body, unchanged. */
  readonly body: string;
}

/** Returns the response instead of the cloud; undefined for the usual response. */
export type CloudScript = (
  request: CloudRequest,
) => Response | undefined | Promise<Response | undefined>;

/** A cloud of one origin. */
export class FakeCloud implements AsyncDisposable {
  /** The requests, in order. */
  readonly received: CloudRequest[] = [];
  /** May be changed while it runs. */
  script: CloudScript;
  readonly #gone = new AbortController();
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  /** Listens on 127.0.0.1, on any free port by default. */
  constructor(script: CloudScript = () => undefined, { port = 0 } = {}) {
    this.script = script;
    const options = { hostname: "127.0.0.1", port, onListen: () => {}, signal: this.#gone.signal };
    this.#server = listenAgain(() => Deno.serve(options, (request) => this.#answer(request)));
  }

  /** The port that it listens on. */
  get port(): number {
    return this.#server.addr.port;
  }

  /** The origin: the address of a hub. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The received tool calls. */
  get calls(): readonly CloudRequest[] {
    return this.received.filter(({ method }) => method === "tools/call");
  }

  /** All received requests as one text. */
  get text(): string {
    return JSON.stringify(this.received);
  }

  /** Stops listening, and closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#gone.abort();
    await this.#server.finished;
  }

  async #answer(request: Request): Promise<Response> {
    const body = await request.text();
    const { pathname } = new URL(request.url);
    const message = body === "" ? {} : JSON.parse(body);
    const received: CloudRequest = {
      verb: request.method,
      path: pathname,
      headers: Object.fromEntries(request.headers),
      method: message.method,
      tool: message.method === "tools/call" ? message.params.name : undefined,
      body,
    };
    this.received.push(received);
    return await this.script(received) ?? usual(received, message);
  }
}

function usual({ verb, method, tool, headers }: CloudRequest, message: Message): Response {
  if (verb !== "POST") return new Response(null, { status: verb === "GET" ? 404 : 405 });
  if (message.id === undefined) return new Response(null, { status: 202 });
  const capabilities = { tools: {} };
  const result = method === "server/discover"
    ? { supportedVersions: ["2026-07-28"], capabilities }
    : method === "tools/call"
    // The result may contain the sent headers, because it belongs to the client.
    ? { content: [{ type: "text", text: `${tool} ran`, keys: keysIn(headers) }] }
    : {};
  return Response.json({ jsonrpc: "2.0", id: message.id, result });
}

interface Message {
  readonly id?: string | number;
}

function keysIn(headers: CloudRequest["headers"]): readonly string[] {
  return Object.keys(headers).filter((name) => name.startsWith("x-pml-key-"));
}
