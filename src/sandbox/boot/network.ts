/**
 * Fetches for a module, only from the hosts of its net grants and never from private addresses.
 *
 * @module
 */

import { isLiteral, isPrivate } from "../../core/address.ts";
import { CONNECTION_PROBLEMS } from "../../core/fetch.ts";
import type { HostStart } from "./message.ts";
import type { HostFunction, HostRequestContext } from "./host_function.ts";
import { quotedPath, refusalOf, type SandboxRefusal } from "./refusal.ts";

const REDIRECTS_MAX = 10;
/** Headers that are not sent to another origin. */
const SECRET_HEADERS = ["authorization", "cookie", "proxy-authorization"];
const { ECONNREFUSED = "", ETIMEDOUT = "" } = CONNECTION_PROBLEMS;
const BROKEN = "the connection broke before the end of its answer";
/** The reasons in Deno's errors, and the words of messages for them. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/^.* refused.*$/s, ECONNREFUSED],
  [/^.*\(os error (?:60|110|10060)\)$/s, ETIMEDOUT],
  [/^tcp connect error: /, ""],
  [/^invalid peer certificate: (.*)$/s, "its certificate is not valid ($1)"],
  [/^received corrupt message.*$/s, "its answer is not TLS: it may need http"],
  [/^invalid HTTP version parsed$/, "its answer is not HTTP: it may need https"],
  [/^connection closed before message completed$/, "it closed the connection without an answer"],
];

/** A request as the Worker sends it. */
interface FetchArguments {
  readonly url: string;
  readonly method: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Uint8Array<ArrayBuffer> | undefined;
  readonly redirect: RequestRedirect;
}

/** The network of a module. */
export class Network {
  /** The request `fetch`. The Worker has already read the body of its argument. */
  readonly ops: Readonly<Record<string, HostFunction>> = {
    fetch: ([request], context) => this.#fetch(Object(request), context),
  };
  readonly #start: HostStart;

  /** Creates an instance with the grants. */
  constructor(start: HostStart) {
    this.#start = start;
  }

  async #fetch(args: FetchArguments, { signal }: HostRequestContext): Promise<unknown> {
    let { url, method, body } = args;
    const headers = new Headers([...args.headers].map(([name, value]) => [name, value]));
    for (let hops = 0; hops <= REDIRECTS_MAX; hops++) {
      const target = new URL(url);
      const init = { method, headers, redirect: "manual", signal, ...(body && { body }) } as const;
      const response = await this.#send(target, init);
      const next = response.headers.get("location");
      if (next === null || !isRedirect(response) || args.redirect === "manual") {
        return await this.#toParts(response, { url, redirected: hops > 0 });
      }
      await response.body?.cancel();
      if (args.redirect === "error") throw new TypeError("the server redirects");
      const to = new URL(next, target);
      if (to.origin !== target.origin) { for (const name of SECRET_HEADERS) headers.delete(name); }
      if (target.protocol === "https:" && to.protocol !== "https:") {
        throw denied(to, "it is not https");
      }
      if (response.status === 303 || (response.status < 303 && method === "POST")) {
        method = method === "HEAD" ? method : "GET";
        body = undefined;
        headers.delete("content-type");
      }
      url = to.href;
    }
    throw new TypeError(`the server redirects more than ${REDIRECTS_MAX} times`);
  }

  async #send(target: URL, init: RequestInit): Promise<Response> {
    await this.#assertAllowed(target);
    try {
      return await fetch(target, init);
    } catch (error) {
      throw connectionError(error, target);
    }
  }

  async #assertAllowed(url: URL): Promise<void> {
    const { protocol, hostname, username, password } = url;
    const { net } = this.#start;
    if (protocol !== "https:" && protocol !== "http:") {
      throw denied(url, "it is neither https nor http");
    }
    if (username !== "" || password !== "") throw denied(url, "it carries a password");
    const host = hostOf(url);
    const isGranted = net.includes(host);
    if (isGranted && isLiteral(hostname)) return;
    if (!isGranted && (!net.includes("*") || !host.endsWith(":443"))) {
      throw denied(url, `this module has no net grant for ${host}`);
    }
    // Deno can deny ranges of IPv4 when it connects, but only single addresses of IPv6.
    for (const address of await addressesOf(url)) {
      if (await isPrivate(address)) throw denied(url, "its address is not public");
    }
  }

  async #toParts(response: Response, more: object): Promise<unknown> {
    const { status, statusText } = response;
    const headers = [...response.headers];
    const body = await this.#readBody(response).catch((error) => {
      throw error instanceof TypeError ? unreachable(new URL(response.url), BROKEN) : error;
    });
    return { status, statusText, headers, body, ...more };
  }

  async #readBody(response: Response): Promise<Uint8Array> {
    const { resultBytes } = this.#start;
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    let size = 0;
    const { origin } = new URL(response.url);
    for await (const piece of response.body ?? []) {
      size += piece.length;
      pieces.push(piece);
      if (size > resultBytes) {
        const why = `its body has more than ${resultBytes} bytes`;
        throw refusalOf("RESULT_TOO_LARGE", { op: "fetch", requestedPath: origin }, why);
      }
    }
    return new Uint8Array(await new Blob(pieces).arrayBuffer());
  }
}

async function addressesOf(url: URL): Promise<readonly string[]> {
  const { lookup } = await import("node:dns/promises");
  try {
    const addresses = await lookup(url.hostname.replace(/^\[|\]$/g, ""), { all: true });
    return addresses.map(({ address }) => address);
  } catch (error) {
    const { code = "" } = Object(error);
    const why = CONNECTION_PROBLEMS[code] ?? `its name could not be looked up (${code})`;
    throw unreachable(url, why);
  }
}

function hostOf({ hostname, protocol, port }: URL): string {
  return `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
}

function isRedirect({ status }: Response): boolean {
  return [301, 302, 303, 307, 308].includes(status);
}

function denied(url: URL, why: string): SandboxRefusal {
  return refusalOf("SANDBOX_DENIED", { op: "fetch", requestedPath: url.origin }, why);
}

/**
 * Returns the error for a request that got no answer. The message of Deno's error has no reason, and
 * its cause repeats the whole URL, which may contain a key.
 */
function connectionError(error: unknown, url: URL): unknown {
  const { cause } = Object(error);
  if (!(error instanceof TypeError && cause instanceof Error)) return error;
  const [, text = "the connection failed"] = /: client error \(\w+\): (.*)$/s.exec(cause.message) ??
    [];
  return unreachable(
    url,
    REASONS.reduce((why, [pattern, words]) => why.replace(pattern, words), text),
  );
}

function unreachable(url: URL, why: string): TypeError {
  return new TypeError(`Cannot reach ${quotedPath(hostOf(url))}: ${why}`);
}
