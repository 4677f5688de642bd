/**
 * Passes requests on to servers behind the hub. A request contains the caller's keys, which the hub
 * does not store or log.
 *
 * @module
 */

import {
  errorResponse,
  fqdnOf,
  isVersion,
  openOutgoing,
  type Outgoing,
  PmlError,
  quoted,
} from "@casys/pml/registry";
import type { HubRequest, HubResponse } from "../http/exchange.ts";
import type { HubStore, StoredEntry } from "../store/store.ts";
import { hashOf, headersWith, type Upstream, upstreamOf } from "./upstream.ts";

/** The part of the store that the proxy reads. */
type ProxyStore = Pick<HubStore, "entry" | "dates" | "stamp">;

/** Options of the proxy for servers behind a hub. */
export interface ProxyOptions {
  readonly store: ProxyStore;
  /** The hosts (with ports) in private networks to which requests may be passed on. */
  readonly privateHosts: ReadonlySet<string>;
}

/** Passes requests on. Disposing it ends open requests. */
export interface ServerProxy extends Disposable {
  /** Answers a request under `/mcp/proxy/`. */
  readonly pass: (request: HubRequest) => Promise<HubResponse>;
}

/** The beginning of the paths of servers behind a hub. */
export const PROXY_PATH = "/mcp/proxy/";

const MAX_BODY = 4_000_000;
/** The maximum number of open requests: to all servers, and to the servers of one owner. */
const REQUESTS = { all: 128, perOwner: 32 };
/** The maximum number of open event streams. A client may leave a stream open for hours. */
const STREAMS = { all: 1_024, perOwner: 256 };
/** The maximum number of names with a cached check. */
const MAX_CHECKS = 1_000;
const METHODS: readonly string[] = ["POST", "GET", "DELETE"];
/**
 * The headers that are passed on to the server (and below, to the client). Cookies, keys and addresses
 * are not passed on.
 */
const REQUEST_HEADERS =
  /^(accept|content-type|last-event-id|mcp-(session-id|protocol-version|method|name|param-[\w-]+))$/;
const RESPONSE_HEADERS = /^(content-type|mcp-session-id|mcp-protocol-version|retry-after)$/;
const EVENTS = /^text\/event-stream *(;|$)/i;
/** The content types of MCP responses. */
const MCP_TYPES = /^(application\/json|text\/event-stream) *(;|$)/i;

/** Creates the proxy for servers behind a hub. Loads nothing before the first request. */
export function openProxy({ store, privateHosts }: ProxyOptions): ServerProxy {
  let opening: Promise<Outgoing> | undefined;
  const [requests, streams] = [new Slots(REQUESTS), new Slots(STREAMS)];
  const unversioned = new UnversionedCheck(store);
  const pass = async (request: HubRequest): Promise<HubResponse> => {
    const { name = "", version } = namesIn(request.target);
    const entry = name === "" ? undefined : await exactEntry(store, { name, version });
    const upstream = entry === undefined ? "there is no such entry" : upstreamOf(entry.manifest);
    if (typeof upstream === "string") {
      const message = `Cannot reach a server ${quoted(name)} behind this hub: ${upstream}`;
      return errorResponse(404, "not_found", { message });
    }
    if (version === undefined && !await unversioned.isSafe(name)) {
      const message =
        `Cannot reach the server ${quoted(name)} behind this hub without a version: ` +
        "its versions have different addresses or headers. Approve the server again in PML, so that " +
        "requests name the approved version";
      return errorResponse(409, "version_required", { message });
    }
    if (!METHODS.includes(request.method)) {
      const headers = { allow: METHODS.join(", ") };
      return errorResponse(405, "method_not_allowed", {
        message: "Send POST, GET or DELETE",
        headers,
      });
    }
    const body = request.method === "POST" ? await request.body(MAX_BODY) : new Uint8Array();
    if (body === undefined) {
      return errorResponse(413, "too_large", {
        message: `The body has more than ${MAX_BODY} bytes`,
      });
    }
    // Servers of the operator have no owner, so each is counted by its name.
    const owner = entry?.owner ?? `:${name}`;
    const freeRequest = requests.take(owner);
    if (freeRequest === undefined) return busy();
    using requestSlot = new DisposableStack();
    requestSlot.defer(freeRequest);
    opening ??= openOutgoing(privateHosts);
    const text = body.length === 0 ? undefined : new TextDecoder().decode(body);
    const answer = await forward({ request, upstream, text, outgoing: await opening });
    if (!(answer instanceof Response) || answer.body === null) return answer;
    const isStream = EVENTS.test(answer.headers.get("content-type") ?? "");
    const freeStream = isStream ? streams.take(owner) : undefined;
    if (freeStream !== undefined) return new Response(withEnd(answer.body, freeStream), answer);
    // The server has already run the request of a POST, so its answer must be passed on.
    if (!isStream || request.method === "POST") {
      const movedSlot = requestSlot.move();
      return new Response(withEnd(answer.body, () => movedSlot.dispose()), answer);
    }
    await answer.body.cancel();
    return busy();
  };
  return { pass, [Symbol.dispose]: () => void opening?.then((opened) => opened[Symbol.dispose]()) };
}

/** Limits how many requests or streams are open at once, in total and per owner. */
class Slots {
  readonly #most: { readonly all: number; readonly perOwner: number };
  readonly #counts = new Map<string, number>();
  #all = 0;

  constructor(most: { readonly all: number; readonly perOwner: number }) {
    this.#most = most;
  }

