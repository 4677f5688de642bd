/**
 * What a registry answers: a request comes in, an answer goes out, and nothing else happens.
 *
 * @module
 */

import { isObject, type Json, textOf } from "../core/json.ts";
import { integrityOf } from "./integrity.ts";
import { chosen, type Entry, type RegistryStore, type Versions } from "./registry_store.ts";

/** A request, as far as a registry looks at it. */
export interface Asked {
  readonly method: string;
  /** The path with its query, as it was sent. */
  readonly target: string;
  readonly accept?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
}

/** An answer; the headers are in the order that they are sent in. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Nothing for HEAD, whatever the headers say of its length. */
  readonly body: Uint8Array;
}

const JSON_TYPE = "application/json";
const CODE_TYPE = "application/typescript";
const FOR_EVER = "public, max-age=31536000, immutable";
const ASK_AGAIN = "no-cache";
const NAME_MAX = 200;
const PAGE = 100;
const PAGE_MAX = 1_000;
const NOTHING = new Uint8Array();

/** Answers a request to `/mcp` or `/mcp/NAME`, or without the `/mcp`. */
export async function answer(asked: Asked, shelf: RegistryStore): Promise<Answer> {
  const { method, target, accept = "" } = asked;
  const isRead = method === "GET" || method === "HEAD";
  // At the catalog this would be MCP, which a registry of files does not speak.
  const isStream = accept.trim().toLowerCase() === "text/event-stream";
  if (!isRead || isStream) {
    return failure(405, "method_not_allowed", {
      message: "This registry is read-only: GET and HEAD",
      headers: { allow: "GET, HEAD" },
    });
  }
  const [path = "", query = ""] = target.split(/\?(.*)/s);
  const name = decoded(path.replace(/^\/mcp(?=\/|$)/, "").slice(1));
  const made = name === ""
    ? await catalog(new URLSearchParams(query), shelf)
    : await entry(name, { accept, shelf });
  return conditional(made, asked);
}

async function entry(
  name: string,
  { accept, shelf }: { readonly accept: string; readonly shelf: RegistryStore },
): Promise<Answer> {
  const [, fqdn = "", version] = /^([^@]*)(?:@(.*))?$/s.exec(name) ?? [];
  const versions = await shelf.find(fqdn);
  const found = versions && chosen(versions, version);
  if (found === undefined) {
    return failure(404, "not_found", {
      message: `MCP '${name.slice(0, NAME_MAX)}' not in registry`,
    });
  }
  const { code, immutable, manifest } = found;
  const isCode = code !== undefined && !prefersJson(accept);
  return ok(isCode ? code : bytesOf(manifest), {
    "content-type": isCode ? CODE_TYPE : JSON_TYPE,
    "cache-control": immutable && found.version === version ? FOR_EVER : ASK_AGAIN,
    "vary": "accept",
    "x-pml-type": textOf(manifest.type),
    "x-pml-routing": textOf(manifest.routing),
    "x-pml-version": found.version,
  });
}

async function catalog(query: URLSearchParams, shelf: RegistryStore): Promise<Answer> {
  const limit = query.get("limit") ?? String(PAGE);
  if (!/^[1-9]\d{0,8}$/.test(limit)) {
    return failure(400, "bad_request", { message: "limit is no number above 0" });
  }
  const words = (query.get("q") ?? "").toLowerCase().split(/\s+/).filter((word) => word !== "");
  const after = query.get("cursor") ?? "";
  const withTools = query.get("include")?.split(",").includes("tools") === true;
  const entries = (await shelf.all()).flatMap((versions: Versions) => {
    const newest = chosen(versions, undefined);
    return newest !== undefined && newest.fqdn > after && fits(newest, words) ? [newest] : [];
  });
  const page = entries.slice(0, Math.min(Number(limit), PAGE_MAX));
  const items = page.map(({ fqdn, version, manifest }) => {
    const { type, description, routing, tools } = manifest;
    return { fqdn, type, version, description, routing, ...(withTools && { tools }) };
  });
  const last = page.at(-1)?.fqdn;
  const body = { items, next_cursor: page.length < entries.length && last ? last : null };
  return ok(bytesOf(body), { "content-type": JSON_TYPE, "cache-control": ASK_AGAIN });
}

function fits({ fqdn, manifest }: Entry, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const tools = Array.isArray(manifest.tools) ? manifest.tools as readonly Json[] : [];
  const names = tools.map((tool) => textOf(isObject(tool) ? tool.name : tool));
  const text = [fqdn, textOf(manifest.description), ...names].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

function ok(body: Uint8Array, headers: Answer["headers"]): Answer {
  const { "content-type": type = "", ...rest } = headers;
  const etag = `"${integrityOf(body)}"`;
  return {
    status: 200,
    headers: { "content-type": type, "content-length": String(body.length), etag, ...rest },
    body,
  };
}

/** Makes the answer to what cannot be answered. */
export function failure(
  status: number,
  error: string,
  { message, headers }: { readonly message: string; readonly headers?: Answer["headers"] },
): Answer {
  const body = bytesOf({ error, message });
  return {
    status,
    headers: { "content-type": JSON_TYPE, "content-length": String(body.length), ...headers },
    body,
  };
}

/** Sends nothing that the client has already, and no body where only the head was asked for. */
function conditional(made: Answer, { method, ifNoneMatch }: Asked): Answer {
  const { etag } = made.headers;
  const known = ifNoneMatch?.split(",").map((one) => one.trim().replace(/^W\//, "")) ?? [];
  if (etag !== undefined && (known.includes(etag) || known.includes("*"))) {
    const { "content-type": _, "content-length": __, ...headers } = made.headers;
    return { status: 304, headers, body: NOTHING };
  }
  return method === "HEAD" ? { ...made, body: NOTHING } : made;
}

/** Code unless JSON is wanted more: by its weight, and where that is the same by its name. */
function prefersJson(accept: string): boolean {
  const [json, code] = [JSON_TYPE, CODE_TYPE].map((type) => {
    const ranges = [type, "application/*", "*/*"];
    const weights = accept.toLowerCase().split(",").flatMap((part) => {
      const [range = "", ...parameters] = part.split(";").map((one) => one.trim());
      const at = ranges.indexOf(range);
      const q = parameters.find((one) => one.startsWith("q="))?.slice(2) ?? "1";
      return at < 0 ? [] : [{ at, q: Number(q) || 0 }];
    });
    // The closest range decides.
    const best = weights.sort((a, b) => a.at - b.at)[0];
    return best === undefined ? 0 : best.q * 10 - best.at;
  }) as [number, number];
  return json > code;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // it names nothing then
  }
}

function bytesOf(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}
