/**
 * The hub's part of the entry of a cloud server: the address of the server, and its headers. Clients
 * never see it.
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
  /** The headers. `${NAME}` is replaced by a key of the caller. */
  readonly headers: Readonly<Record<string, string>>;
  /** The names of the keys, by their names in a request. */
  readonly keys: ReadonlyMap<string, string>;
}

const HEADER = /^[A-Za-z][A-Za-z0-9-]{0,63}$/;
/** Headers that frame a message, or that belong to the protocol. */
const OURS =
  /^(host|connection|content-.*|transfer-encoding|upgrade|te|trailer|accept|mcp-.*|cookie|forwarded|x-forwarded-.*|proxy-.*|keep-alive)$/i;
const REFERENCE = /\$\{(\w+)\}/g;
const LONGEST = 2_000;

/** Returns the server of an entry, or a text with the reason if the entry has no valid one. */
export function upstreamOf(manifest: JsonObject): Upstream | string {
  const { fqdn, type, url, headers = {}, env_required: env = [] } = manifest;
  if (!publishedKind(type)?.isInCloud) return "it does not run in the cloud";
  const address = typeof url === "string" && url.length <= LONGEST ? URL.parse(url) : null;
  const isPlain = address !== null && /^https?:$/.test(address.protocol) &&
    address.username === "" && address.password === "" && !address.href.includes("#");
  if (!isPlain) return "its url is no address of a server";
  const names = Array.isArray(env) ? env.map(textOf) : [];
  const keys = new Map(names.map((name) => [`x-pml-key-${name}`.toLowerCase(), name]));
  if (keys.size < names.length) return "two names of env_required differ in case alone";
  if (!isObject(headers)) return "its headers are no object";
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADER.test(name) || OURS.test(name)) {
      return `it may not set the header ${name.slice(0, 64)}`;
    }
    if (typeof value !== "string" || !/^[\x20-\x7e]{1,1000}$/.test(value)) {
      return `the header ${name} has another value than a line of text`;
    }
    const unknown = [...value.matchAll(REFERENCE)].find(([, each = ""]) => !names.includes(each));
    if (unknown !== undefined) {
      return `the header ${name} wants ${unknown[0]}, which is not asked for`;
    }
  }
  const templates = headers as Readonly<Record<string, string>>; // each value was checked
  return { name: textOf(fqdn), url: address.href, headers: templates, keys };
}

/** Returns the headers for a request, with the keys that came with it and no others. */
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
      const missing = [...value.matchAll(REFERENCE)].some(([, each = ""]) => !values.has(each));
      // Keys come with calls only, so earlier requests are sent without them.
      if (missing) return [];
      return [[name, value.replace(REFERENCE, (_, each) => values.get(each) ?? "")] as const];
    }),
  );
}

/**
 * Returns a manifest as clients get it: without the hub's part, and with the host, the names of the
 * headers and the hash that an approval covers.
 */
export function forClients(manifest: JsonObject): JsonObject {
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
