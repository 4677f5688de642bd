/**
 * Listens on loopback for requests that must not arrive, and keeps those that do.
 *
 * @module
 */

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";

/** A request to an HTTP sink. */
export interface SinkRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Keeps every HTTP request. */
export class HttpSink implements AsyncDisposable {
  /** The requests, in order. */
  readonly received: SinkRequest[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  /** Listens on a free port of 127.0.0.1 and answers with the result of `reply`, or 204. */
  constructor(reply: (received: SinkRequest) => Response | Promise<Response> = noContent) {
    const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    this.#server = Deno.serve(options, async (request) => {
      const { pathname, search } = new URL(request.url);
      const received = {
        method: request.method,
        path: pathname + search,
        headers: Object.fromEntries(request.headers),
        body: await request.text(),
      };
      this.received.push(received);
      return await reply(received);
    });
  }

  /** The port that it listens on. */
  get port(): number {
    return this.#server.addr.port;
  }

  /** The origin, without a slash at the end. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Asserts that there was no request. */
  assertSilent(): void {
    const calls = this.received.map(({ method, path }) => `${method} ${path}`);
    assert.deepEqual(calls, [], "somebody called");
  }

  /** Stops listening. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

/** Keeps the bytes of every TCP connection, and answers nothing. */
export class TcpSink implements AsyncDisposable {
  /** The received text of each connection, in the order of the connections. */
  readonly received: string[] = [];
  readonly #listener: Deno.TcpListener;
  readonly #open = new Set<Deno.Conn>();
  readonly #accepting: Promise<void>;

  /** Listens on 127.0.0.1, at a free port by default. */
  constructor({ port = 0 } = {}) {
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port });
    this.#accepting = this.#accept();
  }

  /** The port that it listens on. */
  get port(): number {
    return this.#listener.addr.port;
  }

  /** Asserts that there was no connection. */
  assertSilent(): void {
    assert.deepEqual(this.received, [], "there was a connection");
  }

  /** Stops listening and drops the connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    for (const connection of this.#open) connection.close();
    await this.#accepting;
  }

  async #accept(): Promise<void> {
    const readers = [];
    for await (const connection of this.#listener) {
      this.#open.add(connection);
      readers.push(this.#read(connection, this.received.push("") - 1));
    }
    await Promise.all(readers);
  }

  async #read(connection: Deno.Conn, index: number): Promise<void> {
    const decoder = new TextDecoder("latin1");
    try {
      for await (const chunk of connection.readable) this.received[index] += decoder.decode(chunk);
    } catch (error) {
      // Closing a connection during a read leads to these errors.
      if (!(error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted)) {
        throw error;
      }
    } finally {
      this.#open.delete(connection);
    }
  }
}

/** Asserts that a secret is in none of the texts, neither plain nor in a common encoding. */
export function assertNoLeak(secret: string, texts: Readonly<Record<string, string>>): void {
  for (const [where, text] of Object.entries(texts)) {
    for (const [how, encoded] of Object.entries(encodingsOf(secret))) {
      assert.ok(!text.includes(encoded), `the secret is in ${where}, ${how}`);
    }
  }
}

/** Returns a secret in all forms in which it could leak. */
function encodingsOf(secret: string): Record<string, string> {
  const bytes = Buffer.from(secret);
  // The base64 of a text inside another one depends on its position: the inner part shows it.
  const shifted = ["", "x", "xx"].map((before) =>
    Buffer.from(before + secret).toString("base64").slice(before === "" ? 0 : 4).slice(0, -4)
  );
  return {
    plain: secret,
    hex: bytes.toString("hex"),
    base64: shifted[0] ?? "",
    "base64, shifted by one": shifted[1] ?? "",
    "base64, shifted by two": shifted[2] ?? "",
    base64url: bytes.toString("base64url").slice(0, -2),
    "URL-encoded": encodeURIComponent(secret),
    "JSON-escaped": JSON.stringify(secret).slice(1, -1),
  };
}

function noContent(): Response {
  return new Response(null, { status: 204 });
}
