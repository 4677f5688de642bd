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
import { endingError, PmlError } from "../../../core/errors.ts";
import { CONNECTION_PROBLEMS, type Fetch, type FetchOptions } from "../../../core/fetch.ts";
import { quoted } from "../../../core/json.ts";
import { VERSION } from "../../../core/version.ts";
import { callAfter, onAbort } from "../../../io/waiting.ts";
import { Agents, type ConnectionTarget } from "./_agents.ts";
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
interface FetchTarget extends ConnectionTarget {
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
const READ_AHEAD_BYTES = 65_536;
/** Headers that callers cannot set, because they determine where a message ends or goes. */
const OWN_HEADERS = /^(host|connection|content-length|transfer-encoding|upgrade)$/i;
const BODYLESS_STATUSES = [204, 205, 304];

/** The only access of PML to the network. It keeps connections open until it is disposed. */
export class GuardedFetch implements Disposable {
  /** Sends a request. */
  readonly fetch: Fetch = async (url, options) => {
    const refusal = this.#network?.forbidden?.(`${url}`);
    // guard: company-fetch
    if (refusal !== undefined) throw refusal;
    const target = await this.#withProxy(parseTarget(url, options.named));
    await assertPublic(target);
    const headers = createHeaders(target, options);
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
      /** A certificate that replaces the default certificates. */
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
  async #withProxy(target: FetchTarget): Promise<FetchTarget> {
    const proxy = target.isSecure ? this.#network?.proxy() : undefined;
    if (proxy === undefined) return target;
    return await isDirect(proxy, target) ? target : { ...target, proxy };
  }

  async #exchange(outgoing: OutgoingRequest): Promise<Response> {
    const { target, signal, body } = outgoing;
    const { request } = target.isSecure ? await import("node:https") : await import("node:http");
    const tunnelEnd = new AbortController();
    const options = { ...await this.#requestOptions(outgoing), tunnelEnd: tunnelEnd.signal };
    signal.throwIfAborted();
    if (this.#isClosed) throw endingError("send a request");
    const clientRequest = request(options);
    const state = { sent: false };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const end = (reason: unknown) => {
      reject(reason);
      connectTimer[Symbol.dispose]();
      abortListener[Symbol.dispose]();
      clientRequest.destroy();
      // Without a connection, no other event ends the tunnel.
      tunnelEnd.abort();
    };
    const connectTimer = callAfter(
      this.#connectMs,
      () => end(connectionError({ code: "ETIMEDOUT" }, { target, sent: false })),
    );
    onConnected(clientRequest, target, () => {
      state.sent = true;
      connectTimer[Symbol.dispose]();
    });
    const abortListener = onAbort(signal, () => end(signal.reason));
    clientRequest.once("response", resolve);
    // After the answer has begun, its body reports errors.
    clientRequest.on(
      "error",
      (error) => reject(connectionError(error, { target, sent: state.sent })),
    );
    clientRequest.once("close", () => {
      connectTimer[Symbol.dispose]();
      abortListener[Symbol.dispose]();
    });
    clientRequest.end(body);
    const message = await promise;
    try {
      return toResponse(message, outgoing);
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
      agent: await this.#agents.agentFor(target, certificates),
      lookup: (_host, { all }, done) => {
        this.#resolve(target).then(
          (addresses) => {
            if (all) done(null, [...addresses]);
            else done(null, addresses[0]?.address ?? "", addresses[0]?.family);
          },
          (error) => done(error, ""),
        );
      },
    };
  }

  /** Returns the addresses to connect to. The platform does not resolve the name again. */
  async #resolve(target: FetchTarget): Promise<readonly LookupAddress[]> {
    const { host, isConfigured, isSecure } = target;
    const addresses = await this.#lookup(host);
    // The platform does not accept an empty list.
    if (addresses.length === 0) {
      throw connectionError({ code: "ENOTFOUND" }, { target, sent: false });
    }
    for (const { address } of addresses) {
      if (!isSecure && !isLoopback(address)) {
        throw refusedError(host, "it is not this machine", HTTPS_HINT);
      }
      if (!isConfigured && await isPrivate(address)) throw refusedError(host, NOT_PUBLIC);
    }
    return addresses;
  }
}

