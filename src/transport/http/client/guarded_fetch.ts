/**
 * Sends requests to the network: over TLS, to public addresses and to hosts that the user
 * configured, and only to the address that was checked.
 *
 * The platform's `fetch` is not used, because it resolves a name again. A name that resolved to a
 * public address during the check can resolve to this machine when the connection is made.
 *
 * @module
 */

import type { LookupAddress } from "node:dns";
import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import { isLiteral, isLoopback, isPrivate } from "../../../core/address.ts";
import { ending, PmlError } from "../../../core/errors.ts";
import type { Fetch, FetchOptions } from "../../../core/fetch.ts";
import { quoted } from "../../../core/json.ts";
import { VERSION } from "../../../core/version.ts";
import { after, onAbort } from "../../../io/waiting.ts";
import { Agents, type Connecting } from "./_agents.ts";
import { isDirect, type Proxy } from "./proxy.ts";

/** Resolves a name. */
type Lookup = (host: string) => Promise<readonly LookupAddress[]>;

/** How and where the user may reach the network. */
export interface NetworkPolicy {
  /** Returns the user's current proxy, if there is one. */
  proxy(): Proxy | undefined;
  /** Returns why a URL is forbidden; undefined if it is allowed. */
  forbidden?(url: string): PmlError | undefined;
}

/** The target of a request, after all checks that need no network. */
interface FetchTarget extends Connecting {
  /** The host, without the brackets and the final dot that a URL may contain. */
  readonly host: string;
}

/** A request that is being sent. */
interface OutgoingRequest extends FetchOptions {
  readonly target: FetchTarget;
}

/** Connection timeout in milliseconds. */
const CONNECT_MS = 10_000;
/** The number of bytes of a body that are read before the caller requests them. */
const AHEAD_BYTES = 65_536;
/** Headers that PML sets itself, because they determine where a message ends. */
const OURS = /^(host|connection|content-length|transfer-encoding|upgrade)$/i;
const BODYLESS = [204, 205, 304];

/** The only network access of PML. It keeps connections open until it is disposed. */
export class GuardedFetch implements Disposable {
  /** Sends a request. */
  readonly fetch: Fetch = async (url, options) => {
    const refusal = this.#network?.forbidden?.(`${url}`);
    // guard: company-fetch
    if (refusal !== undefined) throw refusal;
    const target = await this.#through(targetOf(url, options.named));
    await admit(target);
    const headers = headersOf(target, options);
    return await this.#exchange({ ...options, target, headers });
  };
  readonly #network: NetworkPolicy | undefined;
  readonly #lookup: Lookup;
  readonly #connectMs: number;
  readonly #agents: Agents;
  #isClosed = false;

  /** Creates a client without open connections. */
  constructor(
    network?: NetworkPolicy,
    { lookup = systemLookup, connectMs = CONNECT_MS, ca }: {
      /** Resolves a name; uses the system by default. */
      readonly lookup?: Lookup;
      /** Connection timeout in milliseconds. */
      readonly connectMs?: number;
      /** A certificate that replaces the default ones. */
      readonly ca?: string;
    } = {},
  ) {
    this.#network = network;
    this.#lookup = lookup;
    this.#connectMs = connectMs;
    this.#agents = new Agents(ca);
  }

  /** Closes all connections. Further requests are refused. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#agents[Symbol.dispose]();
  }

  /** Adds the proxy to a target that requires it. Targets on this machine never use a proxy. */
  async #through(target: FetchTarget): Promise<FetchTarget> {
    const proxy = target.isSecure ? this.#network?.proxy() : undefined;
    if (proxy === undefined) return target;
    return await isDirect(proxy, target) ? target : { ...target, proxy };
  }

  async #exchange(sending: OutgoingRequest): Promise<Response> {
    const { target, signal, body } = sending;
    const { request } = target.isSecure ? await import("node:https") : await import("node:http");
    const over = new AbortController();
    const options = { ...await this.#requestOptions(sending), over: over.signal };
    signal.throwIfAborted();
    if (this.#isClosed) throw ending("send a request");
    const clientRequest = request(options);
    const state = { sent: false };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const end = (reason: unknown) => {
      reject(reason);
      late[Symbol.dispose]();
      aborting[Symbol.dispose]();
      clientRequest.destroy();
      // Without a connection, no other event ends the tunnel.
      over.abort();
    };
    const late = after(
      this.#connectMs,
      () => end(failure({ code: "ETIMEDOUT" }, { target, sent: false })),
    );
    followed(clientRequest, target, () => {
      state.sent = true;
      late[Symbol.dispose]();
    });
    const aborting = onAbort(signal, () => end(signal.reason));
    clientRequest.once("response", resolve);
    // After the answer has begun, its body reports errors.
    clientRequest.on("error", (error) => reject(failure(error, { target, sent: state.sent })));
    clientRequest.once("close", () => {
      late[Symbol.dispose]();
      aborting[Symbol.dispose]();
    });
    clientRequest.end(body);
    const message = await promise;
    try {
      return responseOf(message, sending);
    } catch (error) {
      clientRequest.destroy();
      throw error;
    }
  }

  async #requestOptions(
    { target, method = "GET", headers, certificates }: OutgoingRequest,
  ): Promise<RequestOptions> {
    const { url, host } = target;
    return {
      method,
      host,
      port: url.port || (target.isSecure ? 443 : 80),
      path: url.pathname + url.search,
      headers,
      setHost: false,
      agent: await this.#agents.of(target, certificates),
      lookup: (_host, { all }, done) => {
        this.#look(target).then(
          (addresses) => {
            if (all) done(null, [...addresses]);
            else done(null, addresses[0]?.address ?? "", addresses[0]?.family);
          },
          (error) => done(error, ""),
        );
      },
    };
  }

  /** Returns the addresses to connect to. They are not resolved again. */
  async #look(target: FetchTarget): Promise<readonly LookupAddress[]> {
    const { host, isNamed, isSecure } = target;
    const addresses = await this.#lookup(host);
    // The platform does not accept an empty list.
    if (addresses.length === 0) throw failure({ code: "ENOTFOUND" }, { target, sent: false });
    for (const { address } of addresses) {
      if (!isSecure && !isLoopback(address)) throw refused(host, "it is not this machine");
      if (!isNamed && await isPrivate(address)) throw refused(host, PRIVATE);
    }
    return addresses;
  }
}