  /** Takes a slot of an owner. Returns a function that frees it; undefined if all are in use. */
  take(owner: string): (() => void) | undefined {
    const ownerCount = this.#counts.get(owner) ?? 0;
    if (this.#all >= this.#most.all || ownerCount >= this.#most.perOwner) return undefined;
    this.#all++;
    this.#counts.set(owner, ownerCount + 1);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#all--;
      const newCount = (this.#counts.get(owner) ?? 1) - 1;
      if (newCount > 0) this.#counts.set(owner, newCount);
      else this.#counts.delete(owner);
    };
  }
}

/** Returns a body that calls `end` when it is complete, fails or is cancelled. */
function withEnd(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  end: () => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  return body.pipeThrough(new TransformStream({ flush: end, cancel: end }));
}

function busy(): HubResponse {
  const message = "This hub has its maximum number of open requests to servers; try again";
  return errorResponse(503, "busy", { message, headers: { "retry-after": "1" } });
}

/** Returns the name and the version in a target. Returns neither if the path has a tag. */
function namesIn(target: string): { readonly name?: string; readonly version?: string } {
  const [path = ""] = target.split("?", 1);
  try {
    const text = decodeURIComponent(path.slice(PROXY_PATH.length));
    const { version } = fqdnOf(text) ?? {};
    if (version === undefined) return { name: text };
    return isVersion(version) ? { name: text.slice(0, -version.length - 1), version } : {};
  } catch {
    return {}; // not a valid name
  }
}

async function exactEntry(
  store: ProxyStore,
  { name, version }: { readonly name: string; readonly version: string | undefined },
): Promise<StoredEntry | undefined> {
  const entry = await store.entry(name, version);
  return version === undefined || entry?.version === version ? entry : undefined;
}

/**
 * Decides whether requests without a version can be passed on. A client that sends no version sends
 * keys for the version that was the newest when its user approved the server. The hub cannot know
 * that version, so all versions must send the keys to the same address.
 */
class UnversionedCheck {
  readonly #store: ProxyStore;
  readonly #checks = new Map<string, boolean>();
  #stamp = "";

  constructor(store: ProxyStore) {
    this.#store = store;
  }

  /** Returns whether all versions, including hidden ones, have the same address and headers. */
  async isSafe(name: string): Promise<boolean> {
    const stamp = await this.#store.stamp();
    if (stamp !== this.#stamp || this.#checks.size >= MAX_CHECKS) this.#checks.clear();
    this.#stamp = stamp;
    const isSafeName = this.#checks.get(name);
    if (isSafeName !== undefined) return isSafeName;
    const isSafe = await this.#hasOneAddress(name);
    if (this.#stamp === stamp) this.#checks.set(name, isSafe);
    return isSafe;
  }

  async #hasOneAddress(name: string): Promise<boolean> {
    const hashes = new Set<string>();
    for (const version of (await this.#store.dates(name)).keys()) {
      const entry = await this.#store.entry(name, version);
      const upstream = entry === undefined ? "there is none" : upstreamOf(entry.manifest);
      hashes.add(typeof upstream === "string" ? "" : hashOf(upstream));
      if (hashes.size > 1) return false;
    }
    return true;
  }
}

async function forward(
  { request, upstream, text, outgoing }: {
    readonly request: HubRequest;
    readonly upstream: Upstream;
    readonly text: string | undefined;
    readonly outgoing: Outgoing;
  },
): Promise<HubResponse> {
  const protocolHeaders = Object.entries(request.headers).flatMap(([name, value]) =>
    REQUEST_HEADERS.test(name) && typeof value === "string" ? [[name, value] as const] : []
  );
  const { method, signal, headers } = request;
  try {
    const response = await outgoing.fetch(upstream.url, {
      method,
      signal,
      ...text !== undefined && { body: text },
      headers: { ...Object.fromEntries(protocolHeaders), ...headersWith(upstream, headers) },
    });
    return await toHubResponse(response, { upstream, text });
  } catch (error) {
    if (signal.aborted) throw error;
    // The message of the error may contain keys from the request, so only its code is shown.
    const why = error instanceof PmlError ? `it cannot be reached (${error.code})` : "it failed";
    return unansweredResponse(why, { upstream, text });
  }
}

/** A request that the server did not answer. */
interface Unanswered {
  readonly upstream: Upstream;
  readonly text: string | undefined;
}

async function toHubResponse(response: Response, unanswered: Unanswered): Promise<HubResponse> {
  const { status } = response;
  const isRedirect = status >= 300 && status < 400;
  // A client would read 401 or 403 as the hub refusing its client key.
  if (isRedirect || status === 401 || status === 403 || status === 407 || status >= 500) {
    await response.body?.cancel();
    const why = isRedirect
      ? "it redirects, and redirects are not followed"
      : status === 401 || status === 403
      ? `it refuses the key (${status})`
      : `it answers ${status}`;
    return unansweredResponse(why, unanswered);
  }
  const headers = new Headers(
    [...response.headers].filter(([name]) => RESPONSE_HEADERS.test(name)),
  );
  // An HTML answer would be a page of the hub's origin, which could act for its users.
  if (!MCP_TYPES.test(headers.get("content-type") ?? "")) headers.set("content-type", "text/plain");
  headers.set("x-content-type-options", "nosniff");
  return new Response(response.body, { status, headers });
}

function unansweredResponse(why: string, { upstream, text }: Unanswered): HubResponse {
  const message = `The server ${upstream.name} behind this hub does not answer: ${why}`;
  const body = { jsonrpc: "2.0", id: idIn(text), error: { code: -32603, message } };
  return Response.json(body, { status: 502 });
}

function idIn(text: string | undefined): string | number | null {
  try {
    const { id } = JSON.parse(text ?? "{}");
    return typeof id === "string" || typeof id === "number" ? id : null;
  } catch {
    return null;
  }
}
