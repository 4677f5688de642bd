/**
 * Looks up servers in the registries that the configuration names.
 *
 * @module
 */

import type { Log } from "../../audit/log.ts";
import type { Redactor } from "../../audit/redact.ts";
import type { ServerLike } from "../../config/company.ts";
import { hubAddress } from "../../config/config.ts";
import type { Environment } from "../../config/env.ts";
import type { Keys } from "../../config/keys.ts";
import type { RegistryEntry } from "../../config/registries.ts";
import { durationText } from "../../core/amounts.ts";
import { asPmlError, ending, PmlError } from "../../core/errors.ts";
import { defined, quoted } from "../../core/json.ts";
import type { Pins } from "../../policy/pins.ts";
import { isOwnPin } from "../../policy/server_identity.ts";
import { Cache } from "../../registry/cache.ts";
import { offline, type RegistryAccess } from "../../registry/client.ts";
import { type FoundEntry, Registries, type RegistryUser } from "../../registry/registries.ts";
import { sourceOf } from "../../registry/sources.ts";
import { callsOf } from "../kinds.ts";
import { GuardedFetch } from "../../transport/http/client/guarded_fetch.ts";
import { misusedToken } from "./registry_entry.ts";
import { type NetworkParts, UserNetwork } from "../../policy/network.ts";
import { UnreachedName } from "../unreached_name.ts";

/** How long a comparison with the lock waits for registries, in milliseconds. */
const COMPARED_MS = 4_000;
/** The reason if a registry does not answer in time. */
const LATE = `no answer within ${durationText(COMPARED_MS)}`;

/** The options of `RegistryLookup`. */
export interface RegistryLookupOptions extends NetworkParts {
  readonly keys: Pick<Keys, "get" | "cloud">;
  readonly pins: Pins;
  readonly log: Log;
  /** Returns whether a name has another meaning here. Such a name is not sent to registries. */
  readonly isOther: (name: string) => boolean;
}

/** The answer of a registry to a request for its catalog. */
interface TriedRegistry {
  readonly url: string;
  readonly servers: number;
  readonly error?: PmlError;
}

/** Looks up servers. When the configuration changes, it uses the registries named then. */
export class RegistryLookup implements RegistryUser, Disposable {
  readonly #options: RegistryLookupOptions;
  readonly #closing = new AbortController();
  readonly #network: GuardedFetch;
  readonly #cache: Cache;
  /** The entries that were requested again, to compare them with the lock. */
  readonly #compared = new Map<string, Promise<FoundEntry | undefined>>();
  #places: readonly RegistryEntry[] = [];
  #registries: Registries;