const PRIVATE = "its address is not public";
/** Names that no public server has. */
const LOCAL_NAME = /^[^.]+$|\.(?:local|localhost|internal|lan|home\.arpa)$/;

function targetOf(text: string, named: ReadonlySet<string>): FetchTarget {
  const url = URL.parse(text);
  if (url === null) throw refused("an address", "it is no URL");
  const written = url.hostname.replace(/\.$/, "");
  const host = written.replace(/^\[|\]$/g, "");
  const isSecure = url.protocol === "https:";
  const isNamed = named.has(written) || named.has(url.host);
  if (url.username !== "" || url.password !== "") {
    throw refused(host, "the address contains a user name or a password");
  }
  if (!isSecure && url.protocol !== "http:") throw refused(host, "it is not https");
  if (!isSecure && !(isNamed && isLoopback(host))) {
    throw refused(host, "it is not https, nor an address of this machine that you named");
  }
  return { url, host, isNamed, isSecure };
}

/** Checks IP addresses, and names that are sent to a proxy: neither is resolved later. */
async function admit({ url, host, isNamed, proxy }: FetchTarget): Promise<void> {
  if (isNamed) return;
  // guard: proxy-addresses
  if (isLiteral(url.hostname) ? await isPrivate(host) : proxy && LOCAL_NAME.test(host)) {
    throw refused(host, PRIVATE);
  }
}

function headersOf(
  { url }: FetchTarget,
  { headers = {}, body }: FetchOptions,
): Record<string, string> {
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
    // The value may be a key, so no message contains it.
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      throw refused(url.hostname, `the value of the header ${quoted(name)} cannot be sent`);
    }
    own[name.toLowerCase()] = value;
  }
  return own;
}

/**
 * Calls `sent` when the connection is established. Before that, no part of a request can have been
 * read.
 */
function followed(
  request: ClientRequest,
  { isSecure, proxy }: FetchTarget,
  sent: () => void,
): void {
  request.once("socket", (socket) => {
    // Through a proxy, TLS is already established.
    const isReady = request.reusedSocket || proxy;
    // Deno would repeat the request after a reused connection breaks, even if the request was
    // aborted.
    request.reusedSocket = false;
    if (isReady) sent();
    else socket.once(isSecure ? "secureConnect" : "connect", sent);
  });
}

function responseOf(
  message: IncomingMessage,
  { target, method, signal }: OutgoingRequest,
): Response {
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
  { target, signal }: Pick<OutgoingRequest, "target" | "signal">,
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
    hint: "Nothing was sent; only addresses that you configured may be private",
    detail: { may_have_run: false },
  });
}

function answered({ host }: FetchTarget, why: string): PmlError {
  return new PmlError("UPSTREAM_PROTOCOL", `Cannot read the answer of ${quoted(host)}: ${why}`, {
    detail: { may_have_run: true },
  });
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ENOTFOUND: "its name has no address",
  EAI_AGAIN: "its name could not be looked up",
  ETIMEDOUT: "it could not be connected to in time",
};

/** The errors of a connection that was not made, whose message names the port. */
const CONNECTING: readonly string[] = ["ECONNREFUSED", "ETIMEDOUT"];

/** TLS alerts of a server that requires or refuses a client certificate. */
const WANTS_CERTIFICATE = /_ALERT_(?:.*CERT|UNKNOWN_CA|ACCESS_DENIED)/;

/** The platform's error is not the cause, because it may repeat the request. */
function failure(
  error: unknown,
  { target: { host, url, proxy }, sent: wasSent }: {
    readonly target: FetchTarget;
    readonly sent: boolean;
  },
): PmlError {
  if (error instanceof PmlError) return error;
  const { code = "", errors: [first] = [] } = Object(error);
  const errorCode: string = code || (first?.code ?? "");
  const isUnwanted = WANTS_CERTIFICATE.test(errorCode);
  const sent = wasSent && !isUnwanted;
  const why = REASONS[errorCode] ??
    (isUnwanted
      ? `it requires a client certificate that it trusts (${errorCode})`
      : /CERT|TLS|SSL|ALTNAME|VERIFY|ISSUER/.test(errorCode)
      ? `its certificate is not valid (${errorCode})`
      : `the connection ${sent ? "broke" : "could not be made"}${errorCode && ` (${errorCode})`}`);
  const through = proxy ? ` through the proxy ${quoted(proxy.url.host)}` : "";
  // A name is looked up without a port; a connection is one to a port.
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  const where = CONNECTING.includes(errorCode) ? `${url.hostname}:${port}` : host;
  return new PmlError("UPSTREAM_DOWN", `Cannot reach ${quoted(where)}${through}: ${why}`, {
    hint: isUnwanted
      ? "Set cert and key next to its url in your config.yaml"
      : sent
      ? "It may have arrived; check before you send it again"
      : "Nothing was sent; try again when it can be reached",
    detail: { may_have_run: sent },
  });
}
