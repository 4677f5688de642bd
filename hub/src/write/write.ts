/**
 * Answers the requests of publishers: new versions, yanked versions and tags.
 *
 * @module
 */

import {
  BUILTIN_NAMES,
  entryName,
  errorResponse,
  fqdnOf,
  isObject,
  isVersion,
  quoted,
  type RegistryResponse,
} from "@casys/pml/registry";
import type { HubRequest } from "../http/exchange.ts";
import { shapeOf, shapesLike } from "../store/namespace.ts";
import type { Shares, StoreAdmin } from "../store/store.ts";
import { bearerOf, keyHashOf } from "./key.ts";
import { Lanes } from "./_lanes.ts";
import { InvalidPublication, parseBody, parsePublication, type Target } from "./_offer.ts";
import { refusalResponse } from "./_refused.ts";
import { findInvisible } from "./_look_alikes.ts";

/** Options of `openWriting()`. */
export interface WriteOptions {
  readonly admin: StoreAdmin;
  /** The URL that clients configure. */
  readonly url: () => Promise<string>;
  /** Whether new versions wait for the operator. */
  readonly isModerated: boolean;
  /** The maximum number of changes per minute and key. */
  readonly perMinute: number;
  readonly isStopping: () => boolean;
  readonly warn: (message: string) => void;
}

/** Answers the request of a publisher. Returns undefined for other requests. */
export type Writing = (request: HubRequest) => Promise<RegistryResponse | undefined>;

/** The change that a request asks for. `name` is still URL-encoded. */
type PublisherChange =
  | { readonly what: "publish"; readonly name: string }
  | { readonly what: "yank" | "unyank"; readonly name: string }
  | { readonly what: "tag" | "untag"; readonly name: string; readonly tag: string };

/** A request with the hash of its key. */
interface KeyedRequest {
  readonly request: HubRequest;
  readonly keyHash: string;
}

const SHARES: Shares = { versions: 1_000, names: 10_000, waiting: 100 };
/** The maximum number of bytes of a publication: code and manifest, escaped as JSON. */
const MAX_BODY = 8_000_000;
const MAX_SMALL_BODY = 10_000;
const MAX_REASON = 300;
const JSON_TYPE = /^application\/json(?:\s*;\s*charset="?utf-8"?)?$/i;
const VERSION = /^\d+\.\d+(\.\d+)?([-+][0-9A-Za-z.+-]+)?$/;
const PATHS: readonly (readonly [method: string, path: RegExp, what: PublisherChange["what"]])[] = [
  ["PUT", /^\/mcp\/([^/]+)$/, "publish"],
  ["POST", /^\/mcp\/([^/]+)\/yank$/, "yank"],
  ["POST", /^\/mcp\/([^/]+)\/unyank$/, "unyank"],
  ["PUT", /^\/mcp\/([^/]+)\/tags\/([^/]+)$/, "tag"],
  ["DELETE", /^\/mcp\/([^/]+)\/tags\/([^/]+)$/, "untag"],
];

/** Returns the handler of publishers' requests. */
export function openWriting(options: WriteOptions): Writing {
  const lanes = new Lanes();
  return async (request) => {
    const change = parseChange(request);
    if (change === undefined) return undefined;
    if (options.isStopping()) return retryLater("stopping", { message: "This hub is stopping" });
    const keyHash = keyHashOf(bearerOf(request.headers.authorization), "publisher");
    if (keyHash === undefined) return refusalResponse({ why: "key" });
    try {
      const refusal = await options.admin.takeTurn(keyHash, options.perMinute);
      if (refusal !== undefined) return refusalResponse(refusal);
      using lane = lanes.take(keyHash);
      if (lane === undefined) {
        return retryLater("busy", { message: "This hub is reading other uploads; try again" });
      }
      return await makeChange(change, { request, keyHash }, options);
    } catch (error) {
      if (error instanceof InvalidPublication) return invalidEntry(change, error);
      if (request.isGone()) throw error;
      options.warn(`Cannot ${change.what}: ${error instanceof Error ? error.message : error}`);
      const message = "The store of this hub failed. Send the same request again later";
      return retryLater("not_kept", { message, seconds: 2 });
    }
  };
}

async function makeChange(
  change: PublisherChange,
  keyed: KeyedRequest,
  options: WriteOptions,
): Promise<RegistryResponse> {
  const { admin } = options;
  const target = targetOf(change);
  if (change.what === "publish") return await publish(target, keyed, options);
  const { request, keyHash } = keyed;
  const fqdn = entryName(target);
  if (change.what === "tag" || change.what === "untag") {
    const { tag } = change;
    // Users could mistake a tag that looks like a version for the version.
    if (!isVersion(tag) || VERSION.test(tag)) {
      throw new InvalidPublication(`the tag ${quoted(tag)} is not a word such as "beta"`);
    }
    const version = change.what === "untag"
      ? undefined
      : readText(await readMembers(request), "version");
    const refusal = await admin.setTag({ fqdn, tag, keyHash }, version);
    if (refusal !== undefined) return refusalResponse(refusal, { fqdn, version, tag });
    return json(200, { fqdn, tags: await admin.tagsOf(fqdn) });
  }
  const isYanked = change.what === "yank";
  const reason = isYanked ? readReason(await readMembers(request)) : undefined;
  const { version } = target;
  const refusal = await admin.yank({ fqdn, version, keyHash }, reason);
  if (refusal !== undefined) return refusalResponse(refusal, { fqdn, version });
  return json(200, { fqdn, version, yanked: isYanked });
}

