/**
 * Answers the API of the official MCP Registry (v0.1), so that its clients can use a hub.
 *
 * @module
 */

import { conditional, ok, type RegistryRequest, type RegistryResponse } from "@casys/pml/registry";
import type { HubStore, StoredEntry } from "../store/store.ts";
import { fqdnOfOfficial, serverJson } from "./_server_json.ts";

/** The beginning of all paths of this API. */
export const OFFICIAL_PATH = "/v0.1/";

const META_KEY = "io.modelcontextprotocol.registry/official";
const VERSIONS_PATH = /^\/v0\.1\/servers\/([^/]+)\/versions(?:\/([^/]+))?$/;
const DEFAULT_LIMIT = 30;
const MAX_LIMIT = 100;
const MAX_VERSIONS = 100;

/** Answers a request to a path of this API. */
export async function answerOfficial(
  request: RegistryRequest,
  store: OfficialStore,
): Promise<RegistryResponse> {
  const { pathname, searchParams } = new URL(request.target, "http://hub.invalid");
  if (pathname === "/v0.1/servers") {
    return conditional(await listServers(searchParams, store), request);
  }
  const [, name = "", version] = VERSIONS_PATH.exec(pathname) ?? [];
  const fqdn = fqdnOfOfficial(decode(name));
  const answer = fqdn === undefined
    ? undefined
    : version === undefined
    ? await versionsOf(fqdn, store)
    : await versionOf({ fqdn, version: decode(version) }, store);
  return conditional(answer ?? problem(404, "Server not found"), request);
}

/** The part of the store that this API reads. */
type OfficialStore = Pick<HubStore, "entry" | "page" | "versions">;

async function listServers(
  query: URLSearchParams,
  store: OfficialStore,
): Promise<RegistryResponse> {
  const limitText = query.get("limit") ?? String(DEFAULT_LIMIT);
  if (!/^[1-9]\d{0,8}$/.test(limitText)) {
    return problem(400, "limit must be a whole number above 0");
  }
  const limit = Math.min(Number(limitText), MAX_LIMIT);
  const search = (query.get("search") ?? "").toLowerCase().trim();
  // A name has a slash in this API, and a dot in the store.
  const word = search.replace(/^pml\//, "").replace("/", ".");
  const words = word === "" ? [] : [word];
  const entries = await store.page({ after: query.get("cursor") ?? "", words, limit });
  const page = entries.slice(0, limit);
  const version = query.get("version") ?? undefined;
  const lookups = page.map((newest) => requestedVersions(newest, { version, store }));
  const servers = (await Promise.all(lookups)).flat();
  const last = page.at(-1)?.fqdn;
  const next = entries.length > limit && last !== undefined ? { nextCursor: last } : {};
  return json({ servers, metadata: { count: servers.length, ...next } });
}

/** Returns the versions that a list shows of a name: the newest, the requested one, or all. */
async function requestedVersions(
  newest: StoredEntry,
  { version, store }: { readonly version: string | undefined; readonly store: OfficialStore },
): Promise<readonly object[]> {
  if (version === "latest") return serverJsonOf(newest, newest.version);
  if (version === undefined) return await allVersions(newest, store);
  const entry = await store.entry(newest.fqdn, version);
  return entry?.version === version ? serverJsonOf(entry, newest.version) : [];
}

async function allVersions(newest: StoredEntry, store: OfficialStore): Promise<readonly object[]> {
  const { fqdn } = newest;
  const versions = (await store.versions(fqdn)).slice(0, MAX_VERSIONS);
  const entries = await Promise.all(versions.map((version) => store.entry(fqdn, version)));
  return entries.flatMap((entry) => entry === undefined ? [] : serverJsonOf(entry, newest.version));
}

async function versionsOf(
  fqdn: string,
  store: OfficialStore,
): Promise<RegistryResponse | undefined> {
  const newest = await store.entry(fqdn, undefined);
  const servers = newest === undefined ? [] : await allVersions(newest, store);
  return servers.length === 0 ? undefined : json({ servers, metadata: { count: servers.length } });
}

async function versionOf(
  { fqdn, version }: { readonly fqdn: string; readonly version: string },
  store: OfficialStore,
): Promise<RegistryResponse | undefined> {
  const newest = await store.entry(fqdn, undefined);
  const isLatest = version === "latest";
  const entry = isLatest ? newest : await store.entry(fqdn, version);
  // This API does not resolve tags, but `store.entry()` does.
  if (entry === undefined || !isLatest && entry.version !== version) return undefined;
  const [server] = serverJsonOf(entry, newest?.version);
  return server && json(server);
}

/**
 * Returns a list with the version in the form of this API. The list is empty if the form cannot
 * describe how the version runs.
 */
function serverJsonOf(entry: StoredEntry, newest: string | undefined): readonly object[] {
  const server = serverJson(entry);
  if (server === undefined) return [];
  const created = entry.created.toISOString();
  const isLatest = entry.version === newest;
  const meta = { status: "active", publishedAt: created, updatedAt: created, isLatest };
  return [{ server, _meta: { [META_KEY]: meta } }];
}

function json(value: object): RegistryResponse {
  return ok(new TextEncoder().encode(JSON.stringify(value)), {
    "content-type": "application/json",
    "cache-control": "no-cache",
  });
}

/** Returns an error in the form of this API. */
export function problem(status: 400 | 404, detail: string): RegistryResponse {
  const title = status === 404 ? "Not Found" : "Bad Request";
  const body = new TextEncoder().encode(JSON.stringify({ title, status, detail }));
  const headers = {
    "content-type": "application/problem+json",
    "content-length": String(body.length),
  };
  return { status, headers, body };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return ""; // no entry has this name
  }
}
