/**
 * Looks up servers in the registries that the configuration contains.
 *
 * @module
 */

import type { Log } from "../../audit/log.ts";
import type { Redactor } from "../../audit/redact.ts";
import type { ServerLike } from "../../config/company.ts";
import { hubAddress } from "../../config/config.ts";
import type { Environment } from "../../config/env.ts";
import type { RegistryEntry } from "../../config/registries.ts";
import { durationText } from "../../core/amounts.ts";
import { asPmlError, endingError, PmlError } from "../../core/errors.ts";
import { quoted, withoutUndefined } from "../../core/json.ts";
import type { Pins } from "../../policy/pins.ts";
import { isOwnPin } from "../../policy/server_identity.ts";
import { Cache } from "../../registry/cache.ts";
import { offlineError, type RegistryCredentials } from "../../registry/client.ts";
import { type FoundEntry, Registries, type RegistryUser } from "../../registry/registries.ts";
import { sourceOf } from "../../registry/sources.ts";
import { callsOf } from "../kinds.ts";
import { GuardedFetch } from "../../transport/http/client/guarded_fetch.ts";
import { misusedTokenError } from "./registry_entry.ts";
import { UserNetwork } from "../../policy/network.ts";
import type { ServiceParts } from "../service_parts.ts";
import { UnreachedName } from "../unreached_name.ts";

/** How long a comparison of entries with the lock waits for registries, in milliseconds. */
const COMPARED_MS = 4_000;
/** The reason in errors if a registry does not answer in time. */
const LATE_REASON = `no answer within ${durationText(COMPARED_MS)}`;

/** The parts of PML that lookups in registries use. */
export type RegistryParts = Pick<
  ServiceParts,
  "policy" | "keys" | "pins" | "log" | "redactor"
>;

/** The result of a test whether a registry returns its catalog. */
interface RegistryTest {
  readonly url: string;
  /** The number of servers in the catalog. */
  readonly servers: number;
  readonly error?: PmlError;
}

/** Looks up servers in the registries that the current configuration names. */
export class RegistryLookup implements RegistryUser, Disposable {
  readonly #parts: RegistryParts;
  readonly #isReserved: (name: string) => boolean;
  readonly #closing = new AbortController();
  readonly #network: GuardedFetch;
  readonly #cache: Cache;
  /** The entries that were requested again, to compare them with the lock. */
  readonly #compared = new Map<string, Promise<FoundEntry | undefined>>();
  #entries: readonly RegistryEntry[] = [];
  #registries: Registries;

