/**
 * Answers requests to a registry without side effects.
 *
 * @module
 */

import { decodePercents, textOf } from "../core/json.ts";
import { publishedKind } from "../servers/kinds.ts";
import { integrityOf } from "../core/hash.ts";
import type { RegistryStore } from "./registry_store.ts";

/** The parts of a request that a registry needs. */
export interface RegistryRequest {
  /** The method, in capitals. */
  readonly method: string;
  /** The path with its query, as the client sent it. */
  readonly target: string;
  /** The header `accept`. */
  readonly accept?: string | undefined;
  /** The header `if-none-match`. */
  readonly ifNoneMatch?: string | undefined;
}

/** A response. The headers are in the order in which they are sent. */
export interface RegistryResponse {
  /** The status code. */
  readonly status: number;
  /** The headers, by their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body; empty for HEAD, even if the headers give its length. */
  readonly body: Uint8Array;
}

const JSON_TYPE = "application/json";
const CODE_TYPE = "application/typescript";
const FOR_EVER = "public, max-age=31536000, immutable";
const ASK_AGAIN = "no-cache";
const NAME_MAX = 200;
/** The number of entries on a page of the catalog, by default and at most. */
const PAGE_SIZE = 100;
const PAGE_SIZE_MAX = 1_000;
const NOTHING = new Uint8Array();

/**
 * Answers a request to `/mcp` or `/mcp/NAME`; the `/mcp` is optional. An unknown name gets 404, a
 * wrong query 400, and a method other than GET and HEAD 405. Rejects only if the store does.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { answer, type RegistryStore } from "@casys/pml/registry";
 *
 * const manifest = { fqdn: "weather", version: "1.0.0", type: "http" };
 * const weather = { fqdn: "weather", version: "1.0.0", manifest, immutable: true };
 * const store: RegistryStore = {
 *   entry: (fqdn) => Promise.resolve(fqdn === "weather" ? weather : undefined),
 *   page: () => Promise.resolve([weather]),
 * };
 * const { status, body } = await answer({ method: "GET", target: "/mcp/weather" }, store);
 * assert.equal(status, 200);
 * assert.deepEqual(JSON.parse(new TextDecoder().decode(body)), manifest);
 * ```
 */
export async function answer(
  request: RegistryRequest,
  store: RegistryStore,
): Promise<RegistryResponse> {
  const { method, target, accept = "" } = request;
  const isRead = method === "GET" || method === "HEAD";
  // Only an MCP client accepts a stream, and this registry does not support MCP.
  const isStream = accept.trim().toLowerCase() === "text/event-stream";
  if (!isRead || isStream) {
    return errorResponse(405, "method_not_allowed", {
      message: "This registry is read-only: GET and HEAD",
      headers: { allow: "GET, HEAD" },
    });
  }
  const [path = "", query = ""] = target.split(/\?(.*)/s);
  const name = decodePercents(path.replace(/^\/mcp(?=\/|$)/, "").slice(1));
  const response = name === ""
    ? await catalog(new URLSearchParams(query), store)
    : await entry(name, { accept, store });
  return toConditionalResponse(response, request);
}

async function entry(
  name: string,
  { accept, store }: { readonly accept: string; readonly store: RegistryStore },
): Promise<RegistryResponse> {
  const [, fqdn = "", version] = /^([^@]*)(?:@(.*))?$/s.exec(name) ?? [];
  const match = await store.entry(fqdn, version);
  if (match === undefined) {
    return errorResponse(404, "not_found", {
      message: `MCP '${name.slice(0, NAME_MAX)}' not in registry`,
    });
  }
  const { code, immutable, manifest } = match;
  const isCode = code !== undefined && !prefersJson(accept);
  // The header `accept` of PML lists this type, so PML gets the content that it pins. The header of
  // an `import()` of Deno does not, so Deno gets a module that it can run.
  const isImported = isCode && publishedKind(manifest.type)?.onlyCalls === true &&
    !listsType(accept, CODE_TYPE);
  const body = !isCode
    ? bytesOf(manifest)
    : isImported
    ? (await import("./_capability_module.ts")).capabilityModule(code, manifest)
    : code;
  // A newer version of PML may create another module from the same content.
  const isFinal = immutable && match.version === version && !isImported;
  return okResponse(body, {
    "content-type": isCode ? CODE_TYPE : JSON_TYPE,
    "cache-control": isFinal ? FOR_EVER : ASK_AGAIN,
    "vary": "accept",
    "x-pml-type": textOf(manifest.type),
    "x-pml-routing": textOf(manifest.routing),
    "x-pml-version": match.version,
  });
}

