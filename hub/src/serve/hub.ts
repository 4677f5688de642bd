/**
 * Listens for the clients of a hub.
 *
 * @module
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import {
  errorResponse,
  listen,
  type Listener,
  refusedSender,
  type Signer,
} from "@casys/pml/registry";
import { openMcp } from "../mcp/mcp.ts";
import { openProxy } from "../mcp/proxy.ts";
import type { HubStore } from "../store/store.ts";
import { Busy, type HubResponse, isGone, OpenBodies, requestOf, send } from "../http/exchange.ts";
import { openWriting } from "../write/write.ts";
import { observer, type RequestRecord } from "./metrics.ts";
import { ClientKeys } from "./_client_keys.ts";
import { AnswerCache } from "./_answer_cache.ts";
import { respond } from "./routes.ts";

/** Options of `openHub()`. */
export interface HubOptions {
  readonly store: HubStore;
  readonly host: string;
  /** The port; 0 takes a free one. */
  readonly port: number;
  /** The URL that clients configure, if the hub is behind a proxy. */
  readonly publicUrl?: string | undefined;
  readonly signer?: Signer | undefined;
  /** Whether new versions wait for the operator. */
  readonly isModerated?: boolean;
  /** Whether clients need keys to read. */
  readonly needsClientKeys?: boolean;
  /** Hosts, with their ports, of servers behind this hub that may be in a private network. */
  readonly privateHosts?: ReadonlySet<string>;
  /** How many changes each key may make a minute. */
  readonly perMinute?: number;
  readonly warn: (message: string) => void;
  /** Takes each answered request, for metrics and logs. */
  readonly observe?: ((request: RequestRecord) => void) | undefined;
}

/** A hub that listens. */
export interface Hub extends Listener {
  /** The URL that clients configure. */
  readonly url: string;
  /** Finishes the open requests, for at most this many milliseconds, and accepts no others. */
  stop(ms: number): Promise<void>;
}

const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];
const PER_MINUTE = 60;
const SILENT_MS = 60_000;
/** For the metrics only: nginx uses 499, too, for a client that closed the connection. */
const GONE = errorResponse(499, "gone", { message: "The client has gone" });
const SLOW = errorResponse(408, "slow", { message: "The body took too long" });
const BUSY = errorResponse(503, "busy", {
  message: "This hub reads as many large bodies as it can",
  headers: { "retry-after": "1" },
});
const FAILED = errorResponse(500, "failed", { message: "The registry could not answer" });

/** Returns the answer to a request whose body did not arrive completely; undefined for others. */
function answerToUnread(error: unknown, request: IncomingMessage): HubResponse | undefined {
  if (Object(error).code === "ERR_HTTP_REQUEST_TIMEOUT") return SLOW;
  return isGone(request) ? GONE : undefined;
}

/** Starts a hub that listens until it is disposed. The store stays open. */
export async function openHub(options: HubOptions): Promise<Hub> {
  const { store, publicUrl, signer, warn, observe, privateHosts = new Set() } = options;
  const { isModerated = false, perMinute = PER_MINUTE } = options;
  let [isStopping, isLocal] = [false, true];
  const address = Promise.withResolvers<string>();
  const hosts = new Set(publicUrl === undefined ? [] : [new URL(publicUrl).host]);
  const write = openWriting({
    ...{ desk: store.desk, url: () => address.promise, isStopping: () => isStopping },
    ...{ isModerated, perMinute, warn },
  });
  const cache = new AnswerCache(() => store.stamp());
  const clientKeys = options.needsClientKeys === true ? new ClientKeys(store.desk) : undefined;
  const [mcp, proxy] = [openMcp(store), openProxy({ store, privateHosts })];
  const bodies = new OpenBodies();
  const respondTo = async (
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<HubResponse> => {
    const status = isLocal ? refusedSender(request, { hosts }) : undefined;
    if (status !== undefined) return FOREIGN(status);
    const url = await address.promise;
    return await respond(requestOf(request, response), {
      ...{ store, mcp, cache, proxy: proxy.pass, write, bodies, clientKeys, url },
      publicKey: signer?.publicKey,
      sign: signer &&
        (({ manifest, created }) => signer.sign(manifest, { registry: url, issued: created })),
      isStopping: () => isStopping,
    });
  };
  const onError = errorHandler(warn);
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const report = observer(request);
    const recover = (error: unknown) => answerToUnread(error, request) ?? onError(error);
    respondTo(request, response).catch(recover).then(async (reply) => {
      await send(response, reply, request);
      observe?.(report(reply.status, reply instanceof Response ? 0 : reply.body?.length ?? 0));
    }).catch(onError);
  };
  const listener = await listen({ ...options, what: "a hub", silentMs: SILENT_MS, answer });
  ({ isLocal } = listener);
  const { host, port } = new URL(listener.origin);
  for (const name of LOOPBACK) hosts.add(`${name}:${port}`).add(name);
  hosts.add(host);
  const url = `${listener.origin}/mcp`;
  address.resolve(publicUrl ?? url);
  return {
    ...listener,
    url,
    [Symbol.asyncDispose]: async () => {
      clientKeys?.[Symbol.dispose]();
      proxy[Symbol.dispose]();
      await listener[Symbol.asyncDispose]();
    },
    stop: async (ms) => {
      isStopping = true;
      await listener.drain(ms);
    },
  };
}

/** Returns a function that turns an error of a handler into an answer, and logs unexpected errors. */
function errorHandler(warn: HubOptions["warn"]): (error: unknown) => HubResponse {
  return (error) => {
    if (error instanceof Busy) return BUSY;
    warn(`Cannot answer a request: ${error instanceof Error ? error.message : error}`);
    return FAILED;
  };
}

const FOREIGN = (status: 400 | 403) =>
  errorResponse(status, "forbidden", { message: "This registry answers to this machine only" });