const NOT_PUBLIC = "its address is not public";
const HTTPS_HINT = "Write https:// in its address: PML uses http only for addresses of this " +
  "machine. Nothing was sent";
/** Names that no public server has. */
const LOCAL_NAME = /^[^.]+$|\.(?:local|localhost|internal|lan|home\.arpa)$/;

function parseTarget(text: string, configuredHosts: ReadonlySet<string>): FetchTarget {
  const url = URL.parse(text);
  if (url === null) throw refusedError("an address", "it is no URL");
  const hostInUrl = url.hostname.replace(/\.$/, "");
  const host = hostInUrl.replace(/^\[|\]$/g, "");
  const isSecure = url.protocol === "https:";
  const isConfigured = configuredHosts.has(hostInUrl) || configuredHosts.has(url.host);
  if (url.username !== "" || url.password !== "") {
    throw refusedError(host, "the address contains a user name or a password");
  }
  if (!isSecure && url.protocol !== "http:") {
    throw refusedError(host, "it is not https", HTTPS_HINT);
  }
  if (!isSecure && !(isConfigured && isLoopback(host))) {
    const why = "it is not https, nor an address of this machine that you named";
    throw refusedError(host, why, HTTPS_HINT);
  }
  return { url, host, isConfigured, isSecure };
}

/** Checks IP addresses, and names that a proxy gets: PML resolves neither of them later. */
async function assertPublic(
  { url, host, isConfigured, proxy }: FetchTarget,
): Promise<void> {
  if (isConfigured) return;
  // guard: proxy-addresses
  if (isLiteral(url.hostname) ? await isPrivate(host) : proxy && LOCAL_NAME.test(host)) {
    throw refusedError(host, NOT_PUBLIC);
  }
}

function createHeaders(
  { url }: FetchTarget,
  { headers = {}, body }: FetchOptions,
): Record<string, string> {
  const sentHeaders: Record<string, string> = {
    "host": url.host.replace(/\.(?=:|$)/, ""),
    "accept-encoding": "identity",
    "user-agent": `pml/${VERSION}`,
  };
  if (body !== undefined) {
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
    sentHeaders["content-length"] = `${bytes.length}`;
  }
  for (const [name, value] of Object.entries(headers)) {
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name) || OWN_HEADERS.test(name)) {
      throw refusedError(url.hostname, `the header ${quoted(name)} cannot be sent`);
    }
    // The value may be a key, so no message contains it.
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      throw refusedError(url.hostname, `the value of the header ${quoted(name)} cannot be sent`);
    }
    sentHeaders[name.toLowerCase()] = value;
  }
  return sentHeaders;
}

/**
 * Calls `sent` when the connection is established. Before that, no part of a request can have been
 * read.
 */
function onConnected(
  request: ClientRequest,
  { isSecure, proxy }: FetchTarget,
  onReady: () => void,
): void {
  request.once("socket", (socket) => {
    // Through a proxy, TLS is already established.
    const isReady = request.reusedSocket || proxy;
    // Deno would repeat the request after a reused connection breaks, even if the request was
    // aborted.
    request.reusedSocket = false;
    if (isReady) onReady();
    else socket.once(isSecure ? "secureConnect" : "connect", onReady);
  });
}

function toResponse(
  message: IncomingMessage,
  { target, method, signal }: OutgoingRequest,
): Response {
  const { statusCode: status = 0 } = message;
  const encoding = message.headers["content-encoding"] ?? "identity";
  const problem = status < 200 || status > 599
    ? `its status is ${status}`
    : encoding === "identity"
    ? undefined
    : "its answer is compressed, although PML requests uncompressed answers";
  if (problem !== undefined) throw badAnswerError(target, problem);
  const headers = new Headers();
  for (let index = 0; index < message.rawHeaders.length; index += 2) {
    try {
      headers.append(message.rawHeaders[index] ?? "", message.rawHeaders[index + 1] ?? "");
    } catch {
      // The error would repeat the value.
      throw badAnswerError(target, "one of its headers is malformed");
    }
  }
  const isBodyless = BODYLESS_STATUSES.includes(status) || method === "HEAD";
  if (isBodyless) message.resume();
  return new Response(isBodyless ? null : toBody(message, { target, signal }), { status, headers });
}

