/**
 * Requires a key of a client for everything that a hub offers. The store is asked for each request,
 * so a revoked key is refused from then on; open streams end within some seconds.
 *
 * @module
 */

import { errorResponse, type RegistryResponse } from "@casys/pml/registry";
import type { HubRequest, HubResponse } from "../http/exchange.ts";
import type { Desk } from "../store/store.ts";
import { bearerOf, keyHashOf } from "../write/key.ts";

/** Answers a request. */
type Answering = (request: HubRequest) => Promise<HubResponse>;

/** A request that may be answered with a stream. */
interface OpenRequest {
  readonly hash: string;
  readonly request: HubRequest;
  readonly revoked: AbortController;
}

/** How often the keys of open streams are looked at. */
const LOOK_MS = 2_000;
const BASIC = /^basic +([A-Za-z0-9+/]+=*)$/i;
const PAGE = /\btext\/html\b/i;
const HOW = "Its operator makes one with `pml-hub key add ORGANISATION --client`; " +
  "in PML it is PML_API_KEY, and cloud.url names this hub";

/** Lets only clients with a key read a hub. */
export class ClientKeys implements Disposable {
  readonly #desk: Pick<Desk, "isClientKey">;
  readonly #open = new Set<OpenRequest>();
  #timer: ReturnType<typeof setInterval> | undefined;

  /** Takes the desk of the store that has the keys. */
  constructor(desk: Pick<Desk, "isClientKey">) {
    this.#desk = desk;
  }

  /** Answers a request that comes with a valid key, else 401. */
  async guard(
    request: HubRequest,
    { isOpenEnded, answer }: { readonly isOpenEnded: boolean; readonly answer: Answering },
  ): Promise<HubResponse> {
    const key = keyOf(request);
    const hash = keyHashOf(key, "client");
    if (hash === undefined || !await this.#desk.isClientKey(hash)) return refusal(request, key);
    return isOpenEnded
      ? await this.#watched({ request, hash }, answer)
      : hidden(await answer(request));
  }

  /** Looks at no more keys. */
  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  /** Answers a request whose signal aborts when the key is revoked. */
  async #watched(
    { request, hash }: Pick<OpenRequest, "request" | "hash">,
    answer: Answering,
  ): Promise<HubResponse> {
    const revoked = new AbortController();
    this.#open.add({ request, hash, revoked });
    this.#timer ??= setInterval(() => void this.#look(), LOOK_MS);
    const signal = AbortSignal.any([request.signal, revoked.signal]);
    try {
      return await answer({ ...request, signal });
    } catch (error) {
      if (revoked.signal.aborted) return refusal(request, keyOf(request));
      throw error;
    }
  }

  async #look(): Promise<void> {
    for (const one of this.#open) if (one.request.isOver()) this.#open.delete(one);
    if (this.#open.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    for (const [hash, all] of Map.groupBy(this.#open, (one) => one.hash)) {
      // A store that does not answer now is asked again.
      if (await this.#desk.isClientKey(hash).catch(() => true)) continue;
      for (const one of all) {
        one.revoked.abort();
        this.#open.delete(one);
      }
    }
  }
}

/** Returns the key of a request. For reading, a browser may send it as the password of any user. */
function keyOf({ method, headers: { authorization } }: HubRequest): string | undefined {
  const [, basic] = BASIC.exec(authorization ?? "") ?? [];
  if (basic === undefined || method !== "GET" && method !== "HEAD") return bearerOf(authorization);
  try {
    return new TextDecoder().decode(Uint8Array.fromBase64(basic)).split(/:(.*)/s)[1];
  } catch {
    return undefined; // it is no base64
  }
}

function refusal({ method, accept = "" }: HubRequest, key: string | undefined): RegistryResponse {
  const why = key === undefined
    ? "This hub requires a key of its clients"
    : keyHashOf(key, "publisher") !== undefined
    ? "This key publishes; reading this hub requires a key of its clients"
    : "This hub does not know this key, or it was revoked";
  const isPage = method === "GET" && PAGE.test(accept);
  return errorResponse(401, "unauthorized", {
    message: `${why}. ${HOW}`,
    headers: {
      "www-authenticate": isPage ? 'Basic realm="pml-hub", charset="UTF-8"' : "Bearer",
      "cache-control": "no-store",
    },
  });
}

/** Returns an answer that no shared cache keeps for others. */
function hidden(made: HubResponse): HubResponse {
  if (made instanceof Response) return made;
  const { "cache-control": caching, vary } = made.headers;
  return {
    ...made,
    headers: {
      ...made.headers,
      ...caching !== undefined && { "cache-control": caching.replace(/^public\b/, "private") },
      vary: vary === undefined ? "authorization" : `${vary}, authorization`,
    },
  };
}
