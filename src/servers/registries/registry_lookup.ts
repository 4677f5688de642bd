/**
 * The registries that the configuration names now, and what they say of a server.
 *
 * @module
 */

import type { Log } from "../../audit/log.ts";
import type { ServerLike } from "../../config/company.ts";
import { hubAddress } from "../../config/config.ts";
import type { Keys } from "../../config/keys.ts";
import type { RegistryEntry } from "../../config/registries.ts";
import { asPmlError, ending, PmlError } from "../../core/errors.ts";
import { defined, quoted } from "../../core/json.ts";
import type { Pins } from "../../policy/pins.ts";
import { isOwnPin } from "../../policy/server_identity.ts";
import { Cache } from "../../registry/cache.ts";
import { offline } from "../../registry/client.ts";
import { type Found, Registries } from "../../registry/registries.ts";
import { sourceOf } from "../../registry/sources.ts";
import { callsOf } from "../kinds.ts";
import { GuardedFetch } from "../../transport/http/client/guarded_fetch.ts";
import { misusedToken } from "./registry_entry.ts";
import { type NetworkOptions, proxyOf } from "../../policy/network.ts";
import { UnreachedName } from "../unreached_name.ts";

/** How long a comparison with what is pinned waits for registries. */
const COMPARED_MS = 4_000;

/** What looking servers up needs. */
export interface RegistryLookupOptions extends NetworkOptions {
  readonly keys: Pick<Keys, "get" | "cloud">;
  readonly pins: Pins;
  readonly log: Log;
  /** Tells whether a name stands for something else here, so that no registry learns it. */
  readonly isOther: (name: string) => boolean;
}

/** What a registry answered when it was asked for its catalog. */
interface TriedRegistry {
  readonly url: string;
  readonly servers: number;
  readonly error?: PmlError;
}

/** Looks servers up, in other registries as soon as the configuration names others. */
export class RegistryLookup implements Disposable {
  readonly #options: RegistryLookupOptions;
  readonly #closing = new AbortController();
  readonly #network = new GuardedFetch({ proxy: () => proxyOf(this.#options) });
  readonly #cache: Cache;
  /** What was looked up anew to be compared with what is pinned. */
  readonly #compared = new Map<string, Promise<Found | undefined>>();
  #places: readonly RegistryEntry[] = [];
  #registries: Registries;