function toBody(
  message: IncomingMessage,
  { target, signal }: Pick<OutgoingRequest, "target" | "signal">,
): ReadableStream<Uint8Array> {
  let hasEnded = false;
  const once = (act: () => void) => () => {
    if (!hasEnded) act();
    hasEnded = true;
  };
  const start = (body: ReadableStreamDefaultController<Uint8Array>) => {
    const onBroken = once(() =>
      body.error(
        signal.aborted ? signal.reason : connectionError(undefined, { target, sent: true }),
      )
    );
    message.pause();
    message.on("data", (piece: Uint8Array) => {
      if (hasEnded) return;
      body.enqueue(piece);
      if ((body.desiredSize ?? 0) <= 0) message.pause();
    });
    message.on("end", once(() => body.close()));
    message.on("error", onBroken);
    message.on("close", onBroken);
  };
  return new ReadableStream<Uint8Array>({
    start,
    pull: () => void message.resume(),
    cancel: once(() => message.destroy()),
  }, new ByteLengthQueuingStrategy({ highWaterMark: READ_AHEAD_BYTES }));
}

async function systemLookup(host: string): Promise<readonly LookupAddress[]> {
  const { lookup } = await import("node:dns/promises");
  return await lookup(host, { all: true });
}

function refusedError(
  host: string,
  why: string,
  hint = "Nothing was sent; only addresses that you configured may be private",
): PmlError {
  return new PmlError("PERMISSION_DENIED", `Cannot reach ${quoted(host)}: ${why}`, {
    hint,
    detail: { may_have_run: false },
  });
}

function badAnswerError({ host }: FetchTarget, why: string): PmlError {
  return new PmlError("UPSTREAM_PROTOCOL", `Cannot read the answer of ${quoted(host)}: ${why}`, {
    detail: { may_have_run: true },
  });
}

/** The codes of names without an address: the host does not exist, or this machine is offline. */
const UNRESOLVED_CODES: readonly string[] = ["ENOTFOUND", "EAI_AGAIN"];

/** The codes of failed connections. Their messages name the port. */
const CODES_WITH_PORT: readonly string[] = ["ECONNREFUSED", "ETIMEDOUT"];

/** TLS alerts of a server that requires or refuses a client certificate. */
const WANTS_CERTIFICATE = /_ALERT_(?:.*CERT|UNKNOWN_CA|ACCESS_DENIED)/;

/**
 * Converts an error of the platform. Does not set it as `cause`, because it may repeat the request.
 */
function connectionError(
  error: unknown,
  { target: { host, url, proxy }, sent: wasSent }: {
    readonly target: FetchTarget;
    readonly sent: boolean;
  },
): PmlError {
  if (error instanceof PmlError) return error;
  const { code = "", errors: [first] = [] } = Object(error);
  const errorCode: string = code || (first?.code ?? "");
  const needsCertificate = WANTS_CERTIFICATE.test(errorCode);
  const sent = wasSent && !needsCertificate;
  const why = CONNECTION_PROBLEMS[errorCode] ??
    (needsCertificate
      ? `it requires a client certificate that it trusts (${errorCode})`
      : /CERT|TLS|SSL|ALTNAME|VERIFY|ISSUER/.test(errorCode)
      ? `its certificate is not valid (${errorCode})`
      : `the connection ${sent ? "broke" : "could not be made"}${errorCode && ` (${errorCode})`}`);
  const through = proxy ? ` through the proxy ${quoted(proxy.url.host)}` : "";
  // Errors of name lookup do not depend on the port.
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  const where = CODES_WITH_PORT.includes(errorCode) ? `${url.hostname}:${port}` : host;
  return new PmlError("UPSTREAM_DOWN", `Cannot reach ${quoted(where)}${through}: ${why}`, {
    hint: needsCertificate
      ? "Set cert and key next to its url in your config.yaml"
      : sent
      ? "It may have arrived; check before you send it again"
      : "Nothing was sent; try again when it can be reached",
    detail: {
      may_have_run: sent,
      ...UNRESOLVED_CODES.includes(errorCode) && { unresolved: true },
    },
  });
}
