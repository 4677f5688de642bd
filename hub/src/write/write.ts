/**
 * Takes what publishers send: new versions, yanked versions and tags.
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
import type { Desk, Shares } from "../store/store.ts";
import { bearerOf, keyHashOf } from "./key.ts";
import { Lanes } from "./_lanes.ts";
import { jsonOf, offeredIn, type Target, Unfit } from "./_offer.ts";
import { refused } from "./_refused.ts";
import { unseenIn } from "./_unseen.ts";

/** How publishers are served. */
export interface WriteOptions {
  readonly desk: Desk;
  /** The URL that clients configure. */
  readonly url: () => Promise<string>;
  /** Whether new versions wait for the operator. */
  readonly isModerated: boolean;
  /** How many changes a key may make a minute. */
  readonly perMinute: number;
  readonly isStopping: () => boolean;
  readonly warn: (message: string) => void;
}

/** Answers a request that changes something. Returns undefined for other requests. */
export type Writing = (request: HubRequest) => Promise<RegistryResponse | undefined>;

/** The subject of a change. */
type Work =
  | { readonly what: "publish"; readonly name: string }
  | { readonly what: "yank" | "unyank"; readonly name: string }
  | { readonly what: "tag" | "untag"; readonly name: string; readonly tag: string };

/** A change that came with a key that is known. */
interface Keyed {
  readonly request: HubRequest;
  readonly keyHash: string;
}

const SHARES: Shares = { versions: 1_000, names: 10_000, waiting: 100 };
/** The maximum number of bytes of a body: code and manifest, escaped as JSON. */
const BODY = 8_000_000;
const SMALL_BODY = 10_000;
const REASON = 300;
const JSON_TYPE = /^application\/json(?:\s*;\s*charset="?utf-8"?)?$/i;
const VERSION = /^\d+\.\d+(\.\d+)?([-+][0-9A-Za-z.+-]+)?$/;
const PATHS: readonly (readonly [method: string, path: RegExp, what: Work["what"]])[] = [
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
    const work = workOf(request);
    if (work === undefined) return undefined;
    if (options.isStopping()) return later("stopping", { message: "This hub is stopping" });
    const keyHash = keyHashOf(bearerOf(request.headers.authorization), "publisher");
    if (keyHash === undefined) return refused({ why: "key" });
    try {
      const refusal = await options.desk.takeTurn(keyHash, options.perMinute);
      if (refusal !== undefined) return refused(refusal);
      using lane = lanes.take(keyHash);
      if (lane === undefined) {
        return later("busy", { message: "This hub takes other uploads; try again" });
      }
      return await changed(work, { request, keyHash }, options);
    } catch (error) {
      if (error instanceof Unfit) return unfit(work, error);
      if (request.isGone()) throw error;
      options.warn(`Cannot ${work.what}: ${error instanceof Error ? error.message : error}`);
      const message = "The store of this hub does not take it now. Send the same again later";
      return later("not_kept", { message, seconds: 2 });
    }
  };
}

async function changed(
  work: Work,
  keyed: Keyed,
  options: WriteOptions,
): Promise<RegistryResponse> {
  const { desk } = options;
  const target = targetOf(work);
  if (work.what === "publish") return await publish(target, keyed, options);
  const { request, keyHash } = keyed;
  const fqdn = entryName(target);
  if (work.what === "tag" || work.what === "untag") {
    const { tag } = work;
    // A tag that looks like a version could be mistaken for one.
    if (!isVersion(tag) || VERSION.test(tag)) {
      throw new Unfit(`the tag ${quoted(tag)} is no word such as "beta"`);
    }
    const version = work.what === "untag" ? undefined : textIn(await membersOf(request), "version");
    const refusal = await desk.setTag({ fqdn, tag, keyHash }, version);
    if (refusal !== undefined) return refused(refusal, { fqdn, version, tag });
    return json(200, { fqdn, tags: await desk.tagsOf(fqdn) });
  }
  const isYanked = work.what === "yank";
  const reason = isYanked ? reasonIn(await membersOf(request)) : undefined;
  const { version } = target;
  const refusal = await desk.yank({ fqdn, version, keyHash }, reason);
  if (refusal !== undefined) return refused(refusal, { fqdn, version });
  return json(200, { fqdn, version, yanked: isYanked });
}