async function catalog(query: URLSearchParams, store: RegistryStore): Promise<RegistryResponse> {
  const limit = query.get("limit") ?? String(PAGE_SIZE);
  if (!/^[1-9]\d{0,8}$/.test(limit)) {
    return errorResponse(400, "bad_request", { message: "limit must be a whole number above 0" });
  }
  const words = (query.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const after = query.get("cursor") ?? "";
  const withTools = query.get("include")?.split(",").includes("tools") === true;
  const most = Math.min(Number(limit), PAGE_SIZE_MAX);
  const entries = await store.page({ after, words, limit: most });
  const page = entries.slice(0, most);
  const items = page.map(({ fqdn, version, manifest }) => {
    const { type, description, routing, tools } = manifest;
    return { fqdn, type, version, description, routing, ...(withTools && { tools }) };
  });
  const last = page.at(-1)?.fqdn;
  const body = { items, next_cursor: page.length < entries.length && last ? last : null };
  return okResponse(bytesOf(body), { "content-type": JSON_TYPE, "cache-control": ASK_AGAIN });
}

/**
 * Returns the response with a body, its length, and its hash as `etag`.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { ok } from "@casys/pml/registry";
 *
 * const { status, headers } = ok(new TextEncoder().encode("{}"), {
 *   "content-type": "application/json",
 * });
 * assert.equal(status, 200);
 * assert.equal(headers["content-length"], "2");
 * ```
 */
export function okResponse(
  body: Uint8Array,
  headers: RegistryResponse["headers"],
): RegistryResponse {
  const { "content-type": type = "", ...rest } = headers;
  const etag = `"${integrityOf(body)}"`;
  return {
    status: 200,
    headers: { "content-type": type, "content-length": String(body.length), etag, ...rest },
    body,
  };
}

/**
 * Returns an error response. Its body is JSON with the members `error`, a code, and `message`.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { errorResponse } from "@casys/pml/registry";
 *
 * const { status, body } = errorResponse(404, "not_found", { message: "No such entry" });
 * assert.equal(status, 404);
 * assert.equal(JSON.parse(new TextDecoder().decode(body)).error, "not_found");
 * ```
 */
export function errorResponse(
  status: number,
  error: string,
  { message, headers }: {
    readonly message: string;
    readonly headers?: RegistryResponse["headers"];
  },
): RegistryResponse {
  const body = bytesOf({ error, message });
  return {
    status,
    headers: { "content-type": JSON_TYPE, "content-length": String(body.length), ...headers },
    body,
  };
}

/**
 * Returns a response without its body if the client has that body already (304) or sent HEAD, and
 * the same response otherwise.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { conditional, ok } from "@casys/pml/registry";
 *
 * const response = ok(new TextEncoder().encode("{}"), { "content-type": "application/json" });
 * const request = { method: "GET", target: "/mcp/weather", ifNoneMatch: response.headers.etag };
 * assert.equal(conditional(response, request).status, 304);
 * ```
 */
export function toConditionalResponse(
  response: RegistryResponse,
  { method, ifNoneMatch }: RegistryRequest,
): RegistryResponse {
  const { etag } = response.headers;
  const tags = ifNoneMatch?.split(",").map((one) => one.trim().replace(/^W\//, "")) ?? [];
  if (etag !== undefined && (tags.includes(etag) || tags.includes("*"))) {
    const { "content-type": _, "content-length": __, ...headers } = response.headers;
    return { status: 304, headers, body: NOTHING };
  }
  return method === "HEAD" ? { ...response, body: NOTHING } : response;
}

/** Returns whether `accept` names a type itself, and not only a range that includes it. */
function listsType(accept: string, type: string): boolean {
  return accept.toLowerCase().split(",").some((part) => part.split(";")[0]?.trim() === type);
}

/**
 * Returns whether the client prefers JSON to code, by the weights in `accept` and then by the
 * precision of its media ranges (RFC 9110 section 12.5.1).
 */
function prefersJson(accept: string): boolean {
  const [json, code] = [JSON_TYPE, CODE_TYPE].map((type) => {
    const ranges = [type, "application/*", "*/*"];
    const weights = accept.toLowerCase().split(",").flatMap((part) => {
      const [range = "", ...parameters] = part.split(";").map((one) => one.trim());
      const rank = ranges.indexOf(range);
      const q = parameters.find((one) => one.startsWith("q="))?.slice(2) ?? "1";
      return rank < 0 ? [] : [{ rank, q: Number(q) || 0 }];
    });
    // The most specific range decides.
    const best = weights.sort((a, b) => a.rank - b.rank)[0];
    return best === undefined ? 0 : best.q * 10 - best.rank;
  }) as [number, number];
  return json > code;
}

function bytesOf(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}
