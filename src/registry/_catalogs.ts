/**
 * The catalogs of all registries, as one.
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
import type { Place } from "./_place.ts";
import type { Cache } from "./cache.ts";
import { inTime } from "./client.ts";

/** What came of asking one registry for its catalog. */
export interface CatalogOutcome {
  readonly source: string;
  readonly entries: number;
  /** How many entries could not be used. */
  readonly dropped: number;
  readonly error: PmlError | undefined;
}

/** What the catalogs need. */
interface CatalogsOptions {
  readonly cache: Cache;
  readonly warn: (message: string) => void;
  /** Ends what is under way. */
  readonly closing: AbortSignal;
}

/** What registries offer, in their order. */
export class Catalogs {
  readonly #places: readonly Place[];
  readonly #options: CatalogsOptions;
  readonly #kept = new Map<Place, KeptCatalog>();
  readonly #loading = new Map<Place, Promise<KeptCatalog>>();
  /** The registries that gave no catalog when somebody waited for it. */
  readonly #waited = new WeakSet<Place>();
  #merged: readonly CatalogItem[] | undefined;

  /** Asks nothing, and reads nothing. */
  constructor(places: readonly Place[], options: CatalogsOptions) {
    this.#places = places;
    this.#options = options;
  }

  /** Gives what is known; says of each registry when that was so, 0 where nothing is known. */
  items(onSeen: (place: Place, at: number) => void): readonly CatalogItem[] {
    for (const place of this.#places) {
      const kept = this.#kept.get(place) ?? keptCatalog(place, this.#options.cache);
      if (kept !== undefined) this.#keep(place, kept);
      onSeen(place, kept?.at ?? 0);
    }
    this.#merged ??= this.#all();
    return this.#merged;
  }

  /** Loads a catalog; who comes while that is under way gets the same. */
  async load(place: Place): Promise<KeptCatalog> {
    const loading = this.#loading.get(place) ??
      this.#fresh(place).finally(() => this.#loading.delete(place));
    this.#loading.set(place, loading);
    return await loading;
  }

  /**
   * Tells whether a registry offers a server. One whose catalog was never read is asked for it and
   * waited for once; throws REGISTRY_OFFLINE where it cannot be reached.
   */
  async has(
    name: string,
    { place, signal, onSeen }: {
      readonly place: Place;
      readonly signal: AbortSignal;
      readonly onSeen: (at: number) => void;
    },
  ): Promise<boolean> {
    const known = this.#kept.get(place) ?? keptCatalog(place, this.#options.cache);
    if (known !== undefined) onSeen(known.at);
    const { rows } = known ?? await this.#first(place, signal);
    return rows.some(([fqdn]) => fqdn.split(":", 1)[0] === name);
  }

  async #first(place: Place, signal: AbortSignal): Promise<Pick<KeptCatalog, "rows">> {
    try {
      if (!this.#waited.has(place)) {
        return await inTime(place.briefly(() => this.load(place)), signal);
      }
    } catch (error) {
      if (asPmlError(error).code === "REGISTRY_OFFLINE") throw error;
      this.#waited.add(place);
    }
    return { rows: [] };
  }

  /** Asks every registry; what takes longer than somebody waits goes on behind. */
  async refresh(signal: AbortSignal): Promise<readonly CatalogOutcome[]> {
    return await Promise.all(this.#places.map(async (place) => {
      const source = place.source.url;
      try {
        const load = place.briefly(() => this.load(place));
        const { rows, dropped } = await inTime(load, signal);
        return { source, entries: rows.length, dropped, error: undefined };
      } catch (thrown) {
        return { source, entries: 0, dropped: 0, error: asPmlError(thrown) };
      }
    }));
  }

  async #fresh(place: Place): Promise<KeptCatalog> {
    const kept = await freshCatalog(place, { ...this.#options, signal: this.#options.closing });
    this.#keep(place, kept);
    return kept;
  }

  #keep(place: Place, kept: KeptCatalog): void {
    if (this.#kept.get(place) !== kept) this.#merged = undefined;
    this.#kept.set(place, kept);
  }

  /** The first registry that offers a name is the one that is asked for it. */
  #all(): readonly CatalogItem[] {
    const items = new Map<string, CatalogItem>();
    for (const place of this.#places.toReversed()) {
      const kept = this.#kept.get(place);
      if (kept === undefined) continue;
      for (const item of itemsOf(kept, place.source.url)) items.set(item.fqdn, item);
    }
    return [...items.values()];
  }
}
