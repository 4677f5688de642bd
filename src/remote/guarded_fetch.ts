/**
 * The way out to the network: over TLS, to public addresses and to hosts that the person named, and
 * to exactly the address that was looked at.
 *
 * Not the `fetch` of the platform, because that one resolves a name by itself: a name that led to a
 * public address when it was looked at can lead into this machine when it is connected to.
 *
 * @module
 */

import type { LookupAddress } from "node:dns";
import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import { isLiteral, isLoopback, isPrivate } from "../core/address.ts";
import { PmlError } from "../core/errors.ts";
import type { Fetch, FetchOptions } from "../core/fetch.ts";
import { quoted } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import { after, onAbort } from "../io/waiting.ts";

/** What a test stands in for. */
export interface GuardedFetchOptions {
  /** Finds the addresses of a name; the system does unless it is given. */
  readonly lookup?: (host: string) => Promise<readonly LookupAddress[]>;
  /** How long it may take until there is a connection. */
  readonly connectMs?: number;
  /** A certificate that is trusted in place of the usual ones. */
  readonly ca?: string;
}

/** Where a request goes, after what can be known of it without the network was looked at. */
interface Target {
  readonly url: URL;
  /** Without the brackets and the dot at the end that a URL may have. */
  readonly host: string;
  readonly isNamed: boolean;
  readonly isSecure: boolean;
}

/** A request under way. */
interface Sending extends FetchOptions {
  readonly target: Target;
}

/** How many connections to one host wait for a next request: fewer would be made anew in a burst. */
const IDLE_CONNECTIONS = 64;
const IDLE_MS = 60_000;
/** As many as calls can be under way, and streams beside them. */
const CONNECTIONS = 512;
/** How long it may take until there is a connection. */
const CONNECT_MS = 10_000;
/** How much of a body is read before somebody wants it. */
const AHEAD_BYTES = 65_536;
/** What says where a message ends is ours to say. */
const OURS = /^(host|connection|content-length|transfer-encoding|upgrade)$/i;
const BODYLESS = [204, 205, 304];

/** The one way out; it keeps connections open until it is closed. */
export class GuardedFetch implements Disposable {
  /** Sends a request. */
  readonly fetch: Fetch = async (url, options) => {
    const target = targetOf(url, options.named);
    await admit(target);
    const headers = headersOf(target, options);
    return await this.#exchange({ ...options, target, headers });
  };
  readonly #options: GuardedFetchOptions;
  readonly #agents = new Map<string, Agent>();
  #isClosed = false;

  /** Opens nothing yet. */
  constructor(options: GuardedFetchOptions = {}) {
    this.#options = options;
  }

  /** Closes the connections; nothing is sent any more. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    for (const agent of this.#agents.values()) agent.destroy();
    this.#agents.clear();
  }

  async #exchange(sending: Sending): Promise<Response> {
    const { target, signal, body } = sending;
    const { request } = target.isSecure ? await import("node:https") : await import("node:http");
    const options = await this.#requestOptions(sending);
    signal.throwIfAborted();
    if (this.#isClosed) throw new PmlError("CANCELLED", "Cannot send a request: PML is ending");
    const asked = request(options);
    const state = { sent: false };
    const late = after(
      this.#options.connectMs ?? CONNECT_MS,
      () => asked.destroy(failure({ code: "ETIMEDOUT" }, { target, sent: false })),
    );
    followed(asked, target, () => {
      state.sent = true;
      late[Symbol.dispose]();
    });
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const aborting = onAbort(signal, () => {
      reject(signal.reason);
      asked.destroy();
    });
    asked.once("response", resolve);
    // What comes after the answer is told by the answer.
    asked.on("error", (error) => reject(failure(error, { target, sent: state.sent })));
    asked.once("close", () => {
      late[Symbol.dispose]();
      aborting[Symbol.dispose]();
    });
    asked.end(body);
    const message = await promise;
    try {
      return responseOf(message, sending);
    } catch (error) {
      asked.destroy();
      throw error;
    }
  }

  async #requestOptions({ target, method = "GET", headers }: Sending): Promise<RequestOptions> {
    const { url, host } = target;
    return {
      method,
      host,
      port: url.port || (target.isSecure ? 443 : 80),
      path: url.pathname + url.search,
      headers,
      setHost: false,
      agent: await this.#agentOf(target),
      lookup: (_host, { all }, done) => {
        this.#look(target).then(
          (found) => {
            if (all) done(null, [...found]);
            else done(null, found[0]?.address ?? "", found[0]?.family);
          },
          (error) => done(error, ""),
        );
      },
    };
  }

  /** Gives what is to be connected to: nothing is resolved again after this. */
  async #look(target: Target): Promise<readonly LookupAddress[]> {
    const { host, isNamed, isSecure } = target;
    const found = await (this.#options.lookup ?? systemLookup)(host);
    // The platform takes no empty list for an answer.
    if (found.length === 0) throw failure({ code: "ENOTFOUND" }, { target, sent: false });
    for (const { address } of found) {
      if (!isSecure && !isLoopback(address)) throw refused(host, "it is not this machine");
      if (!isNamed && await isPrivate(address)) throw refused(host, PRIVATE);
    }
    return found;
  }