  /**
   * Opens the registries of the current configuration. Sends no request yet. `isReserved` returns
   * whether a name belongs to a server that is not from a registry. PML never sends such a name to
   * a registry.
   */
  constructor(parts: RegistryParts, isReserved: (name: string) => boolean) {
    const { policy, log } = parts;
    this.#parts = parts;
    this.#isReserved = isReserved;
    this.#network = new GuardedFetch(new UserNetwork(parts));
    this.#cache = new Cache(policy.now.config.home, log);
    this.#registries = this.#openRegistries();
    policy.onChange(() => {
      if (policy.now.config.registries === this.#entries) return;
      this.#registries = this.#openRegistries();
      this.#compared.clear();
    });
  }

  /** The registries of the current configuration. */
  get registries(): Registries {
    return this.#registries;
  }

  /** Aborts when PML ends. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** The log of this PML process. */
  get log(): Log {
    return this.#parts.log;
  }

  /**
   * Returns whether a name must not be sent to registries. A name that is pinned to a server of a
   * file stays private even if no file defines it now.
   */
  isPrivate(name: string): boolean {
    return this.#isReserved(name) || isOwnPin(this.pinOf(name) ?? {});
  }

  /** Returns the pin of a name. */
  pinOf(name: string): ReturnType<Pins["pinOf"]> {
    return this.#parts.pins.pinOf(name);
  }

  /** Returns the hosts that the user named for a server. These hosts may be on this machine. */
  allowedHosts(name: string): readonly string[] {
    const { cloud, grants } = this.#parts.policy.now.config;
    const hub = cloud?.url === undefined ? [] : [new URL(cloud.url).host];
    return [...hub, ...grants[name]?.net ?? []];
  }

  /** Logs that a registry has another entry now. */
  entryChanged(name: string): void {
    this.log.info(`The registry has another entry for ${quoted(name)} now`);
  }

  /** Returns an error if a server would get the token of a registry, or if a policy forbids it. */
  refusalOf(found: FoundEntry): PmlError | undefined {
    return misusedTokenError(found, this.#entries) ?? this.forbidden(found.manifest);
  }

  /** Returns why the company's policy forbids a server; undefined if it does not. */
  forbidden(server: ServerLike): PmlError | undefined {
    const { restrictions } = this.#parts.policy.now.config;
    return restrictions?.company?.forbids({ ...server, isOfRegistry: true })?.error;
  }

  /** Returns the entry of a name. Requests it again if the user approved another entry. */
  async newestEntry(name: string, signal: AbortSignal): Promise<FoundEntry | undefined> {
    const known = this.#registries.cachedEntry(name);
    if (known === undefined) {
      return await lookUp(name, () => this.#registries.find(name, { signal }));
    }
    // If another entry is pinned, another process may have requested a newer entry, which the user
    // then approved.
    const pinned = this.#parts.pins.pinOf(name)?.manifest;
    if (pinned === undefined || pinned === known.hash) return known;
    // If the registry cannot be reached, the cached entry is used.
    return await this.#registries.refresh(name, { signal }).catch(() => undefined) ?? known;
  }

  /**
   * Returns the code of a capability as lines, for the approval request; no lines for other
   * servers. Fetches the code.
   */
  async textOf(found: FoundEntry, signal: AbortSignal): Promise<readonly string[]> {
    if (callsOf(found.manifest) === undefined) return [];
    const { contentLines } = await import("../capability/content_lines.ts");
    return contentLines(await this.#registries.code(found, { signal }));
  }

  /**
   * Returns the current entry of a name, to compare it with the lock. Requests the entry only once,
   * so that PML pins the same entry that the user saw.
   */
  entryToCompare(name: string): Promise<FoundEntry | undefined> {
    const earlier = this.#compared.get(name);
    if (earlier !== undefined) return earlier;
    const request = this.#ask(name);
    this.#compared.set(name, request);
    // After a failure, the next call requests the entry again.
    request.catch(() => {
      if (this.#compared.get(name) === request) this.#compared.delete(name);
    });
    return request;
  }

  /**
   * Requests the catalog of each registry. Returns how many servers each has, or why that failed.
   */
  async testRegistries(signal: AbortSignal): Promise<readonly RegistryTest[]> {
    const late = AbortSignal.timeout(COMPARED_MS);
    const signals = AbortSignal.any([signal, this.closing, late]);
    const outcomes = await this.#registries.refreshCatalog({ signal: signals });
    const items = this.#registries.catalog();
    return outcomes.map(({ source, error }) => ({
      url: source,
      servers: items.filter((item) => item.source === source).length,
      ...withoutUndefined({
        error: error && late.aborted ? offlineError(source, { why: LATE_REASON }) : error,
      }),
    }));
  }

  /** Requests the catalogs of the registries, and the entries of the servers `names`. */
  async refresh(names: readonly string[], signal: AbortSignal): Promise<void> {
    const { log } = this.#parts;
    const [outcomes] = await Promise.all([
      this.#registries.refreshCatalog({ signal }),
      ...names.map((name) =>
        this.#registries.refresh(name, { signal }).catch((error) => log.warn(`${error.message}`))
      ),
    ]);
    for (const { source, error } of outcomes) {
      const isQuiet = this.#entries.some(({ url, isDefault }) => url === source && isDefault);
      if (error !== undefined && !isQuiet) log.warn(error.message);
    }
  }

  /** Stops all requests. */
  [Symbol.dispose](): void {
    this.#closing.abort(endingError("ask a registry"));
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
      const why = late.aborted ? LATE_REASON : message;
      const storedEntry = this.#registries.storedEntry(name);
      if (storedEntry === undefined) {
        // Without an entry there is nothing to compare.
        throw new PmlError(
          late.aborted ? "REGISTRY_OFFLINE" : code,
          `Cannot compare ${quoted(name)} with the lock: ${why}`,
          { hint: hint ?? "Try again when its registry can be reached", cause: error },
        );
      }
      this.#parts.log.warn(
        `Compared ${quoted(name)} with the cached entry of its registry: ${why}`,
      );
      return storedEntry;
    }
  }

  #openRegistries(): Registries {
    const { policy, keys, redactor } = this.#parts;
    const { environment } = policy.now.loaded;
    this.#entries = policy.now.config.registries;
    const registries = this.#entries.map(({ url, tokenEnv, publicKey, isDefault }) => {
      const access = tokenEnv === undefined
        ? new HubAccess(url, policy, keys)
        : new VariableAccess(tokenEnv, environment, redactor);
      const source = sourceOf(url, { fetch: this.#network.fetch, access });
      // Only `pml doctor` reports that a default registry cannot be reached, not each command.
      return { source, publicKey, ...withoutUndefined({ isQuiet: isDefault }) };
    });
    return new Registries(registries, this, { cache: this.#cache });
  }
}

/** The token of a registry in a variable of the environment. */
class VariableAccess implements RegistryCredentials {
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

/**
 * The key of the user's account (`PML_API_KEY`), which PML sends only to the hub in `cloud.url`.
 */
class HubAccess implements RegistryCredentials {
  readonly #url: string;
  readonly #policy: RegistryParts["policy"];
  readonly #keys: RegistryParts["keys"];

  constructor(url: string, policy: RegistryParts["policy"], keys: RegistryParts["keys"]) {
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

/** Returns whether the address of a registry is the address of the hub. `hub` is `cloud.url`. */
export function isHubRegistry(url: string, hub: string | undefined): boolean {
  if (hub === undefined) return false;
  const address = hubAddress(url.replace(/^mcp\+/, ""));
  return new URL(address).href === new URL(hub).href;
}

/**
 * Looks up a name. If no registry can be reached, throws an `UnreachedName` that contains the name.
 */
export async function lookUp<T>(name: string, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (!(error instanceof PmlError) || error.code !== "REGISTRY_OFFLINE") throw error;
    const { code, message, detail } = error;
    const hint = "Correct the name, or try again when the registry can be reached";
    const why = `no server or saved capability here has this name; ${message.replace(/^C/, "c")}`;
    const options = { ...withoutUndefined({ hint, detail }), cause: error };
    throw new UnreachedName(code, `Cannot find ${quoted(name)}: ${why}`, options);
  }
}
