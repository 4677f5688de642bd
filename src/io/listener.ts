/**
 * Listens for HTTP requests on this machine, or on another address if one is configured. Headers,
 * bodies, idle connections and their number are limited, and a web page cannot send requests.
 *
 * @module
 */

import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { isLoopback } from "../core/address.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { callAfter } from "./waiting.ts";

/** How long a program that listens at an address may take to answer, in milliseconds. */
const PROBE_MS = 1_000;

/**
 * Sends an empty request without a key to the program at an address of this machine. Returns its
 * answer; undefined if it does not answer with JSON.
 */
export async function probe(
  url: string,
): Promise<{ readonly status: number; readonly body: unknown } | undefined> {
  try {
    const signal = AbortSignal.timeout(PROBE_MS);
    const response = await fetch(url, { method: "POST", signal, redirect: "error" });
    return { status: response.status, body: await response.json() };
  } catch {
    return undefined; // nothing listens there, or a program that is not PML
  }
}

/** Returns an address for a URL, in which IPv6 addresses have brackets. */
export function hostForUrl(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}

/** The options of `listen`. */
export interface ListenerOptions {
  /** The address or the name of this machine. */
  readonly host: string;
  /** The port; 0 takes a free one. */
  readonly port: number;
  /** The name of the service in errors: "a registry". */
  readonly what: string;
  /** The maximum number of connections at once; by default 256. */
  readonly connections?: number;
  /** How long a connection may be silent, in milliseconds, also in the middle of an answer. */
  readonly silentMs?: number;
  /** The certificate and its private key, as PEM. Without them, requests come in plain text. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** Answers a request. Must not throw. */
  readonly answer: (request: IncomingMessage, response: ServerResponse) => void;
  /** Called for each request that is not answered because it is invalid, late or too large. */
  readonly onRefused?: (status: number, why: string) => void;
}

/** An open listener. Disposing it breaks all connections. */
export interface Listener extends AsyncDisposable {
  /** The origin, such as `http://127.0.0.1:3003`. */
  readonly origin: string;
  /** Whether only this machine can reach it. */
  readonly isLocal: boolean;
  /** Accepts no more connections, and waits at most `ms` until open requests are answered. */
  drain(ms: number): Promise<void>;
}

const SECOND = 1_000;
const SERVER_LIMITS: ServerOptions = {
  connectionsCheckingInterval: SECOND,
  maxHeaderSize: 16_384,
  headersTimeout: 10 * SECOND,
  requestTimeout: 20 * SECOND,
  keepAliveTimeout: 60 * SECOND,
};
const CONNECTIONS = 256;
/** The maximum number of requests without an answer on one connection. */
const MOST_AT_ONCE = 101;

/**
 * Listens for HTTP requests until the listener is disposed.
 *
 * @throws {PmlError} USAGE if it cannot listen: the port is in use, or the address is not one of this
 * machine.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { listen } from "@casys/pml/registry";
 *
 * await using listener = await listen({
 *   host: "127.0.0.1",
 *   port: 0,
 *   what: "an example",
 *   answer: (_request, response) => void response.end("hello"),
 * });
 * assert.equal(await (await fetch(listener.origin)).text(), "hello");
 * ```
 */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const { host, port, what, tls, silentMs = 0 } = options;
  const busy: Busy = new WeakMap();
  const server = tls === undefined
    ? createServer(SERVER_LIMITS)
    : (await import("node:https")).createServer({ ...SERVER_LIMITS, ...tls });
  const quiet = limitConnections(server, options);
  server.on("request", answerInOrder(options.answer, { busy, quiet }));
  server.on("clientError", (error, socket) => refuseBroken(error, { ...options, busy, socket }));
  server.setTimeout(silentMs);
  server.listen(port, host.replace(/^\[|\]$/g, ""));
  await once(server, "listening").catch((cause) => {
    const isInUse = cause.code === "EADDRINUSE";
    const why = isInUse ? "another program listens there" : cause.message;
    const hint = `Give another --port (0 takes a free one)${isInUse ? "" : " or --host"}`;
    throw new PmlError("USAGE", `Cannot serve ${what} at ${quoted(`${host}:${port}`)}: ${why}`, {
      hint,
      cause,
    });
  });
  const closed = once(server, "close");
  const authority = `${hostForUrl(host)}:${(server.address() as AddressInfo).port}`;
  const drain = async (ms: number) => {
    server.close();
    for (const socket of quietSockets(quiet)) socket.destroy();
    using _ = callAfter(ms, () => server.closeAllConnections());
    await closed;
  };
  return {
    origin: `${tls === undefined ? "http" : "https"}://${authority}`,
    isLocal: isLoopback(host),
    drain,
    [Symbol.asyncDispose]: () => drain(0),
  };
}

/** The connections on which no request is in progress, by their remote address and port. */
interface Quiet {
  /** The connections without any request so far. */
  readonly fresh: Map<string, Socket>;
  readonly idle: Map<string, Socket>;
}

/** Returns the quiet connections, in the order in which they may be closed. */
function quietSockets({ fresh, idle }: Quiet): readonly Socket[] {
  return [...fresh.values(), ...idle.values()];
}

