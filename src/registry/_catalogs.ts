/**
 * Merges the catalogs of all registries.
 *
 * @module
 */

import { asPmlError, type PmlError } from "../core/errors.ts";
import {
  type CachedCatalog,
  type CatalogItem,
  freshCatalog,
  itemsOf,
  readCachedCatalog,
} from "./_catalog.ts";
import type { Fqdn } from "./fqdn.ts";
import type { BackgroundRefresh } from "./_background.ts";
import type { CachedRegistry, RegistryUser } from "./_cached_registry.ts";
import { ageOf, type Cache } from "./cache.ts";
import { untilAborted } from "./client.ts";

/** The result of refreshing the catalog of one registry. */
export interface CatalogOutcome {
  readonly source: string;
  /** The number of usable entries. */
  readonly entries: number;
  /** The number of unusable entries. */
  readonly dropped: number;
  readonly error: PmlError | undefined;
}

/** The collaborators of `Catalogs`. */
interface CatalogsParts {
  readonly cache: Cache;
  readonly user: RegistryUser;
  readonly background: BackgroundRefresh;
}

/** A request for one catalog. */
export interface CatalogRequest {
  readonly registry: CachedRegistry;
  readonly signal: AbortSignal;
}

type CachedRows = Pick<CachedCatalog, "at" | "rows">;

/** The age at which a catalog is downloaded again for a missing capability, in milliseconds. */
const MISSING_CAPABILITY_MS = 10_000;
/** The age at which a catalog is downloaded again, in milliseconds. */
const CATALOG_MS = 3_600_000;

/** The catalogs of all registries, in their order. */
export class Catalogs {
  readonly #registries: readonly CachedRegistry[];
  readonly #parts: CatalogsParts;
  readonly #catalogs = new Map<CachedRegistry, CachedCatalog>();
  readonly #loading = new Map<CachedRegistry, Promise<CachedCatalog>>();
  /**
   * The registries whose first catalog was invalid or too slow. Later callers do not wait for it.
   */
  readonly #failed = new WeakSet<CachedRegistry>();
  #merged: readonly CatalogItem[] | undefined;

  /** Requests and reads nothing yet. */
  constructor(registries: readonly CachedRegistry[], parts: CatalogsParts) {
    this.#registries = registries;
    this.#parts = parts;
  }

  /** Returns all known entries. */
  items(): readonly CatalogItem[] {
    for (const registry of this.#registries) {
      const catalog = this.#catalogs.get(registry) ??
        readCachedCatalog(registry, this.#parts.cache);
      if (catalog !== undefined) this.#keep(registry, catalog);
      this.#refreshIfOld(registry, catalog?.at ?? 0);
    }
    this.#merged ??= this.#merge();
    return this.#merged;
  }

  /** Downloads a catalog. Concurrent callers share the download. */
  async load(registry: CachedRegistry): Promise<CachedCatalog> {
    const loading = this.#loading.get(registry) ??
      this.#download(registry).finally(() => this.#loading.delete(registry));
    this.#loading.set(registry, loading);
    return await loading;
  }

  /**
   * Returns whether a registry offers a server. If its catalog was never downloaded, waits for it
   * once. Throws REGISTRY_OFFLINE if the registry cannot be reached.
   */
  async isOffered(name: string, request: CatalogRequest): Promise<boolean> {
    const { rows } = await this.#rowsOf(request);
    return rows.some(([fqdn]) => fqdn === name || fqdn.split(":", 1)[0] === name);
  }

  /**
   * Returns the name of the entry that has a tool: the server if its row lists the tool, otherwise
   * a capability with this name, otherwise the server, although its row does not list the tool.
   * Returns undefined if the catalog has neither the server nor the capability.
   */
  async findEntryOf(
    { name: server, action: tool = "" }: Fqdn,
    request: CatalogRequest,
  ): Promise<string | undefined> {
    const capability = `${server}:${tool}`;
    let cached = await this.#rowsOf(request);
    const rowOf = (name: string) => cached.rows.find(([fqdn]) => fqdn === name);
    const find = () => rowOf(server)?.[5].includes(tool) ? server : rowOf(capability) && capability;
    const hasCapabilities = cached.rows.some(([fqdn]) => fqdn.startsWith(`${server}:`));
    // A capability may have been published since the download.
    if (hasCapabilities && find() === undefined) {
      cached = await this.#downloadAgain(request, cached);
    }
    return find() ?? (rowOf(server) && server);
  }

  /** Downloads a catalog again, unless the cached catalog is newer than `MISSING_CAPABILITY_MS`. */
  async #downloadAgain(
    { registry, signal }: CatalogRequest,
    cached: CachedRows,
  ): Promise<CachedRows> {
    if (ageOf(cached.at) < MISSING_CAPABILITY_MS) return cached;
    try {
      return await this.#loadInTime({ registry, signal });
    } catch {
      return cached; // the cached catalog stays valid while the registry cannot be reached
    }
  }

