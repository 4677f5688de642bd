/**
 * Sends many small calls to an MCP server over HTTP, with a raw client that uses little time itself.
 *
 * @module
 */

import { CLIENT_INFO, paramsFor } from "../../tests/kit/json_rpc.ts";

/** A measured server, and how to call it. */
export interface Target {
  readonly name: string;
  readonly url: string;
  readonly token?: string;
  /**
   * `alone`: each request of 2026-07-28 is independent. `session`: one session of 2025-11-25, shared
   * by all connections. `sse`: one stream of HTTP+SSE that carries the answers of all connections.
   */
  readonly how: "alone" | "session" | "sse";
  /** The name of the tool that returns its text. */
  readonly tool: string;
}

/** The figures of a run of many calls. */
export interface LoadFigures {
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly calls: number;
}

/** The number of connections, and when the load ends. */
export interface LoadAmount {
  readonly connections: number;
  /** The load ends after this many milliseconds, or this many calls. */
  readonly ms?: number;
  readonly calls?: number;
}

/** The text that the tool must return. */
export const ANSWER = "hello";
/** All ids have the same number of digits, so that all bodies have the same length. */
const FIRST_ID = 1_000_000_000;
const UTF_8 = new TextEncoder();
const OLDER = "2025-11-25";
const NEWEST = "2026-07-28";

/** A client of one server, with many connections. */
export class Load implements AsyncDisposable {
  readonly #target: Target;
  readonly #url: URL;
  #path: string;
  #sessionHeaders: readonly string[] = [];
  #id = FIRST_ID;
  #stream: Connection | undefined;
  readonly #streamWaiters = new Map<string, () => void>();
  readonly #connections: Connection[] = [];

  private constructor(target: Target) {
    this.#target = target;
    this.#url = new URL(target.url);
    this.#path = this.#url.pathname;
  }

  /** Creates a client, and initializes the session if the target has one. */
  static async open(target: Target): Promise<Load> {
    const load = new Load(target);
    if (target.how === "sse") await load.#openStream();
    if (target.how !== "alone") await load.#initialize();
    return load;
  }

