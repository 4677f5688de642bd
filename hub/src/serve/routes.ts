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
import { PROXY_PATH, type Proxying } from "../mcp/proxy.ts";
import { forClients } from "../mcp/upstream.ts";
import { page, programPath } from "../page/page.ts";
import type { HubStore, StoredEntry } from "../store/store.ts";
import type { HubRequest, HubResponse, OpenBodies } from "../http/exchange.ts";
import type { Writing } from "../write/write.ts";
import type { ClientKeys } from "./_client_keys.ts";
import { countNames } from "./metrics.ts";
import type { AnswerCache } from "./_answer_cache.ts";
import { official, OFFICIAL_PATH, problem } from "./_official.ts";

/** The collaborators of the routes. */
export interface RouteOptions {
  readonly store: HubStore;
  /** Signs entries, if there is a key. */
  readonly sign?: ((entry: StoredEntry) => ReturnType<Signer["sign"]>) | undefined;
  /** Answers MCP. */
  readonly mcp: Mcp;
  /** Passes requests on to servers behind the hub. */
  readonly proxy: Proxying["pass"];
  /** Answers publishers. */
  readonly write: Writing;
  /** Reads the bodies of all others. */
  readonly bodies: OpenBodies;
  /** Requires keys of clients; undefined for a hub that everybody may read. */
  readonly clientKeys: ClientKeys | undefined;
  /** Cached answers to reading requests. */
  readonly cache: AnswerCache;
  /** Whether the hub is about to stop, and wants no more requests. */
  readonly isStopping: () => boolean;
  /** The URL that clients configure, and the key that they pin. */
  readonly url: string;
  readonly publicKey: string | undefined;
}

const QUERY_MAX = 500;
/** The maximum number of cloud servers that a client of PML reads. */
const CLOUD_MAX = 5_000;

/** Answers a request. Publishers use another kind of key; health checks need none. */
export async function respond(request: HubRequest, of: RouteOptions): Promise<HubResponse> {
  const { method, target } = request;
  const options = { ...of, store: readable(of.store) };
  const [path = ""] = target.split("?", 1);
  const isOpenEnded = method === "POST" && path === "/mcp" || path.startsWith(PROXY_PATH);
  const isRead = method === "GET" || method === "HEAD";
  if (!isOpenEnded && !isRead) {
    return await options.write(request) ?? await answer(request, signing(options));
  }
  const answering = (inner: HubRequest) =>
    isOpenEnded ? passed(inner, { path, of }) : read(inner, { path, options });
  const isHealth = path === "/health" || path === "/ready";
  return of.clientKeys === undefined || isHealth
    ? await answering(request)
    : await of.clientKeys.guard(request, { isOpenEnded, answer: answering });
}

/** Answers a request of MCP, to the hub itself or to a server behind it. */
async function passed(
  request: HubRequest,
  { path, of: { mcp, proxy, bodies } }: { readonly path: string; readonly of: RouteOptions },
): Promise<HubResponse> {
  return await (path.startsWith(PROXY_PATH) ? proxy : mcp)(bodies.of(request));
}

/** Answers a reader. */
async function read(
  request: HubRequest,
  { path, options }: { readonly path: string; readonly options: Reading },
): Promise<HubResponse> {
  const store = signing(options);
  if (hasNul(request.target)) return badQuery(path, "a value of the query has the character NUL");
  const pageAnswer = await page(request, {
    ...options,
    needsKey: options.clientKeys !== undefined,
  });
  if (pageAnswer !== undefined) return pageAnswer;
  if (isLong(request.target)) {
    return badQuery(path, `a value of the query has more than ${QUERY_MAX} characters`);
  }
  if (path.startsWith(OFFICIAL_PATH)) return await official(request, options.store);
  switch (path) {
    case "/health":
      return conditional(json({ status: "ok" }), request);
    case "/ready":
      return conditional(await ready(options), request);
    case "/mcp/routing":
      return conditional(json({ cloud: await options.store.cloudNames(CLOUD_MAX) }), request);
    default:
      return await options.cache.to(
        request,
        async () => await answer({ ...request, target: programPath(request.target) }, store),
      );
  }
}

/** The part of the store that reading requests use. */
type Readable = Omit<
  HubStore,
  "desk" | "add" | "tag" | "rows" | "stamp" | typeof Symbol.asyncDispose
>;

/** Returns a store whose manifests lack the members that only the hub may read. */
function readable(store: HubStore): Readable {
  const cleaned = <T extends StoredEntry>(entry: T): T => ({
    ...entry,
    manifest: forClients(entry.manifest),
  });
  return {
    entry: async (fqdn, version) => {
      const entry = await store.entry(fqdn, version);
      return entry && cleaned(entry);
    },
    page: async (query) => (await store.page(query)).map(cleaned),
    latest: async (limit) => (await store.latest(limit)).map(cleaned),
    versions: (fqdn) => store.versions(fqdn),
    dates: (fqdn) => store.dates(fqdn),
    cloudNames: (limit) => store.cloudNames(limit),
    size: () => store.size(),
    related: (tool, limit) => store.related(tool, limit),
  };
}

/** The collaborators of the routes for readers. */
type Reading = Omit<RouteOptions, "store"> & { readonly store: Readable };

/** Returns the store with signed manifests, if there is a key. */
function signing({ store, sign }: Reading): Pick<HubStore, "entry" | "page"> {
  if (sign === undefined) return store;
  return {
    page: store.page,
    entry: async (fqdn, version) => {
      const entry = await store.entry(fqdn, version);
      return entry && { ...entry, manifest: sign(entry) };
    },
  };
}

function isLong(target: string): boolean {
  return valuesIn(target).some((value) => value.length > QUERY_MAX);
}

/** Returns whether a query has a character that no store can search. */
function hasNul(target: string): boolean {
  return valuesIn(target).some((value) => value.includes("\0"));
}

function valuesIn(target: string): readonly string[] {
  return [...new URLSearchParams(target.split(/\?(.*)/s)[1] ?? "").values()];
}

function badQuery(path: string, message: string): RegistryResponse {
  return path.startsWith(OFFICIAL_PATH)
    ? problem(400, message)
    : errorResponse(400, "bad_request", { message });
}

async function ready({ store, isStopping }: Reading): Promise<RegistryResponse> {
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