  /** Takes what holds; nothing is asked of any registry yet. */
  constructor(options: RegistryLookupOptions) {
    const { policy, log } = options;
    this.#options = options;
    this.#cache = new Cache(policy.now.config.home, { warn: (message) => log.warn(message) });
    this.#registries = this.#opened();
    policy.onChange(() => {
      if (policy.now.config.registries === this.#places) return;
      this.#registries = this.#opened();
      this.#compared.clear();
    });
  }

  /** The registries that are asked now. */
  get now(): Registries {
    return this.#registries;
  }

  /** Aborts when PML ends. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Returns why a server may not be used: it would get a registry's token, or is forbidden. */
  refused(found: Found): PmlError | undefined {
    return misusedToken(found, this.#places) ?? this.forbidden(found.manifest);
  }

  /** Returns why the company's policy forbids what a registry has; undefined if it does not. */
  forbidden(server: ServerLike): PmlError | undefined {
    const { narrowing } = this.#options.policy.now.config;
    return narrowing?.company?.forbids({ ...server, isOfRegistry: true })?.error;
  }

  /** Returns what a registry has under a name; asks again where the person approved another entry. */
  async newest(name: string, signal: AbortSignal): Promise<Found | undefined> {
    const known = this.#registries.known(name);
    if (known === undefined) {
      return await reached(name, () => this.#registries.find(name, { signal }));
    }
    // Another process may have seen a newer entry, which was approved there.
    const pinned = this.#options.pins.pinned(name)?.manifest;
    if (pinned === undefined || pinned === known.hash) return known;
    // Where it cannot be asked, what is known is asked about.
    return await this.#registries.refresh(name, { signal }).catch(() => undefined) ?? known;
  }

  /** Returns the lines of what a capability does, which is fetched before anybody is asked. */
  async textOf(found: Found, signal: AbortSignal): Promise<readonly string[]> {
    if (callsOf(found.manifest) === undefined) return [];
    const { contentLines } = await import("../capability/content_lines.ts");
    return contentLines(await this.#registries.code(found, { signal }));
  }

  /** Returns what a registry has under a name now, once: what was shown is what is pinned then. */
  compared(name: string): Promise<Found | undefined> {
    const asked = this.#compared.get(name) ?? this.#ask(name);
    this.#compared.set(name, asked);
    return asked;
  }

  /** Asks each registry for its catalog. Returns how many servers are known of it, or why it failed. */
  async tried(signal: AbortSignal): Promise<readonly TriedRegistry[]> {
    const late = AbortSignal.timeout(COMPARED_MS);
    const signals = AbortSignal.any([signal, this.closing, late]);
    const outcomes = await this.#registries.refreshCatalog({ signal: signals });
    const items = this.#registries.catalog();
    return outcomes.map(({ source, error }) => ({
      url: source,
      servers: items.filter((item) => item.source === source).length,
      ...defined({
        error: error && late.aborted
          ? offline(source, { why: `no answer in ${COMPARED_MS} ms` })
          : error,
      }),
    }));
  }

  /** Asks the registries for what they offer, and for these servers. */
  async refresh(names: readonly string[], signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    const [outcomes] = await Promise.all([
      this.#registries.refreshCatalog({ signal }),
      ...names.map((name) =>
        this.#registries.refresh(name, { signal }).catch((error) => log.warn(`${error.message}`))
      ),
    ]);
    for (const { source, error } of outcomes) {
      const isQuiet = this.#places.some(({ url, isDefault }) => url === source && isDefault);
      if (error !== undefined && !isQuiet) log.warn(error.message);
    }
  }

  /** Asks nothing any more. */
  [Symbol.dispose](): void {
    this.#closing.abort(ending("ask a registry"));
    this.#network[Symbol.dispose]();
  }

  /** Asks now; where that fails, what is kept is told of and given. */
  async #ask(name: string): Promise<Found | undefined> {
    const late = AbortSignal.timeout(COMPARED_MS);
    const signal = AbortSignal.any([this.closing, late]);
    try {
      return await this.#registries.refresh(name, { signal });
    } catch (error) {
      if (this.closing.aborted) throw error;
      const { code, message, hint } = asPmlError(error);
      const why = late.aborted ? `no answer in ${COMPARED_MS} ms` : message;
      const kept = this.#registries.kept(name);
      if (kept === undefined) {
        // That nothing differs cannot be said of what nobody knows.
        throw new PmlError(
          late.aborted ? "REGISTRY_OFFLINE" : code,
          `Cannot compare ${quoted(name)} with what is pinned: ${why}`,
          { hint: hint ?? "Try again when its registry can be reached", cause: error },
        );
      }
      this.#options.log.warn(`Compared ${quoted(name)} with what is kept: ${why}`);
      return kept;
    }
  }

  #opened(): Registries {
    const { policy, keys, pins, log, redactor, isOther } = this.#options;
    const { environment } = policy.now.loaded;
    this.#places = policy.now.config.registries;
    const token = (name: string) => {
      const value = environment.get(name);
      if (value !== undefined) redactor.register(value);
      return value;
    };
    // The key of the account goes to the hub that the user named, and to no other registry.
    const ofHub = (url: string) => {
      const isHub = () => isHubRegistry(url, policy.now.config.cloud?.url);
      return { isHub, token: () => isHub() ? keys.cloud()?.value : undefined };
    };
    return new Registries({
      places: this.#places.map(({ url, tokenEnv, publicKey, isDefault }) => ({
        source: sourceOf(url, {
          fetch: this.#network.fetch,
          ...tokenEnv !== undefined ? { token: () => token(tokenEnv) } : ofHub(url),
        }),
        publicKey,
        named: (name) => this.#named(name),
        // Who never chose it need not hear at each command that it is away; `pml doctor` tells.
        ...defined({ isQuiet: isDefault }),
      })),
      cache: this.#cache,
      // What a lock pins as somebody's own is nobody else's business, also where it is not defined.
      isPrivate: (name) => isOther(name) || isOwnPin(pins.pinned(name) ?? {}),
      pinned: (name) => pins.pinned(name),
      onChange: (name) => log.info(`${quoted(name)} is another one at its registry now`),
      warn: (message) => log.warn(message),
      closing: this.closing,
    });
  }

  /** Gives the hosts that the person named for a server, which may lie on this machine. */
  #named(name: string): readonly string[] {
    const { cloud, grants } = this.#options.policy.now.config;
    const hub = cloud?.url === undefined ? [] : [new URL(cloud.url).host];
    return [...hub, ...grants[name]?.net ?? []];
  }
}

/** Returns whether a registry is the one of the hub that `cloud.url` names. */
export function isHubRegistry(url: string, hub: string | undefined): boolean {
  if (hub === undefined) return false;
  const address = hubAddress(url.replace(/^mcp\+/, ""));
  return new URL(address).href === new URL(hub).href;
}

/** Looks a name up, and says so where no registry can be reached. */
export async function reached<T>(name: string, look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof PmlError) || error.code !== "REGISTRY_OFFLINE") throw error;
    const { code, message, detail } = error;
    const hint = "No server here has this name. Try again when the registry can be reached";
    const why = message.replace(/^C/, "c");
    const told = { ...defined({ hint, detail }), cause: error };
    throw new UnreachedName(code, `Cannot look up ${quoted(name)}: ${why}`, told);
  }
}
