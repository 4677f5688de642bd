/**
 * The hub's list of servers that run in the cloud. The list is newer than the one that ships with
 * PML, and only adds names. PML requests it only after a call went to the cloud.
 *
 * @module
 */

import { join } from "node:path";
import type { Keys } from "../../config/keys.ts";
import type { Fetch } from "../../core/fetch.ts";
import { isObject, withoutUndefined } from "../../core/json.ts";
import { boundedJson } from "../../core/json_bounds.ts";
import { isUsableServerName } from "../../core/tool_id.ts";
import { readCache, writeCache } from "../../io/cache_files.ts";
import { readBytes } from "../../io/event_stream.ts";
import type { WarningLog } from "../../io/private_files.ts";

/** The services of PML that requests to the hub use. `Machine` implements it. */
export interface HubHost {
  /** The PML home, in which the list is cached. */
  readonly home: string;
  readonly fetch: Fetch;
  /** The address of the hub, and whether the user configured it. */
  readonly hubAddress: { readonly url: string; readonly isNamed: boolean };
}

/** A list in the cache, and the hub that sent it. */
interface CachedList {
  readonly url: string;
  /** When the list was requested, in milliseconds since 1970. */
  readonly at: number;
  readonly names: ReadonlySet<string>;
}

/** How long a list is used before it is requested again, in milliseconds. */
const FRESH_MS = 3_600_000;
/** How long a request for the list may take, in milliseconds. */
const TIMEOUT_MS = 10_000;
/** The limits of the answer of the hub. */
const LIMITS = { lineBytes: 262_144, resultBytes: 262_144 };
/** The maximum number of names in the list. */
const NAMES_MAX = 5_000;

/** Requests and caches the list of the hub. */
export class HubRouting implements Disposable {
  readonly #host: HubHost;
  readonly #keys: Pick<Keys, "cloud">;
  readonly #log: WarningLog;
  /** The file that caches the list. */
  readonly #file: string;
  readonly #closing = new AbortController();
  #list: CachedList | undefined;
  #asking: Promise<void> | undefined;

  /**
   * Reads the cached list. PML sends the key of the account only to a hub that the user configured.
   */
  constructor(host: HubHost, keys: Pick<Keys, "cloud">, log: WarningLog) {
    this.#host = host;
    this.#keys = keys;
    this.#log = log;
    this.#file = join(host.home, "hub_routing.json");
    const cache = readCache(this.#file);
    const names = isObject(cache) ? namesIn(cache) : undefined;
    if (!isObject(cache) || names === undefined) return;
    this.#list = { url: String(cache.url), at: Number(cache.at), names };
  }

  /** Returns whether the hub's list contains a server. */
  has(server: string): boolean {
    return this.#current?.names.has(server) === true;
  }

  /** Requests the list if it is older than an hour. Never throws. No call waits for the list. */
  refresh(): Promise<void> {
    const age = Date.now() - (this.#current?.at ?? 0);
    if (age >= 0 && age < FRESH_MS) return Promise.resolve();
    this.#asking ??= this.#ask().catch((error) => {
      if (this.#closing.signal.aborted) return;
      this.#log.warn(
        `Cannot use the list of cloud servers of the hub: ${error.message || "it is too long"}`,
      );
    }).finally(() => this.#asking = undefined);
    return this.#asking;
  }

  /** Stops a running request. */
  [Symbol.dispose](): void {
    this.#closing.abort();
  }

  /** The cached list; undefined if there is none, or if it is from another hub. */
  get #current(): CachedList | undefined {
    return this.#list?.url === this.#host.hubAddress.url ? this.#list : undefined;
  }

  async #ask(): Promise<void> {
    const { fetch, hubAddress: { url, isNamed } } = this.#host;
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const named = new Set(isNamed ? [new URL(url).host] : []);
    // Sets the time before the request, so that the next calls do not repeat a request that fails.
    this.#list = { url, names: this.#current?.names ?? new Set(), at: Date.now() };
    const key = isNamed ? this.#keys.cloud()?.value : undefined;
    const answer = await fetch(`${url.replace(/\/+$/, "")}/mcp/routing`, {
      headers: withoutUndefined({
        accept: "application/json",
        authorization: key === undefined ? undefined : `Bearer ${key}`,
      }),
      signal,
      named,
    });
    if (answer.status !== 200) {
      await answer.body?.cancel();
      throw new Error(`it answered with the status ${answer.status}`);
    }
    const names = namesIn(boundedJson(await readBytes(answer.body, { limits: LIMITS })));
    if (names === undefined) throw new Error("it is not a list of names");
    this.#list = { url, at: Date.now(), names };
    writeCache(this.#file, { url, at: Date.now(), cloud: [...names] });
  }
}

/** Returns the servers in `cloud`; undefined if it is not a list of strings. */
function namesIn(json: unknown): ReadonlySet<string> | undefined {
  const list: unknown = isObject(json) ? json.cloud : undefined;
  if (!Array.isArray(list) || list.length > NAMES_MAX) return undefined;
  if (!list.every((name) => typeof name === "string")) return undefined;
  return new Set(list.map((name) => name.replace(/:\*$/, "")).filter(isUsableServerName));
}
