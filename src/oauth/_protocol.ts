/**
 * Sends OAuth requests through the guarded network access: a sign-in follows no redirects, reads
 * only short answers, and reaches only hosts that its server may refer to.
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

/** The OAuth library. The first sign-in loads it. */
type OAuthLibrary = typeof import("oauth4webapi");
type ProtectedServer = Omit<OAuthServer, "oauth">;

/** Network access. */
export interface OAuthNetwork {
  readonly fetch: Fetch;
  /** Returns an error without secrets, which an answer may repeat. */
  clean?(error: PmlError): unknown;
}

const MOST_BYTES = 256 << 10;
const LIMITS = { lineBytes: MOST_BYTES, resultBytes: MOST_BYTES };
const MOST_MS = 15_000;

/** Returns an answer without null or empty members, which some servers send in place of none. */
export function withoutAbsent(
  answer: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const isPresent = ([, value]: readonly [string, unknown]) => value !== null && value !== "";
  return Object.fromEntries(Object.entries(answer).filter(isPresent));
}

/** Sends the OAuth requests of one server. */
export class Protocol {
  readonly server: ProtectedServer;
  readonly library: OAuthLibrary;
  readonly #network: OAuthNetwork;
  /** Whether the server is on this machine. */
  readonly #isLocal: boolean;

  private constructor(server: ProtectedServer, library: OAuthLibrary, network: OAuthNetwork) {
    this.server = server;
    this.library = library;
    this.#network = network;
    this.#isLocal = isLoopback(new URL(server.url).hostname);
  }

  /** Loads the library, and creates the protocol of a server. */
  static async open(server: ProtectedServer, network: OAuthNetwork): Promise<Protocol> {
    return new Protocol(server, await import("oauth4webapi"), network);
  }

  /** Sends a request and reads the whole answer. */
  async ask(url: string, options: Omit<FetchOptions, "named">): Promise<Response> {
    const signal = AbortSignal.any([options.signal, AbortSignal.timeout(MOST_MS)]);
    const access = { named: this.#namedFor(url), certificates: this.server.certificates };
    const { body, status, headers } = await this.#network.fetch(url, {
      ...options,
      ...access,
      signal,
    });
    const bytes = new Uint8Array(await readBytes(body, { limits: LIMITS }));
    return new Response(body && bytes, { status, headers });
  }

  /** Returns the request options for the library. */
  options<M, B = URLSearchParams>(signal: AbortSignal): HttpRequestOptions<M, B> {
    const { customFetch, allowInsecureRequests } = this.library;
    return {
      signal,
      [allowInsecureRequests]: this.#isLocal,
      [customFetch]: async (url: string, { method, headers, body }: {
        readonly method: M;
        readonly headers: Record<string, string>;
        readonly body?: unknown;
      }) => {
        const response = await this.ask(url, {
          method: `${method}`,
          headers,
          signal,
          ...body !== undefined && { body: `${body}` },
        });
        const { status } = response;
        if (status >= 500 || status === 429) {
          const why = `${quoted(new URL(url).host)} answered with the status ${status}`;
          throw this.error("UPSTREAM_DOWN", why, "Try again later");
        }
        // The new response has no headers: the body describes errors. PML does not use the identity
        // of the user, so the ID token is removed and not checked.
        const json: unknown = await response.json().catch(() => undefined);
        const answer = withoutAbsent(objectOf(json));
        // The library expects exactly 200. Some servers answer 201, or report an error with 200.
        const isError = typeof answer.error === "string";
        const expectedStatus = response.ok ? (isError ? 400 : 200) : status;
        return Response.json({ ...answer, id_token: undefined }, { status: expectedStatus });
      },
    } as HttpRequestOptions<M, B>; // the library has a separate type for each method
  }

  /**
   * Returns the authorization endpoint for the browser. Throws if the server may not refer to it.
   */
  async forBrowser(as: AuthorizationServer): Promise<URL> {
    const url = URL.parse(as.authorization_endpoint ?? "");
    const isSafe = url?.protocol === "https:" ||
      url?.protocol === "http:" && this.#isLocal && isLoopback(url.hostname);
    // guard: login-page
    if (url === null || !isSafe || url.username + url.password !== "") {
      throw this.error("UPSTREAM_PROTOCOL", "it has no sign-in page that uses https");
    }
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const isNamed = this.#namedFor(url.href).has(url.host) || this.server.named.has(url.hostname);
    // guard: sign-in-private-page
    if (!isNamed && (isLoopback(host) || isLiteral(url.hostname) && await isPrivate(host))) {
      throw this.error("PERMISSION_DENIED", `it leads the browser to ${quoted(url.host)}`);
    }
    return url;
  }

  /** Runs a part of a sign-in. Throws only `PmlError`, with the name of the server. */
  async act<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const failure = this.#toPmlError(error);
      throw this.#network.clean?.(failure) ?? failure;
    }
  }

  /** Creates an error of this sign-in. */
  error(code: PmlError["code"], why: string, hint?: string): PmlError {
    const message = `Cannot sign in at ${quoted(this.server.name)}: ${why}`;
    return new PmlError(code, message, {
      hint: hint ?? "Nothing was signed in; tell the operator of the server",
      detail: { server: this.server.name, may_have_run: false },
    });
  }

  /** Returns the text of an authorization server's error, with its code and description. */
  errorText(error: unknown): string {
    const { error: code, error_description: description, cause } = Object(error);
    const text = textOf(description ?? cause?.error_description);
    return `its authorization server answered ${quoted(textOf(code))}${
      text && `, ${quoted(text, 300)}`
    }`;
  }

  #toPmlError(error: unknown): PmlError {
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
      this.errorText(error),
    );
  }

  /**
   * Returns the hosts that a request to a URL may reach although they are private. A server on this
   * machine may refer to any endpoint on this machine.
   */
  #namedFor(url: string): ReadonlySet<string> {
    const { hostname = "", host = "" } = URL.parse(url) ?? {};
    // guard: sign-in-private
    return this.#isLocal && isLoopback(hostname) ? new Set([host]) : this.server.named;
  }
}
