/**
 * An MCP server of both revisions, over stdio or Streamable HTTP. In the older revision it sends its
 * requests to the client while a call runs; in the newest it returns `input_required`.
 *
 *     deno run -A both_server.ts LEDGER
 *
 * Over stdio it has both revisions at any time, unless the file `LEDGER.kind` contains one of
 *
 * - `pinned`: it has only the revision of its first message,
 * - `older`: it has only the older revision,
 * - `fragile`: it has only the older revision, and ends at `server/discover`.
 *
 * @module
 */

import {
  createMcpHandler,
  inputRequired,
  isLegacyRequest,
  Server,
  type ServerContext,
  type Transport,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";

/** Records a call of the server. */
type Note = (line: string) => void;

/** The options of the server. */
interface BothOptions {
  readonly note: Note;
  /** Returns the description of each tool. */
  readonly description?: () => string;
}

const inputSchema = { type: "object" };
const FORM = {
  mode: "form",
  message: "Who?",
  requestedSchema: { type: "object", properties: { name: { type: "string" } } },
};
const PAGE = { mode: "url", message: "Log in", url: "https://127.0.0.1/x", elicitationId: "e1" };
const MESSAGES = [{ role: "user", content: { type: "text", text: "Say it" } }];

/** The tools that ask, and the request that each sends. */
const QUESTIONS: Readonly<Record<string, { readonly method: string; readonly params: object }>> = {
  form: { method: "elicitation/create", params: FORM },
  page: { method: "elicitation/create", params: PAGE },
  sample: {
    method: "sampling/createMessage",
    params: { messages: MESSAGES, maxTokens: 10 },
  },
  roots: { method: "roots/list", params: {} },
};

/** All tools. */
export const TOOLS: readonly string[] = [...Object.keys(QUESTIONS), "progress", "log", "wait"];

interface CallParams {
  readonly name: string;
  readonly _meta?: { readonly progressToken?: string };
}

/** Creates the server of one revision. Results contain the revision of the call. */
export function bothServer(
  revision: "older" | "newest",
  { note, description = () => "" }: BothOptions,
): Server {
  const server = new Server({ name: "both", version: "1.0.0" }, {
    capabilities: { tools: { listChanged: true }, logging: {} },
  });
  const result = (got: unknown = null) => ({
    content: [{ type: "text" as const, text: JSON.stringify({ revision, got }) }],
  });
  const call = async ({ name, _meta }: CallParams, { mcpReq }: ServerContext) => {
    note(`call ${name} ${revision}`);
    const question = QUESTIONS[name];
    if (question !== undefined && revision === "older") {
      return result(await mcpReq.send(question as never));
    }
    if (question !== undefined) {
      const got = (mcpReq.inputResponses as Record<string, unknown> | undefined)?.one;
      const inputRequests = { one: question } as never;
      return got === undefined ? inputRequired({ inputRequests }) : result(got);
    }
    if (name === "progress") {
      const params = { progressToken: _meta?.progressToken ?? "", progress: 7 };
      await mcpReq.notify({ method: "notifications/progress", params });
    } else if (name === "log") {
      const params = { level: "error" as const, data: "logged in a call" };
      await mcpReq.notify({ method: "notifications/message", params });
    } else if (name === "wait") {
      await new Promise((resolve) => mcpReq.signal.addEventListener("abort", resolve));
      note("cancelled");
    }
    return result();
  };
  server.removeRequestHandler("logging/setLevel");
  server.fallbackRequestHandler = async ({ method, params }, context) => {
    note(`${method} ${revision}`);
    if (method === "tools/call") return await call(params as never, context);
    if (method !== "tools/list") return {};
    return { tools: TOOLS.map((name) => ({ name, description: description(), inputSchema })) };
  };
  return server;
}

/** The server over HTTP: stateless in the newest revision, with sessions in the older ones. */
export class BothHttp implements AsyncDisposable {
  /** One line for each request that it received. */
  readonly ledger: string[] = [];
  /** Whether it accepts `initialize`. */
  hasOlder = true;
  /** Whether each request of the older revision is handled without a session. */
  isStateless = false;
  /** Whether it accepts the newest revision. */
  hasNewest = true;
  /** The description of each tool. */
  description = "first";
  readonly #options: BothOptions = {
    note: (line) => void this.ledger.push(line),
    description: () => this.description,
  };
  readonly #sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  readonly #newest = createMcpHandler(() => bothServer("newest", this.#options), {
    legacy: "reject",
  });
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  /** Listens on a free port of 127.0.0.1. */
  constructor() {
    const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    this.#server = Deno.serve(options, (request) => this.#serve(request));
  }

  /** The address. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}/mcp`;
  }

  /** The number of sessions. */
  get sessions(): number {
    return this.#sessions.size;
  }

  /** Drops all sessions. */
  async forget(): Promise<void> {
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    for (const session of sessions) await session.close();
  }

  /** Stops listening. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.forget();
    await this.#newest.close();
    await this.#server.shutdown();
  }

  async #serve(request: Request): Promise<Response> {
    const isOlder = request.method !== "POST" || await isLegacyRequest(request);
    if (!isOlder && this.hasNewest) return await this.#newest.fetch(request);
    if (!this.hasOlder) return new Response("Not found", { status: 404 });
    const known = request.headers.get("mcp-session-id");
    const session = this.#sessions.get(known ?? "");
    if (session !== undefined) return await session.handleRequest(request);
    if (known !== null) return new Response("Session not found", { status: 404 });
    const fresh = new WebStandardStreamableHTTPServerTransport({
      ...!this.isStateless && { sessionIdGenerator: () => crypto.randomUUID() },
      onsessioninitialized: (id) => void this.#sessions.set(id, fresh),
      onsessionclosed: (id) => void this.#sessions.delete(id),
    });
    await bothServer("older", this.#options).connect(fresh);
    return await fresh.handleRequest(request);
  }
}

/** The part of the messages of a pipe that belongs to one revision. */
class Part implements Transport {
  onclose?: Transport["onclose"];
  onerror?: Transport["onerror"];
  onmessage?: Transport["onmessage"];
  readonly send: Transport["send"];

