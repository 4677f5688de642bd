/**
 * Passes requests on to servers behind the hub, with the caller's keys for one request. Keys are
 * neither stored nor logged.
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
  /** Hosts with ports that may be in a private network. */
  readonly privateHosts: ReadonlySet<string>;
}

/** Passes requests on; disposing of it ends them. */
export interface Proxying extends Disposable {
  /** Answers a request under `/mcp/proxy/`. */
  readonly pass: (request: HubRequest) => Promise<HubResponse>;
}

/** The beginning of the paths of servers behind a hub. */
export const PROXY_PATH = "/mcp/proxy/";

const BODY = 4_000_000;
/** How many requests are passed on at once, of all and to the servers of one organisation. */
const REQUESTS = { all: 128, one: 32 };
/** How many event streams are open at once. A client may leave one open for hours. */
const STREAMS = { all: 1_024, one: 256 };
/** How many answers about names are remembered. */
const KNOWN = 1_000;
const METHODS: readonly string[] = ["POST", "GET", "DELETE"];
/** The headers that are passed on in each direction. Cookies, keys and addresses are not. */
const ASKED =
  /^(accept|content-type|last-event-id|mcp-(session-id|protocol-version|method|name|param-[\w-]+))$/;
const ANSWERED = /^(content-type|mcp-session-id|mcp-protocol-version|retry-after)$/;
const EVENTS = /^text\/event-stream *(;|$)/i;
/** The types of answers that MCP has. */
const SPOKEN = /^(application\/json|text\/event-stream) *(;|$)/i;