function remoteKey({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/**
 * For each connection beyond the limit, closes a quiet connection, or the new one if none is quiet.
 */
function limitConnections(
  server: Server,
  { connections = CONNECTIONS, onRefused }: ListenerOptions,
): Quiet {
  const quiet: Quiet = { fresh: new Map(), idle: new Map() };
  let openCount = 0;
  server.on("connection", (socket: Socket) => {
    const key = remoteKey(socket);
    if (++openCount > connections) {
      onRefused?.(503, `there are ${connections} connections`);
      const [first = socket] = quietSockets(quiet);
      // guard: http-connections
      first.destroy();
    }
    quiet.fresh.set(key, socket);
    socket.once("close", () => {
      openCount--;
      quiet.fresh.delete(key);
      quiet.idle.delete(key);
    });
  });
  return quiet;
}

/** For each connection, its requests without a complete answer. The first is being answered. */
type Busy = WeakMap<Duplex, (readonly [IncomingMessage, ServerResponse])[]>;

/**
 * Answers the requests of a connection one after the other. If it answered all at once, `node:http`
 * would keep the later answers without a limit, and would not cancel them with the connection.
 */
function answerInOrder(
  answer: ListenerOptions["answer"],
  { busy, quiet: { fresh, idle } }: { readonly busy: Busy; readonly quiet: Quiet },
): ListenerOptions["answer"] {
  return (request, response) => {
    const { socket } = request;
    const turns = busy.get(socket) ?? [];
    busy.set(socket, turns);
    // Read now, because it is unknown after the connection has ended.
    const key = remoteKey(socket);
    fresh.delete(key);
    idle.delete(key);
    response.once("close", () => {
      turns.shift();
      if (socket.destroyed) return;
      const [next] = turns;
      if (next === undefined) idle.set(key, socket);
      else answer(...next);
    });
    // guard: http-turns
    if (turns.push([request, response]) === 1) answer(request, response);
    else if (turns.length > MOST_AT_ONCE) socket.destroy();
  };
}

/** The statuses and reasons for requests that `node:http` cannot read, by its error codes. */
const BROKEN: Readonly<Record<string, readonly [number, string]>> = {
  HPE_HEADER_OVERFLOW: [431, "its headers are too large"],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "it took too long"],
};

/** Returns the status and the reason for a broken request; 400 and `other` if it is unknown. */
export function whyBroken(
  { code = "" }: { readonly code?: string },
  other: string,
): readonly [status: number, why: string] {
  return BROKEN[code] ?? [400, other];
}

/** Answers a request that `node:http` cannot read, unless another answer is being sent. */
function refuseBroken(
  error: Error & { readonly code?: string },
  { onRefused, busy, socket }: Pick<ListenerOptions, "onRefused"> & {
    readonly busy: Busy;
    readonly socket: Duplex;
  },
): void {
  const [request] = busy.get(socket)?.[0] ?? [];
  // If the body is still being read, its reader answers. An error after the body is not about it.
  const hasReader = request?.complete === false && request.listenerCount("error");
  // guard: http-late-body
  if (hasReader) return void request.emit("error", error);
  const [status, why] = whyBroken(error, "it is not HTTP");
  if (!socket.writable || request) return void socket.destroy();
  onRefused?.(status, why);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n\r\n`);
}

/** The parts of a request that show where it comes from. */
export interface RequestOrigin {
  /** The target, as it was sent. */
  readonly url?: string | undefined;
  /** The headers by their names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** The names and values of the headers in turn, as they were sent. */
  readonly rawHeaders: readonly string[];
}

/** The hosts and the origins that requests may name. */
export interface Names {
  /** The authorities that `Host` may be; undefined for any name of this machine. */
  readonly hosts?: ReadonlySet<string> | undefined;
  /** The origins of web pages that may send requests, besides those of this machine. */
  readonly origins?: ReadonlySet<string> | undefined;
}

/**
 * Returns the status that refuses a request because of its host or origin; undefined if it may be
 * answered. A web page can reach this machine through its own host name (DNS rebinding), and must
 * not read or do anything.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { refusedSender } from "@casys/pml/registry";
 *
 * const from = (host: string) => ({ url: "/mcp", headers: { host }, rawHeaders: ["Host", host] });
 * assert.equal(refusedSender(from("127.0.0.1:3003")), undefined);
 * assert.equal(refusedSender(from("attacker.example")), 403);
 * ```
 */
export function refusedSender(
  sender: RequestOrigin,
  { hosts, origins }: Names = {},
): 400 | 403 | undefined {
  const { url = "", headers: { host = "", origin }, rawHeaders } = sender;
  const hostHeaders = rawHeaders.filter((name, index) =>
    index % 2 === 0 && name.toLowerCase() === "host"
  );
  // guard: http-twice
  if (hostHeaders.length !== 1) return 400;
  // The target may contain an authority, too, which must be the same as the header.
  const target = /^[a-z]+:\/\/([^/?#]*)/i.exec(url)?.[1];
  if (target !== undefined && target.toLowerCase() !== host.toLowerCase()) return 400;
  const isHost = hosts?.has(host.toLowerCase()) ?? isOfThisMachine(host);
  // guard: http-host
  if (!isHost) return 403;
  // Two headers arrive as one value with a comma, which is not an origin.
  if (origin === undefined || origins?.has(origin)) return undefined;
  const page = /^https?:\/\/([^/@]*)$/.exec(origin)?.[1];
  // guard: http-origin
  return page !== undefined && isOfThisMachine(page) ? undefined : 403;
}

function isOfThisMachine(authority: string): boolean {
  return isLoopback(authority.replace(/:\d+$/, "").toLowerCase());
}
