/**
 * Sends requests to a registry, with limits on origin, size and time.
 *
 * @module
 */

import type { Progress } from "../protocol/call.ts";
import { durationText } from "../core/amounts.ts";
import { keyHint, PmlError } from "../core/errors.ts";
import type { Fetch } from "../core/fetch.ts";
import { quoted, visible, withoutUndefined } from "../core/json.ts";
import { exceededLimit } from "../core/json_bounds.ts";
import { parseExact } from "../core/exact_json.ts";
import { parseJsonBytes } from "../core/utf8.ts";
import { joinBytes } from "../io/lines.ts";
import { pause, unlessAborted } from "../io/waiting.ts";

/** The access of the user to one registry. */
export interface RegistryCredentials {
  /** Whether the registry is the hub of `cloud.url`, whose token is PML_API_KEY. */
  readonly isHub: boolean;
  /** Returns the current token for this registry. It is sent to the registry's origin only. */
  token(): string | undefined;
}

/** The network and the limits of a registry client. */
export interface RegistryClientOptions {
  readonly fetch: Fetch;
  readonly access?: RegistryCredentials | undefined;
  /** How long the client waits before its first retry, in milliseconds. */
  readonly retryMs?: number | undefined;
  /** The time limit for an entry or a page of PML's own API, in milliseconds. */
  readonly lookMs?: number | undefined;
}

/** The options of one request. */
export interface GetOptions {
  /** The only content type to accept. */
  readonly type: "application/json" | "application/typescript";
  readonly maxBytes: number;
  /** The time limit for all attempts together, in milliseconds. */
  readonly ms: number;
  readonly signal: AbortSignal;
  readonly etag?: string | undefined;
  /** Called with the number of received bytes, and the total if it is known. */
  readonly onBytes?: ((progress: Progress) => void) | undefined;
}

/** The result of a successful request. */
export type GetResult =
  | { readonly kind: "found"; readonly bytes: Uint8Array; readonly etag: string | undefined }
  | { readonly kind: "unchanged" }
  | { readonly kind: "missing" };

interface GetAttempt extends GetOptions {
  readonly path: string;
}

/** The maximum number of retries, and the average pause before the first one, in milliseconds. */
const RETRIES = 2;
const RETRY_MS = 200;
const REDIRECTS = 3;
const REDIRECTING = [301, 302, 303, 307, 308];
const LONGEST_ETAG = 200;
const TYPE = /^(application\/(?:json|typescript))(?:\s*;\s*charset="?utf-8"?)?$/i;
const TOKEN = /^[\x21-\x7e]{1,8192}$/;

/** Sends requests to one registry. */
export class RegistryClient {
  /** The URL as configured. */
  readonly url: string;
  readonly #base: URL;
  readonly #options: RegistryClientOptions;

  /** Creates a client for a URL that was already validated. Does not connect yet. */
  constructor(url: string, options: RegistryClientOptions) {
    this.url = url;
    this.#base = new URL(url.replace(/^mcp\+/, ""));
    this.#options = options;
  }

  /**
   * Requests a path below the registry's URL. A path that begins with `?` is a query of the URL.
   */
  async get(path: string, options: GetOptions): Promise<GetResult> {
    const { signal, ms } = options;
    const timeout = AbortSignal.timeout(ms);
    const both = AbortSignal.any([signal, timeout]);
    const until = performance.now() + ms;
    for (let retries = 0;; retries++) {
      const answered = await untilAborted(this.#follow({ ...options, path, signal: both }), both)
        .catch((error) =>
          signal.aborted
            ? reasonOf(signal)
            : timeout.aborted
            ? this.#offline(`no answer within ${durationText(ms)}`)
            : this.#failure(error)
        );
      if (!(answered instanceof PmlError)) return answered;
      const wait = (this.#options.retryMs ?? RETRY_MS) * 3 ** retries * (0.5 + Math.random());
      // Without a network, a retry would only delay the first search of each process.
      const isLast = isUnresolved(answered) || retries === RETRIES ||
        performance.now() + wait >= until;
      if (answered.code !== "REGISTRY_OFFLINE" || isLast) throw answered;
      await pause(wait, both);
    }
  }

  /** Parses bytes as JSON. Throws REGISTRY_BAD_RESPONSE if they are not valid. */
  json(bytes: Uint8Array): unknown {
    const excess = exceededLimit(bytes);
    if (excess !== undefined) throw this.badResponse(excess);
    try {
      return parseJsonBytes(bytes, parseExact);
    } catch (cause) {
      throw this.badResponse("its response is not JSON", { cause });
    }
  }

  /** Returns the error for an unusable response. */
  badResponse(why: string, { hint, cause }: { hint?: string; cause?: unknown } = {}): PmlError {
    return new PmlError("REGISTRY_BAD_RESPONSE", `Cannot use ${this.#name()}: ${why}`, {
      hint: hint ?? "Report it to the registry's owner; PML did not use the response",
      cause,
    });
  }

  /** Follows redirects within the registry's origin. Throws for all other redirects. */
  async #follow(attempt: GetAttempt): Promise<GetResult> {
    const { origin, pathname } = this.#base;
    let url = `${origin}${pathname.replace(/\/+$/, "")}${attempt.path}`;
    for (let hops = 0;; hops++) {
      const response = await this.#options.fetch(url, {
        headers: this.#headers(attempt),
        signal: attempt.signal,
        named: new Set([this.#base.host]),
      });
      if (!REDIRECTING.includes(response.status)) return await this.#answer(response, attempt);
      await response.body?.cancel();
      const location = response.headers.get("location");
      const to = location === null ? null : URL.parse(location, url);
      const isSame = to?.origin === origin && to.username === "" && to.password === "";
      // guard: registry-redirect
      if (to === null || !isSame) throw this.badResponse("it redirects to another origin");
      if (hops === REDIRECTS) throw this.badResponse(`it redirects more than ${REDIRECTS} times`);
      url = to.href;
    }
  }

  #headers({ type, etag }: GetAttempt): Record<string, string> {
    const token = this.#options.access?.token();
    if (token !== undefined && !TOKEN.test(token)) {
      throw new PmlError("KEY_MISSING", `Cannot ask ${this.#name()}: its token cannot be sent`, {
        hint: "Remove characters that are invalid in a token from its token_env variable",
      });
    }
    const authorization = token && `Bearer ${token}`;
    return withoutUndefined({ "accept": type, authorization, "if-none-match": etag });
  }

