/**
 * Requires a client key for every read of a hub. Each request checks its key in the store, so a
 * revoked key is refused at once. Streams that are open with that key end within some seconds.
 *
 * @module
 */

import { errorResponse, type RegistryResponse } from "@casys/pml/registry";
import type { HubRequest, HubResponse } from "../http/exchange.ts";
import type { StoreAdmin } from "../store/store.ts";
import { bearerOf, keyHashOf } from "../write/key.ts";

/** A function that answers a request. */
type Handler = (request: HubRequest) => Promise<HubResponse>;

/** A request that may have an open stream as its answer. */
interface OpenRequest {
  readonly hash: string;
  readonly request: HubRequest;
  readonly revoked: AbortController;
}

/** The time between two checks of the keys of open streams, in milliseconds. */
const CHECK_INTERVAL_MS = 2_000;
const BASIC_HEADER = /^basic +([A-Za-z0-9+/]+=*)$/i;
const HTML_TYPE = /\btext\/html\b/i;
const KEY_HINT = "The hub's operator creates one with `pml-hub key add ORGANISATION --client`. " +
  "In PML, set PML_API_KEY to the key, and cloud.url to this hub";

/** Lets only clients with a key read a hub. */
export class ClientKeys implements Disposable {
  readonly #admin: Pick<StoreAdmin, "isClientKey">;
  readonly #open = new Set<OpenRequest>();
  #timer: ReturnType<typeof setInterval> | undefined;

  /** Creates an instance that looks up keys with `admin`. */
  constructor(admin: Pick<StoreAdmin, "isClientKey">) {
    this.#admin = admin;
  }

  /**
   * Passes a request with a valid key on to `answer`, and answers every other request with status
   * 401. With `isOpenEnded`, the answer may be a stream, which ends when the key is revoked.
   */
  async guard(
    request: HubRequest,
    { isOpenEnded, answer }: { readonly isOpenEnded: boolean; readonly answer: Handler },
  ): Promise<HubResponse> {
    const key = keyOf(request);
    const hash = keyHashOf(key, "client");
    if (hash === undefined || !await this.#admin.isClientKey(hash)) {
      return unauthorized(request, key);
    }
    return isOpenEnded
      ? await this.#answerUntilRevoked({ request, hash }, answer)
      : withPrivateCaching(await answer(request));
  }

  /** Stops checking the keys of open streams. */
  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  /** Answers a request, and aborts its signal when the key is revoked. */
  async #answerUntilRevoked(
    { request, hash }: Pick<OpenRequest, "request" | "hash">,
    answer: Handler,
  ): Promise<HubResponse> {
    const revoked = new AbortController();
    this.#open.add({ request, hash, revoked });
    this.#timer ??= setInterval(() => void this.#checkOpenRequests(), CHECK_INTERVAL_MS);
    const signal = AbortSignal.any([request.signal, revoked.signal]);
    try {
      return await answer({ ...request, signal });
    } catch (error) {
      if (revoked.signal.aborted) return unauthorized(request, keyOf(request));
      throw error;
    }
  }

  async #checkOpenRequests(): Promise<void> {
    for (const entry of this.#open) if (entry.request.isOver()) this.#open.delete(entry);
    if (this.#open.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    for (const [hash, entries] of Map.groupBy(this.#open, (entry) => entry.hash)) {
      // If the store does not answer now, the next check asks it again.
      if (await this.#admin.isClientKey(hash).catch(() => true)) continue;
      for (const entry of entries) {
        entry.revoked.abort();
        this.#open.delete(entry);
      }
    }
  }
}

/**
 * Returns the key of a request. For GET and HEAD, a browser may send the key as the password of HTTP
 * Basic authentication, with any user name.
 */
function keyOf({ method, headers: { authorization } }: HubRequest): string | undefined {
  const [, basic] = BASIC_HEADER.exec(authorization ?? "") ?? [];
  if (basic === undefined || method !== "GET" && method !== "HEAD") return bearerOf(authorization);
  try {
    return new TextDecoder().decode(Uint8Array.fromBase64(basic)).split(/:(.*)/s)[1];
  } catch {
    return undefined; // the header is not valid base64
  }
}

function unauthorized(
  { method, accept = "" }: HubRequest,
  key: string | undefined,
): RegistryResponse {
  const why = key === undefined
    ? "This hub requires a client key"
    : keyHashOf(key, "publisher") !== undefined
    ? "This is a publisher key; reading this hub requires a client key"
    : "The key is unknown or was revoked";
  const isPage = method === "GET" && HTML_TYPE.test(accept);
  return errorResponse(401, "unauthorized", {
    message: `${why}. ${KEY_HINT}`,
    headers: {
      "www-authenticate": isPage ? 'Basic realm="pml-hub", charset="UTF-8"' : "Bearer",
      "cache-control": "no-store",
    },
  });
}

/** Returns an answer that shared caches do not store, because it depends on the key. */
function withPrivateCaching(response: HubResponse): HubResponse {
  if (response instanceof Response) return response;
  const { "cache-control": caching, vary } = response.headers;
  return {
    ...response,
    headers: {
      ...response.headers,
      ...caching !== undefined && { "cache-control": caching.replace(/^public\b/, "private") },
      vary: vary === undefined ? "authorization" : `${vary}, authorization`,
    },
  };
}
