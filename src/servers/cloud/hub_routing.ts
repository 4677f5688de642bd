/**
 * The hub's list of servers that run in the cloud. It is newer than the list that ships with PML,
 * and only adds names. It is requested only after a call went to the cloud.
 *
 * @module
 */

import { join } from "node:path";
import type { Keys } from "../../config/keys.ts";
import type { Fetch } from "../../core/fetch.ts";
import { defined, isObject } from "../../core/json.ts";
import { boundedJson } from "../../core/json_bounds.ts";
import { isFreeName } from "../../core/tool_id.ts";
import { readCache, writeCache } from "../../io/kept.ts";
import { readBytes } from "../../io/event_stream.ts";
import type { WarningLog } from "../../io/private_files.ts";

/** The PML that asks the hub. `Machine` implements it. */
export interface HubHost {
  /** The PML home, which keeps the list. */
  readonly home: string;
  readonly fetch: Fetch;
  /** The address of the hub, and whether the user named it. */
  readonly hubAddress: { readonly url: string; readonly isNamed: boolean };
}

/** The kept list, and the hub that it came from. */
interface KeptList {
  readonly url: string;
  readonly at: number;
  readonly names: ReadonlySet<string>;
}

const FRESH_MS = 3_600_000;
const LATE_MS = 10_000;
const MOST = { lineBytes: 262_144, resultBytes: 262_144 };
const MOST_NAMES = 5_000;

/** The list of the hub. */
export class HubRouting implements Disposable {
  readonly #host: HubHost;
  readonly #keys: Pick<Keys, "cloud">;
  readonly #log: WarningLog;
  /** The file that keeps the list. */
  readonly #file: string;
  readonly #closing = new AbortController();
  #list: KeptList | undefined;
  #asking: Promise<void> | undefined;

  /** Reads the kept list. The key of the account is sent to a hub that the user named. */
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

  /** Requests the list if it is older than an hour. It never throws, and no call waits for it. */
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

  /** The kept list. That of another hub does not count. */
  get #current(): KeptList | undefined {
    return this.#list?.url === this.#host.hubAddress.url ? this.#list : undefined;
  }

  async #ask(): Promise<void> {
    const { fetch, hubAddress: { url, isNamed } } = this.#host;
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(LATE_MS)]);
    const named = new Set(isNamed ? [new URL(url).host] : []);
    // Counted from now, so that a failing request is tried again after a while and not with each
    // call.
    this.#list = { url, names: this.#current?.names ?? new Set(), at: Date.now() };
    const key = isNamed ? this.#keys.cloud()?.value : undefined;
    const answer = await fetch(`${url.replace(/\/+$/, "")}/mcp/routing`, {
      headers: defined({
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
    const names = namesIn(boundedJson(await readBytes(answer.body, { limits: MOST })));
    if (names === undefined) throw new Error("it is no list of names");
    this.#list = { url, at: Date.now(), names };
    writeCache(this.#file, { url, at: Date.now(), cloud: [...names] });
  }
}

/** Returns the servers in `cloud`; undefined if it is not a list of strings. */
function namesIn(json: unknown): ReadonlySet<string> | undefined {
  const list: unknown = isObject(json) ? json.cloud : undefined;
  if (!Array.isArray(list) || list.length > MOST_NAMES) return undefined;
  if (!list.every((one) => typeof one === "string")) return undefined;
  return new Set(list.map((one) => one.replace(/:\*$/, "")).filter(isFreeName));
}
