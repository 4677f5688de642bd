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
import { BodyLimiter, Busy, type HubResponse, isGone, requestOf, send } from "../http/exchange.ts";
import { openWriting } from "../write/write.ts";
import { beginRecord, type RequestRecord } from "./metrics.ts";
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
  /** The hosts (with ports) in private networks to which this hub may pass requests on. */
  readonly privateHosts?: ReadonlySet<string>;
  /** The maximum number of changes per minute and key; 60 by default. */
  readonly perMinute?: number;
  readonly warn: (message: string) => void;
  /** Called with each answered request, for metrics and logs. */
  readonly observe?: ((request: RequestRecord) => void) | undefined;
}

/** A running hub. */
export interface Hub extends Listener {
  /** The URL that clients configure. */
  readonly url: string;
  /** Accepts no more requests, and waits at most `ms` milliseconds for the open ones. */
  stop(ms: number): Promise<void>;
}

const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];
const PER_MINUTE = 60;
/** A connection that is silent for this long is closed. */
const SILENT_MS = 60_000;
/** Status 499 is for the metrics only; nginx uses it too when a client closes the connection. */
const GONE = errorResponse(499, "gone", { message: "The client closed the connection" });
const SLOW = errorResponse(408, "slow", { message: "The body took too long" });
const BUSY = errorResponse(503, "busy", {
  message: "This hub already reads its maximum number of large bodies",
  headers: { "retry-after": "1" },
});
const FAILED = errorResponse(500, "failed", { message: "The registry could not answer" });

/** Returns the answer if an error means that the body did not arrive completely. */
function answerToUnread(error: unknown, request: IncomingMessage): HubResponse | undefined {
  if (Object(error).code === "ERR_HTTP_REQUEST_TIMEOUT") return SLOW;
  return isGone(request) ? GONE : undefined;
}

/** Starts a hub. It listens until the caller disposes it, and does not close the store. */
export async function openHub(options: HubOptions): Promise<Hub> {
  const { store, publicUrl, signer, warn, observe, privateHosts = new Set() } = options;
  const { isModerated = false, perMinute = PER_MINUTE } = options;
  let [isStopping, isLocal] = [false, true];
  const address = Promise.withResolvers<string>();
  const hosts = new Set(publicUrl === undefined ? [] : [new URL(publicUrl).host]);
  const write = openWriting({
    ...{ admin: store.admin, url: () => address.promise, isStopping: () => isStopping },
    ...{ isModerated, perMinute, warn },
  });
  const cache = new AnswerCache(() => store.stamp());
  const clientKeys = options.needsClientKeys === true ? new ClientKeys(store.admin) : undefined;
  const [mcp, proxy] = [openMcp(store), openProxy({ store, privateHosts })];
  const bodies = new BodyLimiter();
  const respondTo = async (
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<HubResponse> => {
    const status = isLocal ? refusedSender(request, { hosts }) : undefined;
    if (status !== undefined) return forbidden(status);
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
    const report = beginRecord(request);
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

const forbidden = (status: 400 | 403) =>
  errorResponse(status, "forbidden", {
    message: "This registry accepts only requests from this machine",
  });
