/**
 * Fetches for a module, only from the hosts of its net grants and never from private addresses.
 *
 * @module
 */

import { isLiteral, isPrivate } from "../../core/address.ts";
import type { HostStart } from "./message.ts";
import type { HostFunction, HostRequestContext } from "./host_function.ts";
import { refusalOf, type SandboxRefusal } from "./refusal.ts";

const REDIRECTS_MAX = 10;
/** Headers that are not sent to another origin. */
const SECRET_HEADERS = ["authorization", "cookie", "proxy-authorization"];

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
      await this.#assertAllowed(target);
      const init = { method, headers, redirect: "manual", signal, ...(body && { body }) } as const;
      const response = await fetch(target, init);
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

  async #assertAllowed(url: URL): Promise<void> {
    const { protocol, hostname, port, username, password } = url;
    const { net } = this.#start;
    if (protocol !== "https:" && protocol !== "http:") {
      throw denied(url, "it is neither https nor http");
    }
    if (username !== "" || password !== "") throw denied(url, "it carries a password");
    const host = `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
    const isGranted = net.includes(host);
    if (isGranted && isLiteral(hostname)) return;
    if (!isGranted && (!net.includes("*") || !host.endsWith(":443"))) {
      throw denied(url, `this module has no net grant for ${host}`);
    }
    // Deno can deny ranges of IPv4 when it connects, but only single addresses of IPv6.
    const { lookup } = await import("node:dns/promises");
    const addresses = await lookup(hostname.replace(/^\[|\]$/g, ""), { all: true });
    for (const { address } of addresses) {
      if (await isPrivate(address)) throw denied(url, "its address is not public");
    }
  }

  async #toParts(response: Response, more: object): Promise<unknown> {
    const { status, statusText } = response;
    const headers = [...response.headers];
    return { status, statusText, headers, body: await this.#readBody(response), ...more };
  }

  async #readBody(response: Response): Promise<Uint8Array> {
    const { resultBytes } = this.#start;
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    let size = 0;
    for await (const piece of response.body ?? []) {
      size += piece.length;
      pieces.push(piece);
      if (size > resultBytes) {
        const why = `its body has more than ${resultBytes} bytes`;
        throw refusalOf("RESULT_TOO_LARGE", { op: "fetch", requestedPath: response.url }, why);
      }
    }
    return new Uint8Array(await new Blob(pieces).arrayBuffer());
  }
}

function isRedirect({ status }: Response): boolean {
  return [301, 302, 303, 307, 308].includes(status);
}

function denied(url: URL, why: string): SandboxRefusal {
  return refusalOf("SANDBOX_DENIED", { op: "fetch", requestedPath: url.origin }, why);
}