  /** A connection to an address that the person named is for no request that may not go there. */
  async #agentOf({ isNamed, isSecure }: Target): Promise<Agent> {
    const key = `${isNamed} ${isSecure}`;
    const { Agent } = isSecure ? await import("node:https") : await import("node:http");
    const settings = {
      keepAlive: true,
      maxSockets: CONNECTIONS,
      maxFreeSockets: IDLE_CONNECTIONS,
      timeout: IDLE_MS,
      // No variable of the environment changes these: a proxy would look names up again.
      rejectUnauthorized: true,
      proxyEnv: {},
      ...(this.#options.ca === undefined ? {} : { ca: this.#options.ca }),
    };
    const agent = this.#agents.get(key) ?? new Agent(settings);
    this.#agents.set(key, agent);
    return agent;
  }
}

const PRIVATE = "its address is not public";

function targetOf(text: string, named: ReadonlySet<string>): Target {
  const url = URL.parse(text);
  if (url === null) throw refused("an address", "it is no URL");
  const written = url.hostname.replace(/\.$/, "");
  const host = written.replace(/^\[|\]$/g, "");
  const isSecure = url.protocol === "https:";
  const isNamed = named.has(written) || named.has(url.host);
  if (url.username !== "" || url.password !== "") {
    throw refused(host, "the address holds a name or a password");
  }
  if (!isSecure && url.protocol !== "http:") throw refused(host, "it is not https");
  if (!isSecure && !(isNamed && isLoopback(host))) {
    throw refused(host, "it is not https, and no address of this machine that you named");
  }
  return { url, host, isNamed, isSecure };
}

/** An address is looked up by nobody, so it is looked at here. */
async function admit({ url, host, isNamed }: Target): Promise<void> {
  if (!isNamed && isLiteral(url.hostname) && await isPrivate(host)) throw refused(host, PRIVATE);
}

function headersOf({ url }: Target, { headers = {}, body }: FetchOptions): Record<string, string> {
  const own: Record<string, string> = {
    "host": url.host.replace(/\.(?=:|$)/, ""),
    "accept-encoding": "identity",
    "user-agent": `pml/${VERSION}`,
  };
  if (body !== undefined) own["content-length"] = `${new TextEncoder().encode(body).length}`;
  for (const [name, value] of Object.entries(headers)) {
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name) || OURS.test(name)) {
      throw refused(url.hostname, `the header ${quoted(name)} cannot be sent`);
    }
    // The value may be a key: it stands in no message.
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      throw refused(url.hostname, `the value of the header ${quoted(name)} cannot be sent`);
    }
    own[name.toLowerCase()] = value;
  }
  return own;
}

