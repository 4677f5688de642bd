/**
 * Merges the catalogs of all registries.
 *
 * @module
 */

import { asPmlError, type PmlError } from "../core/errors.ts";
import {
  type CatalogItem,
  freshCatalog,
  itemsOf,
  type KeptCatalog,
  keptCatalog,
} from "./_catalog.ts";
import type { Fqdn } from "./fqdn.ts";
import type { BackgroundRefresh } from "./_background.ts";
import type { CachedRegistry, RegistryUser } from "./_place.ts";
import { ageOf, type Cache } from "./cache.ts";
import { untilAborted } from "./client.ts";

/** The result of refreshing the catalog of one registry. */
export interface CatalogOutcome {
  readonly source: string;
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

/** The options for reading one catalog. */
export interface CatalogLook {
  readonly place: CachedRegistry;
  readonly signal: AbortSignal;
}

type CachedRows = Pick<KeptCatalog, "at" | "rows">;

/** The age at which a catalog is downloaded again for a missing capability, in milliseconds. */
const LACKING_MS = 10_000;
/** The age at which a catalog is downloaded again, in milliseconds. */
const CATALOG_MS = 3_600_000;

/** The catalogs of all registries, in their order. */
export class Catalogs {
  readonly #places: readonly CachedRegistry[];
  readonly #parts: CatalogsParts;
  readonly #catalogs = new Map<CachedRegistry, KeptCatalog>();
  readonly #loading = new Map<CachedRegistry, Promise<KeptCatalog>>();
  /** The registries that sent no catalog while a caller waited for it. */
  readonly #waited = new WeakSet<CachedRegistry>();
  #merged: readonly CatalogItem[] | undefined;

  /** Takes the registries; requests and reads nothing yet. */
  constructor(places: readonly CachedRegistry[], parts: CatalogsParts) {
    this.#places = places;
    this.#parts = parts;
  }

  /** Returns all known entries. */
  items(): readonly CatalogItem[] {
    for (const place of this.#places) {
      const catalog = this.#catalogs.get(place) ?? keptCatalog(place, this.#parts.cache);
      if (catalog !== undefined) this.#keep(place, catalog);
      this.#refreshIfOld(place, catalog?.at ?? 0);
    }
    this.#merged ??= this.#all();
    return this.#merged;
  }

  /** Downloads a catalog. Concurrent callers share the download. */
  async load(place: CachedRegistry): Promise<KeptCatalog> {
    const loading = this.#loading.get(place) ??
      this.#fresh(place).finally(() => this.#loading.delete(place));
    this.#loading.set(place, loading);
    return await loading;
  }

  /**
   * Returns whether a registry offers a server. If its catalog was never downloaded, waits for it
   * once. Throws REGISTRY_OFFLINE if the registry cannot be reached.
   */
  async has(name: string, looking: CatalogLook): Promise<boolean> {
    const { rows } = await this.#rowsOf(looking);
    return rows.some(([fqdn]) => fqdn === name || fqdn.split(":", 1)[0] === name);
  }

  /**
   * Returns the name of the entry that has a tool: the server, if the catalog lists the tool there;
   * otherwise a capability of this name; otherwise the server; undefined if there is neither.
   */
  async entryOf(
    { name: server, action: tool = "" }: Fqdn,
    looking: CatalogLook,
  ): Promise<string | undefined> {
    const whole = `${server}:${tool}`;
    let cached = await this.#rowsOf(looking);
    const rowOf = (name: string) => cached.rows.find(([fqdn]) => fqdn === name);
    const find = () => rowOf(server)?.[5].includes(tool) ? server : rowOf(whole) && whole;
    const isOfSpace = cached.rows.some(([fqdn]) => fqdn.startsWith(`${server}:`));
    // A capability may have been published since the download.
    if (isOfSpace && find() === undefined) cached = await this.#again(looking, cached);
    return find() ?? (rowOf(server) && server);
  }

  async #again({ place, signal }: CatalogLook, cached: CachedRows): Promise<CachedRows> {
    if (ageOf(cached.at) < LACKING_MS) return cached;
    try {
      return await this.#soon({ place, signal });
    } catch {
      return cached; // the cached catalog stays valid while the registry cannot be reached
    }
  }

  async #rowsOf({ place, signal }: CatalogLook): Promise<CachedRows> {
    const cached = this.#catalogs.get(place) ?? keptCatalog(place, this.#parts.cache);
    if (cached !== undefined) this.#refreshIfOld(place, cached.at);
    return cached ?? await this.#first(place, signal);
  }

  async #first(place: CachedRegistry, signal: AbortSignal): Promise<CachedRows> {
    try {
      if (!this.#waited.has(place)) {
        return await this.#soon({ place, signal });
      }
    } catch (error) {
      if (asPmlError(error).code === "REGISTRY_OFFLINE") throw error;
      this.#waited.add(place);
    }
    return { at: Infinity, rows: [] };
  }

  /**
   * Downloads the catalogs of all registries. A slow download continues after `signal` aborts.
   */
  async refresh(signal: AbortSignal): Promise<readonly CatalogOutcome[]> {
    return await Promise.all(this.#places.map(async (place) => {
      const source = place.source.url;
      try {
        const { rows, dropped } = await this.#soon({ place, signal });
        return { source, entries: rows.length, dropped, error: undefined };
      } catch (thrown) {
        return { source, entries: 0, dropped: 0, error: asPmlError(thrown) };
      }
    }));
  }

  /** Downloads an expired catalog again in the background. */
  #refreshIfOld(place: CachedRegistry, at: number): void {
    if (ageOf(at) < CATALOG_MS) return;
    const work = () => this.load(place);
    this.#parts.background.run(place, { key: "", isForced: false, work });
  }

  /** Loads a catalog; rejects early if its registry is unreachable or `signal` aborts. */
  #soon({ place, signal }: CatalogLook): Promise<KeptCatalog> {
    return untilAborted(place.limitDuringOutage(() => this.load(place)), signal);
  }

  async #fresh(place: CachedRegistry): Promise<KeptCatalog> {
    const catalog = await freshCatalog(place, this.#parts.cache, this.#parts.user);
    this.#keep(place, catalog);
    return catalog;
  }

  #keep(place: CachedRegistry, catalog: KeptCatalog): void {
    if (this.#catalogs.get(place) !== catalog) this.#merged = undefined;
    this.#catalogs.set(place, catalog);
  }

  /** Returns the merged entries. If several registries offer a name, the first one is used. */
  #all(): readonly CatalogItem[] {
    const items = new Map<string, CatalogItem>();
    for (const place of this.#places.toReversed()) {
      const catalog = this.#catalogs.get(place);
      if (catalog === undefined) continue;
      for (const item of itemsOf(catalog, place.source.url)) items.set(item.fqdn, item);
    }
    return [...items.values()];
  }
}