async function publish(
  target: Target,
  { request, keyHash }: KeyedRequest,
  { admin, url, isModerated }: WriteOptions,
): Promise<RegistryResponse> {
  if (!JSON_TYPE.test(request.headers["content-type"] ?? "")) {
    return errorResponse(415, "unsupported", { message: "Send content-type: application/json" });
  }
  const body = await request.body(MAX_BODY);
  if (body === undefined) {
    throw new InvalidPublication(`the body has more than ${MAX_BODY} bytes`, 413);
  }
  const registry = await url();
  const offered = await parsePublication(body, { target, registry });
  const { fqdn, version } = offered;
  const builtin = builtinLike(fqdn);
  const shares = SHARES;
  const result = builtin === undefined
    ? await admin.publish({ offered, keyHash, isModerated, shares })
    : { why: "look_alike", namespace: builtin } as const;
  if ("why" in result) return refusalResponse(result, { fqdn, version });
  const { state, isNew } = result;
  const { integrity } = offered.manifest;
  const answer = { fqdn, version, ...integrity !== undefined && { integrity }, state };
  return json(isNew ? 201 : 200, answer, { location: `${registry}/${fqdn}@${version}` });
}

/** Returns the name of the built-in server that a name looks like. */
function builtinLike(fqdn: string): string | undefined {
  const shapes = new Set(shapesLike(fqdn));
  return [...BUILTIN_NAMES].find((name) => shapes.has(shapeOf(name)));
}

function parseChange({ method, target }: HubRequest): PublisherChange | undefined {
  const [path = ""] = target.split("?", 1);
  for (const [pathMethod, pattern, what] of PATHS) {
    const [, name, tag] = pathMethod === method && pattern.exec(path) || [];
    if (name === undefined) continue;
    if (what === "tag" || what === "untag") return { what, name, tag: decode(tag ?? "") };
    return { what, name };
  }
  return undefined;
}

/** Returns the name and the version in a path. Throws `InvalidPublication` if one is invalid. */
function targetOf({ what, name }: PublisherChange): Target {
  const target = fqdnOf(decode(name));
  if (target === undefined) {
    throw new InvalidPublication("it is not the name of an entry in lower case");
  }
  const { version = "" } = target;
  if (what === "tag" || what === "untag") {
    if (target.version === undefined) return { ...target, version };
    throw new InvalidPublication("a tag belongs to a name without a version");
  }
  if (VERSION.test(version)) return { ...target, version };
  throw new InvalidPublication(`its version is ${quoted(version)}; use a version such as 1.2.0`);
}

async function readMembers(request: HubRequest): Promise<Readonly<Record<string, unknown>>> {
  const body = await request.body(MAX_SMALL_BODY);
  if (body === undefined) {
    throw new InvalidPublication(`the body has more than ${MAX_SMALL_BODY} bytes`, 413);
  }
  if (body.length === 0) return {};
  const value = parseBody(body);
  if (isObject(value)) return value;
  throw new InvalidPublication("the body is not a JSON object");
}

function readText(members: Readonly<Record<string, unknown>>, name: string): string {
  const text = members[name];
  if (typeof text === "string") return text;
  throw new InvalidPublication(`the body has no string ${quoted(name)}`);
}

function readReason(members: Readonly<Record<string, unknown>>): string {
  const reason = members.reason ?? "";
  const isShort = typeof reason === "string" && reason.length <= MAX_REASON &&
    !/[\n\t]/.test(reason) && findInvisible(reason) === undefined;
  if (isShort) return reason;
  throw new InvalidPublication(
    `the reason is not one line of at most ${MAX_REASON} visible characters`,
  );
}

function invalidEntry(
  change: PublisherChange,
  { message, status }: InvalidPublication,
): RegistryResponse {
  const name = quoted(decode(change.name));
  return errorResponse(status, status === 413 ? "too_large" : "invalid_entry", {
    message: `Cannot ${change.what} ${name}: ${message}`,
  });
}

/** Returns a response with status 503, after which the client may send the request again. */
function retryLater(
  error: "stopping" | "busy" | "not_kept",
  { message, seconds = 1 }: { readonly message: string; readonly seconds?: number },
): RegistryResponse {
  return errorResponse(503, error, { message, headers: { "retry-after": String(seconds) } });
}

function json(
  status: number,
  value: object,
  headers: RegistryResponse["headers"] = {},
): RegistryResponse {
  const body = new TextEncoder().encode(JSON.stringify(value));
  const length = String(body.length);
  const type = "application/json";
  return { status, headers: { "content-type": type, "content-length": length, ...headers }, body };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // not a valid name, which the caller reports
  }
}