/** Tells when a connection is there: before that nothing of a request can have been read. */
function followed(asked: ClientRequest, { isSecure }: Target, sent: () => void): void {
  asked.once("socket", (socket) => {
    const isKept = asked.reusedSocket;
    // Deno would send it again where a kept connection breaks, and even where it is given up.
    asked.reusedSocket = false;
    if (isKept) sent();
    else socket.once(isSecure ? "secureConnect" : "connect", sent);
  });
}

function responseOf(message: IncomingMessage, { target, method, signal }: Sending): Response {
  const { statusCode: status = 0 } = message;
  const encoding = message.headers["content-encoding"] ?? "identity";
  const odd = status < 200 || status > 599
    ? `its status is ${status}`
    : encoding === "identity"
    ? undefined
    : "its answer is compressed, which was not asked for";
  if (odd !== undefined) throw answered(target, odd);
  const headers = new Headers();
  for (let at = 0; at < message.rawHeaders.length; at += 2) {
    try {
      headers.append(message.rawHeaders[at] ?? "", message.rawHeaders[at + 1] ?? "");
    } catch {
      // The error would repeat the value.
      throw answered(target, "one of its headers is malformed");
    }
  }
  const isBodyless = BODYLESS.includes(status) || method === "HEAD";
  if (isBodyless) message.resume();
  return new Response(isBodyless ? null : bodyOf(message, { target, signal }), { status, headers });
}

function bodyOf(
  message: IncomingMessage,
  { target, signal }: Pick<Sending, "target" | "signal">,
): ReadableStream<Uint8Array> {
  let isOver = false;
  const once = (act: () => void) => () => {
    if (!isOver) act();
    isOver = true;
  };
  const start = (body: ReadableStreamDefaultController<Uint8Array>) => {
    const broken = once(() =>
      body.error(signal.aborted ? signal.reason : failure(undefined, { target, sent: true }))
    );
    message.pause();
    message.on("data", (piece: Uint8Array) => {
      if (isOver) return;
      body.enqueue(piece);
      if ((body.desiredSize ?? 0) <= 0) message.pause();
    });
    message.on("end", once(() => body.close()));
    message.on("error", broken);
    message.on("close", broken);
  };
  return new ReadableStream<Uint8Array>({
    start,
    pull: () => void message.resume(),
    cancel: once(() => message.destroy()),
  }, new ByteLengthQueuingStrategy({ highWaterMark: AHEAD_BYTES }));
}

async function systemLookup(host: string): Promise<readonly LookupAddress[]> {
  const { lookup } = await import("node:dns/promises");
  return await lookup(host, { all: true });
}

function refused(host: string, why: string): PmlError {
  return new PmlError("PERMISSION_DENIED", `Cannot reach ${quoted(host)}: ${why}`, {
    hint:
      "Nothing was sent; only addresses that the person configured may lie in a private network",
    detail: { may_have_run: false },
  });
}

function answered({ host }: Target, why: string): PmlError {
  return new PmlError("UPSTREAM_PROTOCOL", `Cannot read the answer of ${quoted(host)}: ${why}`, {
    detail: { may_have_run: true },
  });
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "it refused the connection",
  ENOTFOUND: "its name leads to no address",
  EAI_AGAIN: "its name could not be looked up",
  ETIMEDOUT: "no connection came about in time",
};

/** The error of the platform is left out: it may repeat what was sent. */
function failure(
  error: unknown,
  { target: { host }, sent }: { readonly target: Target; readonly sent: boolean },
): PmlError {
  if (error instanceof PmlError) return error;
  const { code = "", errors: [first] = [] } = Object(error);
  const said: string = code || (first?.code ?? "");
  const why = REASONS[said] ??
    (/CERT|TLS|SSL|ALTNAME|VERIFY|ISSUER/.test(said)
      ? `its certificate does not hold (${said})`
      : `the connection ${sent ? "broke" : "could not be made"}${said && ` (${said})`}`);
  return new PmlError("UPSTREAM_DOWN", `Cannot reach ${quoted(host)}: ${why}`, {
    hint: sent
      ? "The request may have been read; look before you send it again"
      : "Nothing was sent; try again when the network and the server are there",
    detail: { may_have_run: sent },
  });
}
