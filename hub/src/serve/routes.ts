/**
 * What a hub answers: the contract of PML's registries, the API of the official MCP Registry, and
 * whether it is well.
 *
 * @module
 */

import {
  answer,
  conditional,
  failure,
  ok,
  type RegistryResponse,
  type Signer,
} from "@casys/pml/registry";
import type { HubStore, StoredEntry } from "../store/store.ts";
import type { HubRequest, HubResponse } from "../http/exchange.ts";
import type { Writing } from "../write/write.ts";
import { namesIn } from "./metrics.ts";
import { official, OFFICIAL_PATH, problem } from "./_official.ts";

/** What answers are made of. */
export interface RouteOptions {
  readonly store: HubStore;
  /** Signs entries, if there is a key. */
  readonly sign?: ((entry: StoredEntry) => ReturnType<Signer["sign"]>) | undefined;
  /** Answers publishers. */
  readonly write: Writing;
  /** Whether the hub is about to stop, and wants no more requests. */
  readonly isStopping: () => boolean;
}

const QUERY_MAX = 500;
/** What a client of PML reads of the list of cloud servers. */
const CLOUD_MAX = 5_000;

/** Answers a request. */
export async function respond(
  asked: HubRequest,
  options: RouteOptions,
): Promise<HubResponse> {
  const [path = ""] = asked.target.split("?", 1);
  const isRead = asked.method === "GET" || asked.method === "HEAD";
  const store = signing(options);
  if (!isRead) return await options.write(asked) ?? await answer(asked, store);
  if (isLong(asked.target)) return tooLong(path);
  if (path.startsWith(OFFICIAL_PATH)) return await official(asked, options.store);
  switch (path) {
    case "/health":
      return conditional(json({ status: "ok" }), asked);
    case "/ready":
      return conditional(await ready(options), asked);
    case "/mcp/routing":
      return conditional(json({ cloud: await options.store.cloudNames(CLOUD_MAX) }), asked);
    default:
      return await answer(asked, store);
  }
}

/** Returns the store with signed manifests, if there is a key. */
function signing({ store, sign }: RouteOptions): Pick<HubStore, "entry" | "page"> {
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
  const query = new URLSearchParams(target.split(/\?(.*)/s)[1] ?? "");
  return [...query.values()].some((value) => value.length > QUERY_MAX);
}

function tooLong(path: string): RegistryResponse {
  const message = `a value of the query has more than ${QUERY_MAX} characters`;
  return path.startsWith(OFFICIAL_PATH)
    ? problem(400, message)
    : failure(400, "bad_request", { message });
}

async function ready({ store, isStopping }: RouteOptions): Promise<RegistryResponse> {
  if (isStopping()) return failure(503, "stopping", { message: "This hub is stopping" });
  const names = await namesIn(store);
  return names === undefined
    ? failure(503, "not_ready", { message: "The store of this hub does not answer" })
    : json({ status: "ready", names });
}

function json(value: object): RegistryResponse {
  return ok(new TextEncoder().encode(JSON.stringify(value)), {
    "content-type": "application/json",
    "cache-control": "no-cache",
  });
}
