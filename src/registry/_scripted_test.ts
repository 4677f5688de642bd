/** A registry on the loopback address with scripted answers. */

import { fileURLToPath } from "node:url";
import type { Fetch } from "../core/fetch.ts";
import type { JsonObject } from "../core/json.ts";
import { integrityOf } from "../core/hash.ts";

/** A request as it arrived. */
export interface Asked {
  readonly target: string;
  readonly headers: Headers;
}

/** An answer: the whole body, pieces that are sent one by one, or no answer at all. */
export type Scripted =
  | {
    readonly status?: number;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string | Uint8Array;
  }
  | { readonly raw: (send: (piece: string | Uint8Array) => Promise<void>) => Promise<void> }
  | "silence"
  | "hang up";

/** The registry. Its answers can be changed at any time. */
export class ScriptedRegistry implements AsyncDisposable {
  readonly asked: Asked[] = [];
  answer: (asked: Asked) => Scripted;
  readonly #port: number;
  #listener: Deno.Listener | undefined;
  readonly #connections = new Set<Deno.Conn>();
  readonly #work = new Set<Promise<void>>();

  constructor(answer: (asked: Asked) => Scripted = () => ({ status: 404, body: "{}" })) {
    this.answer = answer;
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.#port = (this.#listener.addr as Deno.NetAddr).port;
    this.#serve(this.#listener);
  }

  get host(): string {
    return `127.0.0.1:${this.#port}`;
  }

  get url(): string {
    return `http://${this.host}/mcp`;
  }

  /** The targets of all requests, without the path of the registry. */
  get targets(): string[] {
    return this.asked.map(({ target }) => target.replace(/^\/mcp/, ""));
  }

  /** Stops listening, so that connections are refused. */
  stop(): void {
    this.#listener?.close();
    this.#listener = undefined;
    for (const connection of this.#connections) close(connection);
  }

  /** Listens again at the same address. */
  start(): void {
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: this.#port });
    this.#serve(this.#listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    await Promise.all(this.#work);
  }

  #serve(listener: Deno.Listener): void {
    this.#track(
      (async () => {
        for await (const connection of listener) this.#track(this.#one(connection));
      })(),
    );
  }

  #track(work: Promise<void>): void {
    // If the client disconnects, nothing more is sent.
    const over = work.catch(() => {}).finally(() => this.#work.delete(over));
    this.#work.add(over);
  }

  async #one(connection: Deno.Conn): Promise<void> {
    this.#connections.add(connection);
    try {
      const head = await readHead(connection);
      const [first = "", ...lines] = head.split("\r\n");
      const headers = new Headers(
        lines.filter((line) => line !== "").map((line) => {
          const [name = "", value = ""] = line.split(/: (.*)/s);
          return [name, value];
        }),
      );
      const asked = { target: first.split(" ")[1] ?? "", headers };
      this.asked.push(asked);
      await reply(connection, this.answer(asked));
    } finally {
      this.#connections.delete(connection);
      close(connection);
    }
  }
}

async function reply(connection: Deno.Conn, scripted: Scripted): Promise<void> {
  const send = async (piece: string | Uint8Array) => {
    const bytes = typeof piece === "string" ? new TextEncoder().encode(piece) : piece;
    for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
  };
  if (scripted === "hang up") return;
  if (scripted === "silence") {
    await connection.read(new Uint8Array(1));
  } else if ("raw" in scripted) {
    await scripted.raw(send);
  } else {
    const { status = 200, headers = {}, body = "" } = scripted;
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
    const all = { "content-length": `${bytes.length}`, "connection": "close", ...headers };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    await send(`HTTP/1.1 ${status} X\r\n${lines.join("")}\r\n`);
    await send(bytes);
  }
}

async function readHead(connection: Deno.Conn): Promise<string> {
  const decoder = new TextDecoder();
  const piece = new Uint8Array(65_536);
  let head = "";
  while (!head.includes("\r\n\r\n")) {
    const length = await connection.read(piece);
    if (length === null) throw new Error("the client went away");
    head += decoder.decode(piece.subarray(0, length), { stream: true });
  }
  return head;
}

function close(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // It was already closed.
  }
}

/**
 * The `fetch` for tests. It supports only the options that a registry on the loopback address
 * needs.
 */
export const plainFetch: Fetch = (url, { named: _, headers, ...options }) =>
  fetch(url, {
    ...options,
    headers: { ...headers, "accept-encoding": "identity" },
    redirect: "manual",
  });

/** Returns an answer with JSON. */
export function json(value: unknown, headers: Readonly<Record<string, string>> = {}): Scripted {
  return {
    headers: { "content-type": "application/json", ...headers },
    body: typeof value === "string" ? value : JSON.stringify(value),
  };
}

/** Returns an answer with code. The etag is its hash unless another one is given. */
export function code(text: string, headers: Readonly<Record<string, string>> = {}): Scripted {
  const type = "application/typescript";
  return { headers: { "content-type": type, "etag": tag(text), ...headers }, body: text };
}

/** Returns the etag of a text. */
export function tag(text: string): string {
  return `"${hash(text)}"`;
}

/** Returns the hash of a text. */
export function hash(text: string): string {
  return integrityOf(new TextEncoder().encode(text));
}

/** Returns a module's entry whose code is this text. */
export function denoEntry(fqdn: string, text: string, more: JsonObject = {}): JsonObject {
  return {
    fqdn,
    type: "deno",
    version: "1.0.0",
    description: "Says hello",
    permissions: {},
    tools: [{ name: "hello", description: "Says hello", inputSchema: { type: "object" } }],
    integrity: hash(text),
    ...more,
  };
}

/** Answers with entries by their names, and with code if it is requested. */
export function entries(
  all: Readonly<Record<string, { readonly json: JsonObject; readonly text?: string }>>,
): (asked: Asked) => Scripted {
  return ({ target, headers }) => {
    const name = decodeURIComponent(target.replace(/^\/mcp\/?/, "").replace(/@.*/, ""));
    const found = Object.hasOwn(all, name) ? all[name] : undefined;
    if (found === undefined) return { status: 404, body: "{}" };
    if (headers.get("accept") === "application/typescript") return code(found.text ?? "");
    const etag = tag(JSON.stringify(found.json));
    return headers.get("if-none-match") === etag
      ? { status: 304, headers: { etag } }
      : json(found.json, { etag });
  };
}

/** A folder of this test run, which is removed at its end. */
export class Folder implements Disposable {
  readonly path = Deno.makeTempDirSync({ prefix: "pml-registry-" });

  [Symbol.dispose](): void {
    Deno.removeSync(this.path, { recursive: true });
  }
}

/** Returns the path of a source file of this module. */
export function here(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}
