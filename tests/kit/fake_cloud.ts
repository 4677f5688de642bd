/**
 * A cloud on loopback: the hub at `/mcp` and proxied servers at any other path, which speak the
 * newest revision of MCP, keep what they are sent, and fail as the test says.
 *
 * @module
 */

/** A request that a cloud was sent. */
export interface CloudRequest {
  /** The method of HTTP. */
  readonly verb: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The method of MCP, where it is a message. */
  readonly method: string | undefined;
  /** The name of the tool, of a call. */
  readonly tool: string | undefined;
  /** The whole body as it came. */
  readonly body: string;
}

/** What a cloud answers in place of what it should; nothing where it is as it should be. */
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

  /** Listens on 127.0.0.1, on any free port unless one is given. */
  constructor(script: CloudScript = () => undefined, { port = 0 } = {}) {
    this.script = script;
    const options = { hostname: "127.0.0.1", port, onListen: () => {}, signal: this.#gone.signal };
    this.#server = Deno.serve(options, (request) => this.#answer(request));
  }

  /** Where it listens. */
  get port(): number {
    return this.#server.addr.port;
  }

  /** Its origin: the address of a hub. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The calls of tools that came. */
  get calls(): readonly CloudRequest[] {
    return this.received.filter(({ method }) => method === "tools/call");
  }

  /** Everything that it was sent, as one text. */
  get text(): string {
    return JSON.stringify(this.received);
  }

  /** Stops listening, and drops everybody. */
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
    // A tool may say what it was sent: its result is the client's.
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
