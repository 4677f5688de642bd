/**
 * Counts the answers of a hub for Prometheus. The counts contain nothing that a client sent.
 *
 * @module
 */

import type { IncomingMessage } from "node:http";
import { errorResponse, listen, type Listener, refusedSender } from "@casys/pml/registry";
import { PROXY_PATH } from "../mcp/proxy.ts";
import type { HubStore } from "../store/store.ts";
import { OFFICIAL_PATH } from "./_official.ts";

/** The kind of a request. Each has its own counts. */
export type Route =
  | "entry"
  | "catalog"
  | "routing"
  | "official"
  | "write"
  | "mcp"
  | "proxy"
  | "page"
  | "health"
  | "ready"
  | "other";

/** The facts about an answered request that are counted and logged. */
export interface RequestRecord {
  /** The id that a proxy sent, or a new one. */
  readonly id: string;
  readonly method: string;
  readonly route: Route;
  readonly status: number;
  readonly ms: number;
  /** The number of bytes of the body; 0 for a stream. */
  readonly bytes: number;
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
const ID = /^[0-9A-Fa-f-]{8,64}$/;
const ROUTES: Readonly<Record<string, Route>> = {
  "/health": "health",
  "/ready": "ready",
  "/mcp": "catalog",
  "/mcp/routing": "routing",
};
const PAGE = /^\/($|search$|entry\/)/;
/** The upper bounds of the histogram's buckets, in seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
/** A connection that is silent for this long is closed. */
const SILENT_MS = 60_000;
/** The time limit for counting the names in the store. */
const STORE_MS = 2_000;

/**
 * Starts the clock for a request. Returns a function that makes the record from the answer's status
 * and number of bytes.
 */
export function beginRecord(
  { method = "", url = "", headers }: IncomingMessage,
): (status: number, bytes: number) => RequestRecord {
  const start = performance.now();
  const header = headers["x-request-id"];
  const id = typeof header === "string" && ID.test(header) ? header : crypto.randomUUID();
  const knownMethod = METHODS.includes(method) ? method : "OTHER";
  const route = routeOf(knownMethod, url.split("?", 1)[0] ?? "");
  return (status, bytes) => ({
    id,
    method: knownMethod,
    route,
    status,
    bytes,
    ms: Math.round((performance.now() - start) * 1_000) / 1_000,
  });
}

function routeOf(method: string, path: string): Route {
  if (path.startsWith(PROXY_PATH)) return "proxy";
  if (path === "/mcp" && method === "POST") return "mcp";
  if (method !== "GET" && method !== "HEAD") return "write";
  if (Object.hasOwn(ROUTES, path)) return ROUTES[path] ?? "other";
  if (path.startsWith(OFFICIAL_PATH)) return "official";
  if (PAGE.test(path)) return "page";
  return path.startsWith("/mcp/") ? "entry" : "other";
}

/** The counts of one kind of request. */
interface Counts {
  bytes: number;
  seconds: number;
  readonly statuses: Map<number, number>;
  readonly buckets: number[];
}

/** Counts requests. */
export class Metrics {
  readonly #routes = new Map<Route, Counts>();

  /** Counts a request. */
  count({ route, status, ms, bytes }: RequestRecord): void {
    const counts = this.#routes.get(route) ??
      { bytes: 0, seconds: 0, statuses: new Map(), buckets: BUCKETS.map(() => 0) };
    this.#routes.set(route, counts);
    counts.statuses.set(status, (counts.statuses.get(status) ?? 0) + 1);
    counts.bytes += bytes;
    counts.seconds += ms / 1_000;
    const bucket = BUCKETS.findIndex((bound) => ms / 1_000 <= bound);
    if (bucket >= 0) counts.buckets[bucket] = (counts.buckets[bucket] ?? 0) + 1;
  }

  /**
   * Returns all metrics in the text format of Prometheus. `nameCount` is the number of names in the
   * store; undefined if the store does not answer.
   */
  text(nameCount: number | undefined): string {
    const routes = [...this.#routes].sort(([a], [b]) => a < b ? -1 : 1);
    const requests = routes.flatMap(([route, { statuses }]) =>
      [...statuses].sort(([a], [b]) => a - b).map(([status, count]) =>
        `pml_hub_requests_total{route="${route}",status="${status}"} ${count}`
      )
    );
    const bytes = routes.map(([route, { bytes }]) =>
      `pml_hub_response_bytes_total{route="${route}"} ${bytes}`
    );
    return [
      ...metric("pml_hub_requests_total", "counter", requests),
      ...metric("pml_hub_response_bytes_total", "counter", bytes),
      ...metric("pml_hub_request_seconds", "histogram", routes.flatMap(histogram)),
      ...metric("pml_hub_store_up", "gauge", [
        `pml_hub_store_up ${nameCount === undefined ? 0 : 1}`,
      ]),
      ...nameCount === undefined
        ? []
        : metric("pml_hub_names", "gauge", [`pml_hub_names ${nameCount}`]),
      ...metric("pml_hub_memory_bytes", "gauge", [
        `pml_hub_memory_bytes ${Deno.memoryUsage().rss}`,
      ]),
      "",
    ].join("\n");
  }
}

function metric(name: string, type: string, lines: readonly string[]): readonly string[] {
  return [`# TYPE ${name} ${type}`, ...lines];
}

function histogram([route, { buckets, seconds, statuses }]: [Route, Counts]): readonly string[] {
  const name = "pml_hub_request_seconds";
  const count = statuses.values().reduce((sum, statusCount) => sum + statusCount, 0);
  let sum = 0;
  const lines = BUCKETS.map((bound, index) => {
    sum += buckets[index] ?? 0;
    return `${name}_bucket{route="${route}",le="${bound}"} ${sum}`;
  });
  return [
    ...lines,
    `${name}_bucket{route="${route}",le="+Inf"} ${count}`,
    `${name}_sum{route="${route}"} ${seconds.toFixed(6)}`,
    `${name}_count{route="${route}"} ${count}`,
  ];
}

/**
 * Listens for Prometheus on another port, on the loopback interface only, so that a proxy in front of
 * the hub does not publish the metrics.
 */
export async function openMetrics(
  { metrics, store, port }: {
    readonly metrics: Metrics;
    readonly store: Pick<HubStore, "size">;
    readonly port: number;
  },
): Promise<Listener> {
  const hosts = new Set<string>();
  const listener = await listen({
    host: "127.0.0.1",
    port,
    what: "metrics",
    silentMs: SILENT_MS,
    answer: (request, response) => {
      const status = refusedSender(request, { hosts });
      const isForMetrics = request.method === "GET" && request.url === "/metrics";
      if (status !== undefined || !isForMetrics) {
        const refused = errorResponse(status ?? 404, "not_found", { message: "Send GET /metrics" });
        response.writeHead(refused.status, refused.headers).end(refused.body);
        return;
      }
      countNames(store).then((nameCount) => {
        const headers = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };
        response.writeHead(200, headers).end(metrics.text(nameCount));
      });
    },
  });
  const { host, port: actualPort } = new URL(listener.origin);
  hosts.add(host).add(`localhost:${actualPort}`);
  return listener;
}

/** Returns the number of names in the store; undefined if the store fails or exceeds `STORE_MS`. */
export async function countNames(store: Pick<HubStore, "size">): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), STORE_MS);
  try {
    return await Promise.race([store.size(), promise]);
  } catch {
    return undefined; // the store is down
  } finally {
    clearTimeout(timer);
  }
}