  /** Calls the tool repeatedly. Throws if an answer is wrong. */
  async run({ connections, ms = Infinity, calls = Infinity }: LoadAmount): Promise<LoadFigures> {
    while (this.#connections.length < connections) {
      this.#connections.push(await Connection.open(this.#url));
    }
    const times: number[] = [];
    const since = performance.now();
    let startedCount = 0;
    await Promise.all(
      this.#connections.slice(0, connections).map(async (connection) => {
        while (startedCount < calls && performance.now() - since < ms) {
          startedCount++;
          const callStart = performance.now();
          await this.#call(connection);
          times.push(performance.now() - callStart);
        }
      }),
    );
    const elapsedMs = performance.now() - since;
    times.sort((a, b) => a - b);
    const percentile = (part: number) => times[Math.ceil(times.length * part) - 1] ?? NaN;
    return {
      perSecond: times.length / elapsedMs * 1_000,
      p50: percentile(0.5),
      p99: percentile(0.99),
      calls: times.length,
    };
  }

  /** Closes all connections. */
  [Symbol.asyncDispose](): Promise<void> {
    for (const connection of [...this.#connections, this.#stream]) connection?.close();
    return Promise.resolve();
  }

  async #call(connection: Connection): Promise<void> {
    const id = `${++this.#id}`;
    const streamAnswer = this.#target.how === "sse" ? this.#answerOnStream(id) : undefined;
    const { status, body } = await connection.exchange(this.#callBytes(id));
    const isRight = streamAnswer === undefined
      ? body.includes(ANSWER) && body.includes(id)
      : status < 300;
    if (!isRight) throw new Error(`${this.#target.name} answered ${status}: ${body}`);
    await streamAnswer;
  }

  #callBytes(id: string): Uint8Array {
    const { tool, how } = this.#target;
    const call = { name: tool, arguments: { text: ANSWER } };
    const params = how === "alone" ? paramsFor(NEWEST, call, {}) : call;
    const head = how === "alone" ? ["mcp-method: tools/call", `mcp-name: ${tool}`] : [];
    return this.#bytes("tools/call", { id: Number(id), params, head });
  }

  #bytes(
    method: string,
    { id, params, head = [] }: {
      readonly id?: number;
      readonly params?: unknown;
      readonly head?: readonly string[];
    },
  ): Uint8Array {
    const { how, token } = this.#target;
    const body = JSON.stringify({ jsonrpc: "2.0", ...id !== undefined && { id }, method, params });
    const lines = [
      `POST ${this.#path} HTTP/1.1`,
      `host: ${this.#url.host}`,
      "content-type: application/json",
      "accept: application/json, text/event-stream",
      `content-length: ${body.length}`,
      ...token === undefined ? [] : [`authorization: Bearer ${token}`],
      ...how === "alone" ? [`mcp-protocol-version: ${NEWEST}`] : this.#sessionHeaders,
      ...head,
    ];
    return UTF_8.encode(`${lines.join("\r\n")}\r\n\r\n${body}`);
  }

  async #initialize(): Promise<void> {
    const connection = await Connection.open(this.#url);
    this.#connections.push(connection);
    const params = { protocolVersion: OLDER, capabilities: {}, clientInfo: CLIENT_INFO };
    const streamAnswer = this.#stream && this.#answerOnStream("1");
    const { status, head, body } = await connection.exchange(
      this.#bytes("initialize", { id: 1, params }),
    );
    if (status >= 300) {
      throw new Error(`${this.#target.name} answered initialize with ${status}: ${body}`);
    }
    await streamAnswer;
    const session = /^mcp-session-id: *(\S+)/im.exec(head)?.[1];
    if (session !== undefined) {
      this.#sessionHeaders = [`mcp-session-id: ${session}`, `mcp-protocol-version: ${OLDER}`];
    }
    await connection.exchange(this.#bytes("notifications/initialized", {}));
  }

  #answerOnStream(id: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#streamWaiters.set(id, resolve);
    return promise;
  }

  async #openStream(): Promise<void> {
    const stream = this.#stream = await Connection.open(this.#url);
    const lines = [`GET ${this.#path} HTTP/1.1`, `host: ${this.#url.host}`];
    await stream.write(UTF_8.encode(`${lines.join("\r\n")}\r\naccept: text/event-stream\r\n\r\n`));
    const opened = Promise.withResolvers<string>();
    void this.#readStream(stream, opened.resolve).catch(opened.reject);
    this.#path = await opened.promise;
  }

  async #readStream(stream: Connection, onEndpoint: (path: string) => void): Promise<void> {
    let text = "";
    for await (const piece of stream.pieces()) {
      const lines = (text + piece).split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) {
        const endpoint = /^data: ?(\/\S+|http\S+)/.exec(line)?.[1];
        if (endpoint !== undefined) onEndpoint(endpoint.replace(/^http:\/\/[^/]*/, ""));
        const id = /"id":(\d+)/.exec(line)?.[1];
        if (id === undefined) continue;
        this.#streamWaiters.get(id)?.();
        this.#streamWaiters.delete(id);
      }
    }
  }
}

interface HttpAnswer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/** A persistent connection with one request at a time. */
class Connection {
  readonly #connection: Deno.Conn;
  readonly #buffer = new Uint8Array(65_536);

  private constructor(connection: Deno.TcpConn) {
    connection.setNoDelay(true);
    this.#connection = connection;
  }

  static async open({ hostname, port }: URL): Promise<Connection> {
    return new Connection(await Deno.connect({ hostname, port: Number(port) }));
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) at += await this.#connection.write(bytes.subarray(at));
  }

  /** Yields the received pieces. */
  async *pieces(): AsyncGenerator<string> {
    const decoder = new TextDecoder();
    for (;;) {
      const read = await this.#connection.read(this.#buffer).catch(() => null);
      if (read === null) return;
      yield decoder.decode(this.#buffer.subarray(0, read), { stream: true });
    }
  }

  /** Sends a request and reads its answer. */
  async exchange(bytes: Uint8Array): Promise<HttpAnswer> {
    await this.write(bytes);
    let text = "";
    for await (const piece of this.pieces()) {
      text += piece;
      const answer = completeAnswer(text);
      if (answer !== undefined) return answer;
    }
    throw new Error(`The connection ended after ${JSON.stringify(text.slice(0, 500))}`);
  }

  close(): void {
    this.#connection.close();
  }
}

/**
 * Returns an answer if it is complete. Assumes that the body contains no line like the end of chunks.
 */
function completeAnswer(text: string): HttpAnswer | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const head = text.slice(0, end);
  const body = text.slice(end + 4);
  const status = Number(head.slice(9, 12));
  const length = /^content-length: *(\d+)/im.exec(head)?.[1];
  const isChunked = /^transfer-encoding: *chunked/im.test(head);
  const isWhole = isChunked ? body.endsWith("0\r\n\r\n") : body.length >= Number(length ?? 0);
  return isWhole ? { status, head, body } : undefined;
}