  constructor(wire: Transport) {
    this.send = (...sent) => wire.send(...sent);
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Serves both revisions at any time: each message is one of the revision that its `_meta` names. */
async function serveBoth(note: Note): Promise<void> {
  const wire = new StdioServerTransport();
  const [older, newest] = [new Part(wire), new Part(wire)];
  serveStdio(() => bothServer("older", { note }), { transport: older });
  serveStdio(() => bothServer("newest", { note }), { transport: newest, legacy: "reject" });
  wire.onmessage = (message) => {
    const isNewest = JSON.stringify(message).includes("io.modelcontextprotocol/protocolVersion");
    const isCancel = "method" in message && message.method === "notifications/cancelled";
    if ("method" in message && !isCancel) note(message.method);
    if (isNewest || isCancel) newest.onmessage?.(message);
    if (!isNewest) older.onmessage?.(message);
  };
  await wire.start();
}

/** Serves one revision: that of the first message if `kind` is "pinned", else the older one. */
function serveOne(kind: string, note: Note): void {
  const wire = new StdioServerTransport();
  const part = new Part(wire);
  serveStdio(
    ({ era }) => bothServer(kind === "pinned" && era === "modern" ? "newest" : "older", { note }),
    { transport: part },
  );
  wire.onmessage = (message) => {
    const method = "method" in message ? message.method : "";
    if (method !== "") note(method);
    if (method === "server/discover" && kind === "fragile") Deno.exit(1);
    // The server answers it with an error.
    if (method === "server/discover" && kind === "older") return void refuse(wire, message);
    part.onmessage?.(message);
  };
  void wire.start();
}

async function refuse(wire: Transport, message: object): Promise<void> {
  const id = "id" in message ? message.id as number : 0;
  await wire.send({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } });
}

if (import.meta.main) {
  const [ledger = "/dev/null"] = Deno.args;
  const note = (line: string) => Deno.writeTextFileSync(ledger, `${line}\n`, { append: true });
  note("start");
  const kind = await Deno.readTextFile(`${ledger}.kind`).catch(() => "both");
  if (kind === "both") await serveBoth(note);
  else serveOne(kind, note);
}