async function publish(
  target: Target,
  { request, keyHash }: Keyed,
  { desk, url, isModerated }: WriteOptions,
): Promise<RegistryResponse> {
  if (!JSON_TYPE.test(request.headers["content-type"] ?? "")) {
    return errorResponse(415, "unsupported", { message: "Send content-type: application/json" });
  }
  const body = await request.body(BODY);
  if (body === undefined) throw new Unfit(`the body has more than ${BODY} bytes`, 413);
  const registry = await url();
  const offered = await offeredIn(body, { target, registry });
  const { fqdn, version } = offered;
  const builtin = builtinLike(fqdn);
  const shares = SHARES;
  const result = builtin === undefined
    ? await desk.publish({ offered, keyHash, isModerated, shares })
    : { why: "look_alike", namespace: builtin } as const;
  if ("why" in result) return refused(result, { fqdn, version });
  const { state, isNew } = result;
  const { integrity } = offered.manifest;
  const answer = { fqdn, version, ...integrity !== undefined && { integrity }, state };
  return json(isNew ? 201 : 200, answer, { location: `${registry}/${fqdn}@${version}` });
}

/** Returns the server of PML's own that a name is taken for. */
function builtinLike(fqdn: string): string | undefined {
  const shapes = new Set(shapesLike(fqdn));
  return [...BUILTIN_NAMES].find((name) => shapes.has(shapeOf(name)));
}

function workOf({ method, target }: HubRequest): Work | undefined {
  const [path = ""] = target.split("?", 1);
  for (const [of, pattern, what] of PATHS) {
    const [, name, tag] = of === method && pattern.exec(path) || [];
    if (name === undefined) continue;
    if (what === "tag" || what === "untag") return { what, name, tag: decoded(tag ?? "") };
    return { what, name };
  }
  return undefined;
}

/** Returns the name and the version of a path. Throws `Unfit` if one is missing. */
function targetOf({ what, name }: Work): Target {
  const target = fqdnOf(decoded(name));
  if (target === undefined) throw new Unfit("it is no name of an entry in lower case");
  const { version = "" } = target;
  if (what === "tag" || what === "untag") {
    if (target.version === undefined) return { ...target, version };
    throw new Unfit("a tag is of a name without a version");
  }
  if (VERSION.test(version)) return { ...target, version };
  throw new Unfit(`its version is ${quoted(version)}, wanted one such as 1.2.0`);
}

async function membersOf(request: HubRequest): Promise<Readonly<Record<string, unknown>>> {
  const body = await request.body(SMALL_BODY);
  if (body === undefined) throw new Unfit(`the body has more than ${SMALL_BODY} bytes`, 413);
  if (body.length === 0) return {};
  const value = jsonOf(body);
  if (isObject(value)) return value;
  throw new Unfit("the body is no object");
}

function textIn(members: Readonly<Record<string, unknown>>, name: string): string {
  const text = members[name];
  if (typeof text === "string") return text;
  throw new Unfit(`the body has no text ${quoted(name)}`);
}

function reasonIn(members: Readonly<Record<string, unknown>>): string {
  const reason = members.reason ?? "";
  const isShort = typeof reason === "string" && reason.length <= REASON &&
    !/[\n\t]/.test(reason) && unseenIn(reason) === undefined;
  if (isShort) return reason;
  throw new Unfit(`the reason is no line of at most ${REASON} characters`);
}

function unfit(work: Work, { message, status }: Unfit): RegistryResponse {
  const name = quoted(decoded(work.name));
  return errorResponse(status, status === 413 ? "too_large" : "invalid_entry", {
    message: `Cannot ${work.what} ${name}: ${message}`,
  });
}

/** Answers a request that may be sent again after some seconds. */
function later(
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

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // then it is no name
  }
}
