/**
 * The reference registry: an HTTP server that answers from a store.
 *
 * @module
 */

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isLoopback } from "../core/address.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { answer, failure, type RegistryResponse } from "./answers.ts";
import type { RegistryStore } from "./registry_store.ts";

/** The options of `openReference`. */
export interface ReferenceOptions {
  readonly host: string;
  /** The port; 0 takes a free one. */
  readonly port: number;
  readonly onError: (error: Error) => void;
}

/** A registry that is listening. */
export interface ReferenceRegistry extends AsyncDisposable {
  /** The URL that clients configure. */
  readonly url: string;
  /** Whether only this machine can reach it. */
  readonly isLocal: boolean;
}

const SECOND = 1_000;
const CAPS = {
  connectionsCheckingInterval: SECOND,
  maxHeaderSize: 16_384,
  headersTimeout: 10 * SECOND,
  requestTimeout: 20 * SECOND,
};
const IDLE_MS = 60 * SECOND;
const CONNECTIONS_MAX = 256;

/** Starts a registry that listens until it is disposed. */
export async function openReference(
  store: RegistryStore,
  options: ReferenceOptions,
): Promise<ReferenceRegistry> {
  const { host, port, onError } = options;
  const isLocal = isLoopback(host);
  const server = createServer({ ...CAPS, keepAliveTimeout: IDLE_MS }, (request, response) => {
    const made = isLocal && !isOwn(request) ? Promise.resolve(FOREIGN) : answerOf(request, store);
    made.catch((error) => {
      onError(error);
      return FAILED;
    }).then((made) => send(response, made, request)).catch(onError);
  });
  server.maxConnections = CONNECTIONS_MAX;
  server.setTimeout(IDLE_MS);
  server.listen(port, host.replace(/^\[|\]$/g, ""));
  await once(server, "listening").catch((cause) => {
    const why = `${quoted(host)} cannot be listened at: ${cause.message}`;
    const hint = "Give another port with --port; 0 takes a free one";
    throw new PmlError("USAGE", `Cannot serve a registry: ${why}`, { hint, cause });
  });
  const named = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  return {
    url: `http://${named}:${(server.address() as AddressInfo).port}/mcp`,
    isLocal,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function answerOf(
  { method = "", url = "", headers }: IncomingMessage,
  store: RegistryStore,
): Promise<RegistryResponse> {
  const { accept, "if-none-match": ifNoneMatch } = headers;
  return answer({ method, target: url, accept, ifNoneMatch }, store);
}

/**
 * Returns whether a request comes from this machine. A web page can reach it through a host name of
 * its own, and must not read anything.
 */
function isOwn({ headers: { host = "", origin } }: IncomingMessage): boolean {
  const bare = (authority: string) => authority.replace(/:\d+$/, "").toLowerCase();
  return isLoopback(bare(host)) &&
    (origin === undefined || isLoopback(bare(origin.replace(/^https?:\/\//, ""))));
}

function send(
  response: ServerResponse,
  { status, headers, body }: RegistryResponse,
  request: IncomingMessage,
) {
  // The body of a refused request is not read.
  const isRead = request.method === "GET" || request.method === "HEAD";
  response.writeHead(status, isRead ? headers : { ...headers, connection: "close" });
  response.end(body);
}

const FOREIGN = failure(403, "forbidden", {
  message: "This registry answers to this machine only",
});
const FAILED = failure(500, "failed", { message: "The registry could not answer" });