/** Creates the proxy for servers behind a hub. Loads nothing before the first request. */
export function openProxy({ store, privateHosts }: ProxyOptions): Proxying {
  let open: Promise<Outgoing> | undefined;
  const [requests, streams] = [new Slots(REQUESTS), new Slots(STREAMS)];
  const unversioned = new Unversioned(store);
  const pass = async (request: HubRequest): Promise<HubResponse> => {
    const { name = "", version } = namesIn(request.target);
    const entry = name === "" ? undefined : await exactEntry(store, { name, version });
    const upstream = entry === undefined ? "there is none" : upstreamOf(entry.manifest);
    if (typeof upstream === "string") {
      const message = `Cannot reach a server ${quoted(name)} behind this hub: ${upstream}`;
      return errorResponse(404, "not_found", { message });
    }
    if (version === undefined && !await unversioned.isSafe(name)) {
      const message =
        `Cannot reach the server ${quoted(name)} behind this hub without a version: ` +
        "its versions are not at one address with the same headers. Approve it again, so that " +
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
    const body = request.method === "POST" ? await request.body(BODY) : new Uint8Array();
    if (body === undefined) {
      return errorResponse(413, "too_large", { message: `The body has more than ${BODY} bytes` });
    }
    // The operator's are counted by their names.
    const owner = entry?.owner ?? `:${name}`;
    const end = requests.take(owner);
    if (end === undefined) return busy();
    using ending = new DisposableStack();
    ending.defer(end);
    open ??= openOutgoing(privateHosts);
    const text = body.length === 0 ? undefined : new TextDecoder().decode(body);
    const answer = await passed({ request, upstream, text, outgoing: await open });
    if (!(answer instanceof Response) || answer.body === null) return answer;
    const isStream = EVENTS.test(answer.headers.get("content-type") ?? "");
    const endStream = isStream ? streams.take(owner) : undefined;
    if (endStream !== undefined) return new Response(untilOver(answer.body, endStream), answer);
    // The server has run the request of a POST, so its answer is passed on in any case.
    if (!isStream || request.method === "POST") {
      const later = ending.move();
      return new Response(untilOver(answer.body, () => later.dispose()), answer);
    }
    await answer.body.cancel();
    return busy();
  };
  return { pass, [Symbol.dispose]: () => void open?.then((opened) => opened[Symbol.dispose]()) };
}

/** Bounds how many requests or streams are open at once. */
class Slots {
  readonly #most: { readonly all: number; readonly one: number };
  readonly #counts = new Map<string, number>();
  #all = 0;

  constructor(most: { readonly all: number; readonly one: number }) {
    this.#most = most;
  }

  /** Takes a slot of an owner. Returns a function that frees it; undefined if all are in use. */
  take(owner: string): (() => void) | undefined {
    const own = this.#counts.get(owner) ?? 0;
    if (this.#all >= this.#most.all || own >= this.#most.one) return undefined;
    this.#all++;
    this.#counts.set(owner, own + 1);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#all--;
      const left = (this.#counts.get(owner) ?? 1) - 1;
      if (left > 0) this.#counts.set(owner, left);
      else this.#counts.delete(owner);
    };
  }
}

/** Returns a body that calls `end` when it was sent, failed or is no longer read. */
function untilOver(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  end: () => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  return body.pipeThrough(new TransformStream({ flush: end, cancel: end }));
}

function busy(): HubResponse {
  const message = "This hub passes on as much as it can";
  return errorResponse(503, "busy", { message, headers: { "retry-after": "1" } });
}

/** Returns the name and the version in a target. A tag is no version. */
function namesIn(target: string): { readonly name?: string; readonly version?: string } {
  const [path = ""] = target.split("?", 1);
  try {
    const text = decodeURIComponent(path.slice(PROXY_PATH.length));
    const { version } = fqdnOf(text) ?? {};
    if (version === undefined) return { name: text };
    return isVersion(version) ? { name: text.slice(0, -version.length - 1), version } : {};
  } catch {
    return {}; // then it is no name
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
 * Decides whether requests that name no version can be passed on. A client sends its keys to what
 * was the newest version when its user approved it, and the hub cannot know which one that was.
 */
class Unversioned {
  readonly #store: ProxyStore;
  readonly #checks = new Map<string, boolean>();
  #stamp = "";

  constructor(store: ProxyStore) {
    this.#store = store;
  }

  /** Returns whether all versions of a server, hidden ones too, are at one address. */
  async isSafe(name: string): Promise<boolean> {
    const stamp = await this.#store.stamp();
    if (stamp !== this.#stamp || this.#checks.size >= KNOWN) this.#checks.clear();
    this.#stamp = stamp;
    const isSafeName = this.#checks.get(name);
    if (isSafeName !== undefined) return isSafeName;
    const isSafe = await this.#look(name);
    if (this.#stamp === stamp) this.#checks.set(name, isSafe);
    return isSafe;
  }

  async #look(name: string): Promise<boolean> {
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

async function passed(
  { request, upstream, text, outgoing }: {
    readonly request: HubRequest;
    readonly upstream: Upstream;
    readonly text: string | undefined;
    readonly outgoing: Outgoing;
  },
): Promise<HubResponse> {
  const own = Object.entries(request.headers).flatMap(([name, value]) =>
    ASKED.test(name) && typeof value === "string" ? [[name, value] as const] : []
  );
  const { method, signal, headers } = request;
  try {
    const response = await outgoing.fetch(upstream.url, {
      method,
      signal,
      ...text !== undefined && { body: text },
      headers: { ...Object.fromEntries(own), ...headersWith(upstream, headers) },
    });
    return await answered(response, { upstream, text });
  } catch (error) {
    if (signal.aborted) throw error;
    // A message may repeat keys of the request; the code cannot.
    const why = error instanceof PmlError ? `it cannot be reached (${error.code})` : "it failed";
    return refusal(why, { upstream, text });
  }
}

/** A request that the server did not answer. */
interface Unanswered {
  readonly upstream: Upstream;
  readonly text: string | undefined;
}

async function answered(response: Response, unanswered: Unanswered): Promise<HubResponse> {
  const { status } = response;
  const isRedirect = status >= 300 && status < 400;
  // A client would take 401 and 403 for the hub's own word about the key of its account.
  if (isRedirect || status === 401 || status === 403 || status === 407 || status >= 500) {
    await response.body?.cancel();
    const why = isRedirect
      ? "it redirects, which is not followed"
      : status === 401 || status === 403
      ? `it refuses the key (${status})`
      : `it answers ${status}`;
    return refusal(why, unanswered);
  }
  const headers = new Headers([...response.headers].filter(([name]) => ANSWERED.test(name)));
  // An HTML answer would be a page of the hub's origin, which could act for its users.
  if (!SPOKEN.test(headers.get("content-type") ?? "")) headers.set("content-type", "text/plain");
  headers.set("x-content-type-options", "nosniff");
  return new Response(response.body, { status, headers });
}

function refusal(why: string, { upstream, text }: Unanswered): HubResponse {
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