  async #answer(response: Response, attempt: GetAttempt): Promise<GetResult> {
    const { status, headers } = response;
    if (status === 200) {
      const etag = headers.get("etag") ?? undefined;
      const bytes = await this.#body(response, attempt);
      return { kind: "found", bytes, etag: isEtag(etag) ? etag : undefined };
    }
    await response.body?.cancel();
    if (status === 404) return { kind: "missing" };
    if (status === 304 && attempt.etag !== undefined) return { kind: "unchanged" };
    if (status === 429 || status >= 500) throw this.#offline(`it answers ${status}`);
    if (status !== 401 && status !== 403) throw this.badResponse(`it answers ${status}`);
    throw this.#denied(status);
  }

  /** Returns the error of a request that lacks a valid token. */
  #denied(status: 401 | 403): PmlError {
    const { access } = this.#options;
    const hasToken = access?.token() !== undefined;
    if (status === 401 && access?.isHub === true) {
      return hasToken
        ? this.badResponse("it rejects PML_API_KEY", { hint: "Ask its operator for a valid key" })
        : this.badResponse("it requires PML_API_KEY", { hint: keyHint("PML_API_KEY") });
    }
    const hint = hasToken
      ? "Check the value of the variable in its token_env"
      : "Set token_env of the registry to the variable of your token, or cloud.url to the hub " +
        "of your PML_API_KEY";
    return this.badResponse(`it answers ${status}`, { hint });
  }

  async #body(response: Response, { type, maxBytes, onBytes, signal }: GetAttempt) {
    const { headers, body } = response;
    const [, mediaType] = TYPE.exec(headers.get("content-type") ?? "") ?? [];
    const encoding = headers.get("content-encoding") ?? "identity";
    const total = Number(headers.get("content-length") ?? Number.NaN);
    const why = mediaType?.toLowerCase() !== type
      ? `its content type is ${quoted(headers.get("content-type") ?? "")}, wanted "${type}"`
      : encoding !== "identity"
      ? "its response is compressed, which PML did not request"
      : total > maxBytes
      ? `its response is longer than ${maxBytes} bytes`
      : undefined;
    const parts: Uint8Array[] = [];
    let length = 0;
    if (why !== undefined) {
      await body?.cancel();
      throw this.badResponse(why);
    }
    // Leaving the loop cancels the rest of the body.
    for await (const piece of body ?? []) {
      length += piece.length;
      if (length > maxBytes) {
        throw this.badResponse(`its response is longer than ${maxBytes} bytes`);
      }
      parts.push(piece);
      signal.throwIfAborted();
      onBytes?.({ progress: length, ...(Number.isNaN(total) ? {} : { total }) });
    }
    return joinBytes(parts);
  }

  /**
   * Converts any error to REGISTRY_OFFLINE or REGISTRY_BAD_RESPONSE, except for PML's own errors.
   */
  #failure(error: unknown): PmlError {
    if (!(error instanceof PmlError)) return this.#offline("the connection broke", error);
    const why = error.message.replace(/^.*?: /s, "");
    if (error.code === "UPSTREAM_DOWN") return this.#offline(why, error);
    const isOurs = /^REGISTRY_|^(?:KEY_MISSING|CONFIG_INVALID)$/.test(error.code);
    return isOurs ? error : this.badResponse(why, { cause: error });
  }

  #offline(why: string, cause?: unknown): PmlError {
    return offlineError(this.url, { why, cause });
  }

  #name(): string {
    return `the registry ${quoted(this.url, 200)}`;
  }
}

/** Returns whether a request failed because the name of the host has no address. */
function isUnresolved({ cause }: PmlError): boolean {
  return cause instanceof PmlError && cause.detail?.unresolved === true;
}

/** Returns the error for a registry that cannot be reached. */
export function offlineError(
  url: string,
  { why, cause }: { readonly why: string; readonly cause?: unknown },
): PmlError {
  const message = `Cannot reach the registry ${quoted(url, 200)}: ${visible(why)}`;
  return new PmlError("REGISTRY_OFFLINE", message, {
    hint: "Try again later; cached servers still work",
    cause,
  });
}

/** Waits for a promise until a signal aborts, even if the work ignores the signal. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return await unlessAborted(work, signal, reasonOf);
}

function reasonOf({ reason }: AbortSignal): PmlError {
  if (reason instanceof PmlError) return reason;
  return new PmlError("CANCELLED", "Cannot finish the request to a registry: it was cancelled");
}

function isEtag(etag: string | undefined): boolean {
  return etag !== undefined && etag.length <= LONGEST_ETAG &&
    /^(W\/)?"[\x21\x23-\x7e]*"$/.test(etag);
}
