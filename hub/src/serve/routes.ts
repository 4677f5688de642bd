/**
 * The routes of a hub: the API of PML's registries, the API of the official MCP Registry, and the
 * health check.
 *
 * @module
 */

import {
  answer,
  conditional,
  errorResponse,
  ok,
  type RegistryResponse,
  type Signer,
} from "@casys/pml/registry";
import type { Mcp } from "../mcp/mcp.ts";
import { PROXY_PATH, type ServerProxy } from "../mcp/proxy.ts";
import { clientManifest } from "../mcp/upstream.ts";
import { page, programPath } from "../page/page.ts";
import type { HubStore, StoredEntry } from "../store/store.ts";
import type { BodyLimiter, HubRequest, HubResponse } from "../http/exchange.ts";
import type { Writing } from "../write/write.ts";
import type { ClientKeys } from "./_client_keys.ts";
import { countNames } from "./metrics.ts";
import type { AnswerCache } from "./_answer_cache.ts";
import { answerOfficial, OFFICIAL_PATH, problem } from "./_official.ts";

/** The collaborators of the routes. */
export interface RouteOptions {
  readonly store: HubStore;
  /** Signs entries, if there is a key. */
  readonly sign?: ((entry: StoredEntry) => ReturnType<Signer["sign"]>) | undefined;
  /** Answers MCP. */
  readonly mcp: Mcp;
  /** Passes requests on to servers behind the hub. */
  readonly proxy: ServerProxy["pass"];
  /** Answers publishers. */
  readonly write: Writing;
  /** Limits the bodies of requests to MCP, which need no key. */
  readonly bodies: BodyLimiter;
  /** Checks client keys; undefined for a hub that can be read without a key. */
  readonly clientKeys: ClientKeys | undefined;
  /** Cached answers to reading requests. */
  readonly cache: AnswerCache;
  /** Whether the hub is stopping, and accepts no more requests. */
  readonly isStopping: () => boolean;
  /** The URL that clients configure. */
  readonly url: string;
  /** The signing key that clients pin; undefined if entries are not signed. */
  readonly publicKey: string | undefined;
}

const QUERY_MAX = 500;
/** The maximum number of cloud servers that PML reads from one hub. */
const CLOUD_MAX = 5_000;

/** Answers a request. Only reading needs a client key: not publishing, not a health check. */
export async function respond(
  request: HubRequest,
  routeOptions: RouteOptions,
): Promise<HubResponse> {
  const { method, target } = request;
  const options = { ...routeOptions, store: forReaders(routeOptions.store) };
  const [path = ""] = target.split("?", 1);
  const isOpenEnded = method === "POST" && path === "/mcp" || path.startsWith(PROXY_PATH);
  const isRead = method === "GET" || method === "HEAD";
  if (!isOpenEnded && !isRead) {
    return await options.write(request) ?? await answer(request, withSignatures(options));
  }
  const handler = (inner: HubRequest) =>
    isOpenEnded
      ? answerMcp(inner, { path, options: routeOptions })
      : answerReader(inner, { path, options });
  const isHealth = path === "/health" || path === "/ready";
  return routeOptions.clientKeys === undefined || isHealth
    ? await handler(request)
    : await routeOptions.clientKeys.guard(request, { isOpenEnded, answer: handler });
}

/** Answers an MCP request to the hub itself or to a server behind it. */
async function answerMcp(
  request: HubRequest,
  { path, options: { mcp, proxy, bodies } }: {
    readonly path: string;
    readonly options: RouteOptions;
  },
): Promise<HubResponse> {
  return await (path.startsWith(PROXY_PATH) ? proxy : mcp)(bodies.limit(request));
}

/** Answers a GET or HEAD request. */
async function answerReader(
  request: HubRequest,
  { path, options }: { readonly path: string; readonly options: ReadOptions },
): Promise<HubResponse> {
  const store = withSignatures(options);
  if (hasNul(request.target)) return badQuery(path, "a query value contains the character NUL");
  const pageAnswer = await page(request, {
    ...options,
    needsKey: options.clientKeys !== undefined,
  });
  if (pageAnswer !== undefined) return pageAnswer;
  if (hasLongValue(request.target)) {
    return badQuery(path, `a query value has more than ${QUERY_MAX} characters`);
  }
  if (path.startsWith(OFFICIAL_PATH)) return await answerOfficial(request, options.store);
  switch (path) {
    case "/health":
      return conditional(json({ status: "ok" }), request);
    case "/ready":
      return conditional(await readiness(options), request);
    case "/mcp/routing":
      return conditional(json({ cloud: await options.store.cloudNames(CLOUD_MAX) }), request);
    default:
      return await options.cache.getOrMake(
        request,
        async () => await answer({ ...request, target: programPath(request.target) }, store),
      );
  }
}

/** The part of the store that readers' requests use. */
type ReadableStore = Omit<
  HubStore,
  "admin" | "add" | "tag" | "rows" | "stamp" | typeof Symbol.asyncDispose
>;

/** Returns the store without the members of manifests that only the hub may read. */
function forReaders(store: HubStore): ReadableStore {
  const withClientManifest = <T extends StoredEntry>(entry: T): T => ({
    ...entry,
    manifest: clientManifest(entry.manifest),
  });
  return {
    entry: async (fqdn, version) => {
      const entry = await store.entry(fqdn, version);
      return entry && withClientManifest(entry);
    },
    page: async (query) => (await store.page(query)).map(withClientManifest),
    latest: async (limit) => (await store.latest(limit)).map(withClientManifest),
    versions: (fqdn) => store.versions(fqdn),
    dates: (fqdn) => store.dates(fqdn),
    cloudNames: (limit) => store.cloudNames(limit),
    size: () => store.size(),
    related: (tool, limit) => store.related(tool, limit),
  };
}

/** The collaborators of the routes for readers. */
type ReadOptions = Omit<RouteOptions, "store"> & { readonly store: ReadableStore };

/** Returns the store with signed manifests, if there is a key. */
function withSignatures({ store, sign }: ReadOptions): Pick<HubStore, "entry" | "page"> {
  if (sign === undefined) return store;
  return {
    page: store.page,
    entry: async (fqdn, version) => {
      const entry = await store.entry(fqdn, version);
      return entry && { ...entry, manifest: sign(entry) };
    },
  };
}

function hasLongValue(target: string): boolean {
  return queryValues(target).some((value) => value.length > QUERY_MAX);
}

/** Returns whether a query contains NUL, which PostgreSQL cannot search. */
function hasNul(target: string): boolean {
  return queryValues(target).some((value) => value.includes("\0"));
}

function queryValues(target: string): readonly string[] {
  return [...new URLSearchParams(target.split(/\?(.*)/s)[1] ?? "").values()];
}

function badQuery(path: string, message: string): RegistryResponse {
  return path.startsWith(OFFICIAL_PATH)
    ? problem(400, message)
    : errorResponse(400, "bad_request", { message });
}

async function readiness({ store, isStopping }: ReadOptions): Promise<RegistryResponse> {
  if (isStopping()) return errorResponse(503, "stopping", { message: "This hub is stopping" });
  const names = await countNames(store);
  return names === undefined
    ? errorResponse(503, "not_ready", { message: "The store of this hub does not answer" })
    : json({ status: "ready", names });
}

function json(value: object): RegistryResponse {
  return ok(new TextEncoder().encode(JSON.stringify(value)), {
    "content-type": "application/json",
    "cache-control": "no-cache",
  });
}
