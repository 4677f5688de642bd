/**
 * Speaks OAuth with the guarded way to the network: a sign-in follows no redirect, reads short
 * answers only, and reaches only what its server may lead to.
 *
 * @module
 */

import type { AuthorizationServer, HttpRequestOptions } from "oauth4webapi";
import { isLiteral, isLoopback, isPrivate } from "../core/address.ts";
import { PmlError } from "../core/errors.ts";
import type { Fetch, FetchOptions } from "../core/fetch.ts";
import { objectOf, quoted, textOf } from "../core/json.ts";
import { readBytes } from "../io/event_stream.ts";
import type { OAuthServer } from "./oauth_server.ts";

/** The library, which is loaded by the first sign-in. */
type Library = typeof import("oauth4webapi");
type Server = Omit<OAuthServer, "oauth">;

/** The way to the network. */
export interface Way {
  readonly fetch: Fetch;
  /** Returns an error without secrets, which an answer may repeat. */
  clean?(error: PmlError): unknown;
}

const MOST_BYTES = 256 << 10;
const LIMITS = { lineBytes: MOST_BYTES, resultBytes: MOST_BYTES };
const MOST_MS = 15_000;

/** Returns an answer without members that are null or empty, which servers write for absent ones. */
export function withoutAbsent(
  answer: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const isPresent = ([, value]: readonly [string, unknown]) => value !== null && value !== "";
  return Object.fromEntries(Object.entries(answer).filter(isPresent));
}

/** Speaks OAuth for one server. */
export class Protocol {
  readonly server: Server;
  readonly library: Library;
  readonly #way: Way;
  readonly #isHere: boolean;

  private constructor(server: Server, library: Library, way: Way) {
    this.server = server;
    this.library = library;
    this.#way = way;
    this.#isHere = isLoopback(new URL(server.url).hostname);
  }

  /** Loads the library. */
  static async open(server: Server, way: Way): Promise<Protocol> {
    return new Protocol(server, await import("oauth4webapi"), way);
  }

  /** Sends a request and reads the whole answer. */
  async ask(url: string, options: Omit<FetchOptions, "named">): Promise<Response> {
    const signal = AbortSignal.any([options.signal, AbortSignal.timeout(MOST_MS)]);
    const way = { named: this.#namedFor(url), certificates: this.server.certificates };
    const { body, status, headers } = await this.#way.fetch(url, { ...options, ...way, signal });
    const bytes = new Uint8Array(await readBytes(body, { limits: LIMITS }));
    return new Response(body && bytes, { status, headers });
  }

  /** Returns what the library sends its requests with. */
  options<M, B = URLSearchParams>(signal: AbortSignal): HttpRequestOptions<M, B> {
    const { customFetch, allowInsecureRequests } = this.library;
    return {
      signal,
      [allowInsecureRequests]: this.#isHere,
      [customFetch]: async (url: string, { method, headers, body }: {
        readonly method: M;
        readonly headers: Record<string, string>;
        readonly body?: unknown;
      }) => {
        const response = await this.ask(url, {
          ...{ method: `${method}`, headers, signal },
          ...body !== undefined && { body: `${body}` },
        });
        const { status } = response;
        if (status >= 500 || status === 429) {
          const why = `${quoted(new URL(url).host)} answered with the status ${status}`;
          throw this.error("UPSTREAM_DOWN", why, "Try again later");
        }
        // The body says what is wrong, not a header. PML does not read who the person is, so that
        // is not checked either.
        const json: unknown = await response.json().catch(() => undefined);
        const answer = withoutAbsent(objectOf(json));
        // The library expects 200 exactly. Some servers answer 201, or report an error with 200.
        const isError = typeof answer.error === "string";
        const plain = response.ok ? (isError ? 400 : 200) : status;
        return Response.json({ ...answer, id_token: undefined }, { status: plain });
      },
    } as HttpRequestOptions<M, B>; // the library names each method's type
  }

  /** Returns the URL of an endpoint, for a browser. Throws if the server may not lead there. */
  async forBrowser(as: AuthorizationServer): Promise<URL> {
    const url = URL.parse(as.authorization_endpoint ?? "");
    const isOpen = url?.protocol === "https:" ||
      url?.protocol === "http:" && this.#isHere && isLoopback(url.hostname);
    // guard: login-page
    if (url === null || !isOpen || url.username + url.password !== "") {
      throw this.error("UPSTREAM_PROTOCOL", "it names no page to sign in at that uses https");
    }
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const isNamed = this.#namedFor(url.href).has(url.host) || this.server.named.has(url.hostname);
    // guard: sign-in-private-page
    if (!isNamed && (isLoopback(host) || isLiteral(url.hostname) && await isPrivate(host))) {
      throw this.error("PERMISSION_DENIED", `it leads the browser to ${quoted(url.host)}`);
    }
    return url;
  }

  /** Does a part of a sign-in. Throws `PmlError` only, with the name of the server. */
  async act<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const failure = this.#failure(error);
      throw this.#way.clean?.(failure) ?? failure;
    }
  }

  /** Returns an error of this sign-in. */
  error(code: PmlError["code"], why: string, hint?: string): PmlError {
    const message = `Cannot sign in at ${quoted(this.server.name)}: ${why}`;
    return new PmlError(code, message, {
      hint: hint ?? "Nothing was signed in; tell the operator of the server",
      detail: { server: this.server.name, may_have_run: false },
    });
  }

  /** Returns the text of an error of an authorization server, with its code and description. */
  answered(error: unknown): string {
    const { error: code, error_description: more, cause } = Object(error);
    const text = textOf(more ?? cause?.error_description);
    return `its authorization server answered ${quoted(textOf(code))}${
      text && `, ${quoted(text, 300)}`
    }`;
  }

  #failure(error: unknown): PmlError {
    const { name, message, error: code } = Object(error);
    if (error instanceof PmlError) {
      if (message.startsWith("Cannot sign in")) return error;
      return this.error(error.code, textOf(message).replace(/^C/, "c"), error.hint);
    }
    if (name === "TimeoutError") {
      return this.error("UPSTREAM_DOWN", "an answer took too long", "Try again later");
    }
    if (typeof code !== "string") return this.error("UPSTREAM_PROTOCOL", quoted(`${message}`, 300));
    return this.error(
      code === "access_denied" ? "APPROVAL_DECLINED" : "UPSTREAM_PROTOCOL",
      this.answered(error),
    );
  }

  /** What lies on this machine may lead to what lies on this machine. */
  #namedFor(url: string): ReadonlySet<string> {
    const { hostname = "", host = "" } = URL.parse(url) ?? {};
    // guard: sign-in-private
    return this.#isHere && isLoopback(hostname) ? new Set([host]) : this.server.named;
  }
}