  async #rowsOf({ registry, signal }: CatalogRequest): Promise<CachedRows> {
    const cached = this.#catalogs.get(registry) ?? readCachedCatalog(registry, this.#parts.cache);
    if (cached !== undefined) this.#refreshIfOld(registry, cached.at);
    return cached ?? await this.#downloadFirst(registry, signal);
  }

  /** Downloads a catalog for the first time. Returns no rows if an earlier download failed. */
  async #downloadFirst(registry: CachedRegistry, signal: AbortSignal): Promise<CachedRows> {
    try {
      if (!this.#failed.has(registry)) {
        return await this.#loadInTime({ registry, signal });
      }
    } catch (error) {
      if (asPmlError(error).code === "REGISTRY_OFFLINE") throw error;
      this.#failed.add(registry);
    }
    return { at: Infinity, rows: [] }; // an age at which callers do not download it again
  }

  /**
   * Downloads the catalogs of all registries. A slow download continues after `signal` aborts.
   */
  async refresh(signal: AbortSignal): Promise<readonly CatalogOutcome[]> {
    return await Promise.all(this.#registries.map(async (registry) => {
      const source = registry.source.url;
      try {
        const { rows, dropped } = await this.#loadInTime({ registry, signal });
        return { source, entries: rows.length, dropped, error: undefined };
      } catch (thrown) {
        return { source, entries: 0, dropped: 0, error: asPmlError(thrown) };
      }
    }));
  }

  /** Downloads an expired catalog again in the background. */
  #refreshIfOld(registry: CachedRegistry, at: number): void {
    if (ageOf(at) < CATALOG_MS) return;
    const work = () => this.load(registry);
    this.#parts.background.run(registry, { key: "", isForced: false, work });
  }

  /** Loads a catalog; rejects early if its registry is unreachable or `signal` aborts. */
  #loadInTime({ registry, signal }: CatalogRequest): Promise<CachedCatalog> {
    return untilAborted(registry.limitDuringOutage(() => this.load(registry)), signal);
  }

  async #download(registry: CachedRegistry): Promise<CachedCatalog> {
    const catalog = await freshCatalog(registry, this.#parts.cache, this.#parts.user);
    this.#keep(registry, catalog);
    return catalog;
  }

  #keep(registry: CachedRegistry, catalog: CachedCatalog): void {
    if (this.#catalogs.get(registry) !== catalog) this.#merged = undefined;
    this.#catalogs.set(registry, catalog);
  }

  /** Merges the entries. If several registries offer a name, the first one is used. */
  #merge(): readonly CatalogItem[] {
    const items = new Map<string, CatalogItem>();
    for (const registry of this.#registries.toReversed()) {
      const catalog = this.#catalogs.get(registry);
      if (catalog === undefined) continue;
      for (const item of itemsOf(catalog, registry.source.url)) items.set(item.fqdn, item);
    }
    return [...items.values()];
  }
}
