/**
 * The private part of a cloud server's entry: the address of the server and its headers. Clients
 * never get it.
 *
 * @module
 */

import {
  canonicalHash,
  isObject,
  type JsonObject,
  publishedKind,
  textOf,
} from "@casys/pml/registry";

/** A server behind a hub. */
export interface Upstream {
  readonly name: string;
  readonly url: string;
  /** The headers for the server. `${NAME}` is replaced by a key of the caller. */
  readonly headers: Readonly<Record<string, string>>;
  /** The names of the caller's keys, by the request headers that contain them. */
  readonly keys: ReadonlyMap<string, string>;
}

const HEADER = /^[A-Za-z][A-Za-z0-9-]{0,63}$/;
/** Headers of HTTP connections and of MCP, which an entry may not set. */
const RESERVED_HEADERS =
  /^(host|connection|content-.*|transfer-encoding|upgrade|te|trailer|accept|mcp-.*|cookie|forwarded|x-forwarded-.*|proxy-.*|keep-alive)$/i;
const REFERENCE = /\$\{(\w+)\}/g;
const MAX_URL = 2_000;

/** Returns the server of an entry, or the reason why the entry has no valid server. */
export function upstreamOf(manifest: JsonObject): Upstream | string {
  const { fqdn, type, url, headers = {}, env_required: env = [] } = manifest;
  if (!publishedKind(type)?.isInCloud) return "it does not run in the cloud";
  const address = typeof url === "string" && url.length <= MAX_URL ? URL.parse(url) : null;
  const isServerUrl = address !== null && /^https?:$/.test(address.protocol) &&
    address.username === "" && address.password === "" && !address.href.includes("#");
  if (!isServerUrl) return "its url is not the address of a server";
  const names = Array.isArray(env) ? env.map(textOf) : [];
  const keys = new Map(names.map((name) => [`x-pml-key-${name}`.toLowerCase(), name]));
  if (keys.size < names.length) return "two names of env_required differ only in case";
  if (!isObject(headers)) return "its headers are not an object";
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADER.test(name) || RESERVED_HEADERS.test(name)) {
      return `it may not set the header ${name.slice(0, 64)}`;
    }
    if (typeof value !== "string" || !/^[\x20-\x7e]{1,1000}$/.test(value)) {
      return `the value of the header ${name} is not one line of ASCII text`;
    }
    const unknown = [...value.matchAll(REFERENCE)].find(([, key = ""]) => !names.includes(key));
    if (unknown !== undefined) {
      return `the header ${name} uses ${unknown[0]}, which is not in env_required`;
    }
  }
  const templates = headers as Readonly<Record<string, string>>; // each value was checked
  return { name: textOf(fqdn), url: address.href, headers: templates, keys };
}

/** Returns the headers for the server, with the keys in the caller's request. */
export function headersWith(
  { headers, keys }: Upstream,
  incoming: Readonly<Record<string, string | readonly string[] | undefined>>,
): Readonly<Record<string, string>> {
  const values = new Map(
    [...keys].flatMap(([header, name]) => {
      const value = incoming[header];
      return typeof value === "string" && value !== "" ? [[name, value] as const] : [];
    }),
  );
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      const isMissing = [...value.matchAll(REFERENCE)].some(([, key = ""]) => !values.has(key));
      // PML sends keys only with calls, so other requests are sent without these headers.
      if (isMissing) return [];
      return [[name, value.replace(REFERENCE, (_, key) => values.get(key) ?? "")] as const];
    }),
  );
}

/**
 * Returns a manifest for clients: without the address and headers of the server, but with its host,
 * the names of the headers and their hash, which an approval covers.
 */
export function clientManifest(manifest: JsonObject): JsonObject {
  if (!publishedKind(manifest.type)?.isInCloud) return manifest;
  const { url: _, headers: __, upstream: ___, ...rest } = manifest;
  const upstream = upstreamOf(manifest);
  if (typeof upstream === "string") return rest;
  const headers = Object.keys(upstream.headers).sort();
  return { ...rest, upstream: { host: hostOf(upstream), headers, hash: hashOf(upstream) } };
}

/** Returns the hash of a server's address and headers. */
export function hashOf({ url, headers }: Upstream): string {
  return canonicalHash({ url, headers });
}

function hostOf({ url }: Upstream): string {
  return new URL(url).host;
}
