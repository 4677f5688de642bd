/**
 * A registry on loopback: entries of a test, served by the code of `pml registry serve`, with a log
 * of its requests and faults that a test scripts.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { JsonObject } from "../../src/core/json.ts";
import { parseModuleMeta } from "../../src/protocol/tool.ts";
import { answer, type RegistryRequest, type RegistryResponse } from "../../src/registry/answers.ts";
import { integrityOf } from "../../src/core/hash.ts";
import {
  chooseVersion,
  entriesPage,
  type EntryVersion,
  moduleManifest,
  type RegistryStore,
  type Versions,
  versionsOf,
} from "../../src/registry/registry_store.ts";

/** The faults of the responses of a path; members that are not set have no fault. */
export interface Fault {
  /** The number of responses with this fault; all by default. */
  readonly times?: number;
  readonly status?: number;
  /** Headers to add or replace; undefined removes one. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** Shorthands of `headers` and `status`. */
  readonly contentType?: string | undefined;
  readonly etag?: string | undefined;
  readonly redirect?: string;
  /** Another body, with its length. */
  readonly body?: string | Uint8Array;
  /** Changes the last byte of the body and nothing else. */
  readonly corrupt?: true;
  /** Sends so many bytes of the body, then closes the connection. */
  readonly truncate?: number;
  /** Closes the connection instead of a response. */
  readonly drop?: true;
  /** Repeats the body endlessly. */
  readonly endless?: true;
  /** Sends nothing at all. */
  readonly hang?: true;
  /** Waits before the response, in milliseconds. */
  readonly delayMs?: number;
  /** Sends the body byte by byte, with such waits in milliseconds. */
  readonly byteMs?: number;
}

/** A received request. */
export interface LoggedRequest {
  readonly method: string;
  /** The path with its query, unchanged. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Answers instead of a registry of PML's own contract. */
export type Answerer = (request: RegistryRequest) => RegistryResponse | Promise<RegistryResponse>;

/** Creates a store of the versions. */
export function storeOf(versions: readonly Versions[]): RegistryStore {
  return {
    entry: (fqdn, version) => {
      const found = versions.find((one) => one.fqdn === fqdn);
      return Promise.resolve(found && chooseVersion(found, version));
    },
    page: (query) => Promise.resolve(entriesPage(versions, query)),
  };
}

/** A running registry. */
export class FakeRegistry implements AsyncDisposable {
  /** The requests, in order. */
  readonly asked: LoggedRequest[] = [];
  #entries: readonly EntryVersion[];
  #tags: Readonly<Record<string, Readonly<Record<string, string>>>> = {};
  readonly #faults = new Map<string, Fault>();
  readonly #sockets = new Set<Socket>();
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  #server: Server | undefined;
  #port = 0;

  readonly #answerer: Answerer;

  private constructor(entries: readonly EntryVersion[], answerer?: Answerer) {
    this.#entries = entries;
    this.#answerer = answerer ?? ((request) => this.#answer(request));
  }

  /** Serves entries on a free port. */
  static async open(
    entries: readonly EntryVersion[] = [],
    answerer?: Answerer,
  ): Promise<FakeRegistry> {
    const registry = new FakeRegistry(entries, answerer);
    await registry.start();
    return registry;
  }

  /** The address without a path. */
  get origin(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The address to configure; it stays the same after `stop()` and `start()`. */
  get url(): string {
    return `${this.origin}/mcp`;
  }

  /** The requested paths, with repetitions. */
  get paths(): readonly string[] {
    return this.asked.map(({ target }) => target);
  }

  /** Serves these entries from now on. */
  publish(entries: readonly EntryVersion[], tags = this.#tags): void {
    this.#entries = entries;
    this.#tags = tags;
  }

  /**
   * Scripts a fault of a path (`/mcp/x`, with any query), or of all with `*`; without a fault,
   * removes it.
   */
  fault(path: string, fault?: Fault): void {
    if (fault === undefined) this.#faults.delete(path);
    else this.#faults.set(path, fault);
  }

  /** Listens, on the same port as before. */
  async start(): Promise<void> {
    this.#server = createServer((socket) => this.#converse(socket));
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Stops, with all its connections: new ones are refused from now on. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = once(server, "close");
    server.close();
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Stops the registry. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #converse(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => {}); // the client has disconnected
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      const end = text.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = text.slice(0, end);
      text = text.slice(end + 4);
      this.#take(head, socket).catch((error) => socket.destroy(error));
    });
  }