  /** Opens the registries of the present configuration. Sends no request yet. */
  constructor(options: RegistryLookupOptions) {
    const { policy, log } = options;
    this.#options = options;
    this.#network = new GuardedFetch(new UserNetwork(options));
    this.#cache = new Cache(policy.now.config.home, log);
    this.#registries = this.#opened();
    policy.onChange(() => {
      if (policy.now.config.registries === this.#places) return;
      this.#registries = this.#opened();
      this.#compared.clear();
    });
  }

  /** The present registries. */
  get now(): Registries {
    return this.#registries;
  }

  /** Aborts when PML ends. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** The log of this PML. */
  get log(): Log {
    return this.#options.log;
  }

  /**
   * Returns whether no registry gets a name. Names that a lock pins as private are private also
   * where no file defines them.
   */
  isPrivate(name: string): boolean {
    return this.#options.isOther(name) || isOwnPin(this.pinned(name) ?? {});
  }

  /** Returns the pin of a name. */
  pinned(name: string): ReturnType<Pins["pinOf"]> {
    return this.#options.pins.pinOf(name);
  }

  /** Returns the hosts that the user named for a server, which may be on this machine. */
  allowedHosts(name: string): readonly string[] {
    const { cloud, grants } = this.#options.policy.now.config;
    const hub = cloud?.url === undefined ? [] : [new URL(cloud.url).host];
    return [...hub, ...grants[name]?.net ?? []];
  }

  /** Logs that a registry has another entry now. */
  entryChanged(name: string): void {
    this.log.info(`The registry has another entry for ${quoted(name)} now`);
  }

  /** Returns why a server may not be used: it would get a registry's token, or is forbidden. */
  refused(found: FoundEntry): PmlError | undefined {
    return misusedToken(found, this.#places) ?? this.forbidden(found.manifest);
  }

  /** Returns why the company's policy forbids a server; undefined if it does not. */
  forbidden(server: ServerLike): PmlError | undefined {
    const { narrowing } = this.#options.policy.now.config;
    return narrowing?.company?.forbids({ ...server, isOfRegistry: true })?.error;
  }

  /** Returns the entry of a name. Requests it again if the user approved another entry. */
  async newest(name: string, signal: AbortSignal): Promise<FoundEntry | undefined> {
    const known = this.#registries.cachedEntry(name);
    if (known === undefined) {
      return await reached(name, () => this.#registries.find(name, { signal }));
    }
    // Another process may have seen a newer entry, which was approved there.
    const pinned = this.#options.pins.pinOf(name)?.manifest;
    if (pinned === undefined || pinned === known.hash) return known;
    // If the registry cannot be reached, the cached entry is used.
    return await this.#registries.refresh(name, { signal }).catch(() => undefined) ?? known;
  }

  /** Returns the lines of a capability's code, which is fetched before the approval request. */
  async textOf(found: FoundEntry, signal: AbortSignal): Promise<readonly string[]> {
    if (callsOf(found.manifest) === undefined) return [];
    const { contentLines } = await import("../capability/content_lines.ts");
    return contentLines(await this.#registries.code(found, { signal }));
  }

  /** Returns the present entry of a name. Requests it once, so that the shown entry is pinned. */
  compared(name: string): Promise<FoundEntry | undefined> {
    const earlier = this.#compared.get(name);
    if (earlier !== undefined) return earlier;
    const request = this.#ask(name);
    this.#compared.set(name, request);
    // The next call may reach the registry.
    request.catch(() => {
      if (this.#compared.get(name) === request) this.#compared.delete(name);
    });
    return request;
  }

  /** Requests the catalog of each registry. Returns how many servers it has, or why that failed. */
  async tried(signal: AbortSignal): Promise<readonly TriedRegistry[]> {
    const late = AbortSignal.timeout(COMPARED_MS);
    const signals = AbortSignal.any([signal, this.closing, late]);
    const outcomes = await this.#registries.refreshCatalog({ signal: signals });
    const items = this.#registries.catalog();
    return outcomes.map(({ source, error }) => ({
      url: source,
      servers: items.filter((item) => item.source === source).length,
      ...defined({
        error: error && late.aborted ? offline(source, { why: LATE }) : error,
      }),
    }));
  }

  /** Requests the catalogs of the registries, and the entries of these servers. */
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

  /** Stops all requests. */
  [Symbol.dispose](): void {
    this.#closing.abort(ending("ask a registry"));
    this.#network[Symbol.dispose]();
  }

  /** Requests an entry. If that fails, logs a warning and returns the cached entry. */
  async #ask(name: string): Promise<FoundEntry | undefined> {
    const late = AbortSignal.timeout(COMPARED_MS);
    const signal = AbortSignal.any([this.closing, late]);
    try {
      return await this.#registries.refresh(name, { signal });
    } catch (error) {
      if (this.closing.aborted) throw error;
      const { code, message, hint } = asPmlError(error);
      const why = late.aborted ? LATE : message;
      const kept = this.#registries.storedEntry(name);
      if (kept === undefined) {
        // Without an entry there is nothing to compare.
        throw new PmlError(
          late.aborted ? "REGISTRY_OFFLINE" : code,
          `Cannot compare ${quoted(name)} with the lock: ${why}`,
          { hint: hint ?? "Try again when its registry can be reached", cause: error },
        );
      }
      this.#options.log.warn(
        `Compared ${quoted(name)} with the cached entry of its registry: ${why}`,
      );
      return kept;
    }
  }

  #opened(): Registries {
    const { policy, keys, redactor } = this.#options;
    const { environment } = policy.now.loaded;
    this.#places = policy.now.config.registries;
    const places = this.#places.map(({ url, tokenEnv, publicKey, isDefault }) => {
      const access = tokenEnv === undefined
        ? new HubAccess(url, policy, keys)
        : new VariableAccess(tokenEnv, environment, redactor);
      const source = sourceOf(url, { fetch: this.#network.fetch, access });
      // A default registry that is away is reported by `pml doctor`, not by each command.
      return { source, publicKey, ...defined({ isQuiet: isDefault }) };
    });
    return new Registries(places, this, { cache: this.#cache });
  }
}

/** The token of a registry in a variable of the environment. */
class VariableAccess implements RegistryAccess {
  readonly isHub = false;
  readonly #variable: string;
  readonly #environment: Environment;
  readonly #redactor: Redactor;

  constructor(variable: string, environment: Environment, redactor: Redactor) {
    this.#variable = variable;
    this.#environment = environment;
    this.#redactor = redactor;
  }

  token(): string | undefined {
    const value = this.#environment.get(this.#variable);
    if (value !== undefined) this.#redactor.register(value);
    return value;
  }
}

/** The key of the account: it goes to the hub that the user named, and to no other registry. */
class HubAccess implements RegistryAccess {
  readonly #url: string;
  readonly #policy: NetworkParts["policy"];
  readonly #keys: RegistryLookupOptions["keys"];

  constructor(url: string, policy: NetworkParts["policy"], keys: RegistryLookupOptions["keys"]) {
    this.#url = url;
    this.#policy = policy;
    this.#keys = keys;
  }

  get isHub(): boolean {
    return isHubRegistry(this.#url, this.#policy.now.config.cloud?.url);
  }

  token(): string | undefined {
    return this.isHub ? this.#keys.cloud()?.value : undefined;
  }
}

/** Returns whether a registry is the one of the hub that `cloud.url` names. */
export function isHubRegistry(url: string, hub: string | undefined): boolean {
  if (hub === undefined) return false;
  const address = hubAddress(url.replace(/^mcp\+/, ""));
  return new URL(address).href === new URL(hub).href;
}

/** Looks up a name. If no registry can be reached, the error states that. */
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