  async #take(head: string, socket: Socket): Promise<void> {
    const [first = "", ...lines] = head.split("\r\n");
    const [method = "", target = ""] = first.split(" ");
    const headers = Object.fromEntries(lines.map((line) => {
      const [name = "", value = ""] = line.split(/:(.*)/s);
      return [name.toLowerCase(), value.trim()];
    }));
    this.asked.push({ method, target, headers });
    const fault = this.#faultOf(target);
    if (fault.drop) return void socket.destroy();
    if (fault.hang) return;
    const asked = {
      method,
      target,
      accept: headers.accept,
      ifNoneMatch: headers["if-none-match"],
    };
    const response = await this.#answerer(asked);
    if (fault.delayMs !== undefined) await this.#wait(fault.delayMs);
    await this.#send(spoiled(response, fault), { socket, fault });
  }

  #answer(request: RegistryRequest): Promise<RegistryResponse> {
    const versions = versionsOf(this.#entries, this.#tags);
    return answer(request, storeOf(versions));
  }

  #faultOf(target: string): Fault {
    const path = [target.split("?")[0] ?? "", "*"].find((path) => this.#faults.has(path)) ?? "";
    const fault = this.#faults.get(path);
    if (fault?.times === undefined) return fault ?? {};
    if (fault.times <= 1) this.#faults.delete(path);
    else this.#faults.set(path, { ...fault, times: fault.times - 1 });
    return fault;
  }

  async #send(
    { status, headers, body }: RegistryResponse,
    { socket, fault }: { readonly socket: Socket; readonly fault: Fault },
  ): Promise<void> {
    const lines = Object.entries({ ...headers, connection: "close" })
      .map(([name, value]) => `${name}: ${value}`);
    socket.write([`HTTP/1.1 ${status} Said`, ...lines, "", ""].join("\r\n"));
    if (fault.endless) {
      while (!socket.destroyed) {
        if (socket.write(body)) await this.#wait(0);
        else await Promise.race([once(socket, "drain"), once(socket, "close")]);
      }
    }
    if (fault.byteMs !== undefined) {
      for (const byte of body) {
        socket.write(Uint8Array.of(byte));
        await this.#wait(fault.byteMs);
        if (socket.destroyed) return;
      }
    } else socket.write(body.subarray(0, fault.truncate));
    socket.end();
  }

  /** Waits, and forever if it is stopped meanwhile. */
  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        resolve();
      }, ms);
      this.#timers.add(timer);
    });
  }
}

/**
 * Creates the entry of a module from its source, which runs in this process to read its `__meta__`.
 */
export async function moduleEntry(
  fqdn: string,
  source: string,
  { version, immutable = false }: { readonly version?: string; readonly immutable?: boolean } = {},
): Promise<EntryVersion> {
  const code = new TextEncoder().encode(source);
  const url = `data:application/typescript;base64,${Buffer.from(code).toString("base64")}`;
  const meta = parseModuleMeta((await import(url)).__meta__, fqdn);
  const known = version ?? meta.version ?? "1.0.0";
  const manifest = moduleManifest({ fqdn, version: known, meta, integrity: integrityOf(code) });
  return { fqdn, version: known, manifest, code, immutable };
}

/** Creates the entry of another kind from its manifest; missing members are filled in. */
export function manifestEntry(fqdn: string, said: JsonObject): EntryVersion {
  const manifest = {
    fqdn,
    version: "1.0.0",
    description: `The server ${fqdn}`,
    tools: [],
    env_required: [],
    warnings: [],
    routing: said.type === "cloud" ? "cloud" : "local",
    ...said,
  };
  return { fqdn, version: manifest.version, manifest, immutable: false };
}

function spoiled(response: RegistryResponse, fault: Fault): RegistryResponse {
  const body = Buffer.from(fault.body ?? response.body);
  if (fault.corrupt) body[body.length - 1] = (body.at(-1) ?? 0) ^ 1;
  const headers: Record<string, string | undefined> = {
    ...response.headers,
    ...("content-length" in response.headers && { "content-length": String(body.length) }),
    ...("contentType" in fault && { "content-type": fault.contentType }),
    ...("etag" in fault && { etag: fault.etag }),
    ...(fault.redirect !== undefined && { location: fault.redirect }),
    ...(fault.endless && { "content-length": undefined }),
    ...fault.headers,
  };
  const kept = Object.entries(headers).filter(([, value]) => value !== undefined);
  return {
    status: fault.status ?? (fault.redirect === undefined ? response.status : 302),
    headers: Object.fromEntries(kept) as RegistryResponse["headers"], // without the removed ones
    body,
  };
}
