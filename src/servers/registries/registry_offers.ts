/**
 * Caches the catalogs of registries. PML may send a name in a catalog to its registry without
 * asking the user.
 *
 * @module
 */

import { quoted } from "../../core/json.ts";
import type { Unapproved } from "../../policy/server_identity.ts";
import type { Fqdn } from "../../registry/fqdn.ts";
import type { CatalogItem, Registries } from "../../registry/registries.ts";
import type { Catalog } from "../../search/catalog.ts";
import { offeredCatalog } from "../../search/offered_catalog.ts";

/** The lookup of registries. `RegistryLookup` implements it. */
interface OfferLookup {
  /** The registries of the current configuration. */
  readonly registries: Registries;
  readonly closing: AbortSignal;
}

/** How long PML waits for the answer of a registry to a request of this module, in milliseconds. */
const REQUEST_MS = 2_000;

/** Combines the catalogs of all registries, and decides which names may be sent to registries. */
export class RegistryOffers {
  readonly #lookup: OfferLookup;
  readonly #isHidden: (item: CatalogItem) => boolean;
  /** The registries whose catalogs were requested last. */
  #requestedRegistries: Registries | undefined;
  /** The names that the user allowed PML to send, for each set of registries that was shown. */
  readonly #allowedNames = new WeakMap<Registries, Set<string>>();
  #items: readonly CatalogItem[] = [];
  #catalog: Catalog | undefined;

  /**
   * Sends no request yet. `isHidden` returns whether an item is hidden: its name belongs to a
   * server of the user, or a policy forbids it.
   */
  constructor(lookup: OfferLookup, isHidden: (item: CatalogItem) => boolean) {
    this.#lookup = lookup;
    this.#isHidden = isHidden;
  }

  /** The tools that the registries offer; undefined before the first update. */
  get catalog(): Catalog | undefined {
    return this.#catalog;
  }

  /**
   * Makes the next update create the catalog again, because the names of the user's servers may have
   * changed.
   */
  forget(): void {
    this.#items = [];
  }

  /** Updates the catalog. If there is no catalog yet, waits at most two seconds for registries. */
  async update(): Promise<void> {
    const registries = this.#lookup.registries;
    if (registries.catalog().length === 0 && this.#requestedRegistries !== registries) {
      this.#requestedRegistries = registries;
      // Ignores unreachable registries; the lookup of a server reports them.
      await registries.refreshCatalog({ signal: this.#shortSignal() }).catch(() => {});
    }
    const items = registries.catalog();
    if (items === this.#items) return;
    this.#items = items;
    this.#catalog = offeredCatalog(items.filter((item) => !this.#isHidden(item)));
  }

  /**
   * Returns whether the catalogs of the last update have an entry with this whole name, also if it
   * is hidden.
   */
  has(fqdn: string): boolean {
    return this.#items.some((item) => item.fqdn === fqdn);
  }

  /** Returns the name of the entry that offers a tool; undefined if it is not known. */
  async entryOf(tool: Fqdn): Promise<string | undefined> {
    // Ignores unreachable registries; the lookup of a server reports them.
    return await this.#lookup.registries.findEntryOf(tool, { signal: this.#shortSignal() })
      .catch(() => undefined);
  }

  /**
   * Returns an approval request for a name that is in no catalog: a model may have invented the
   * name and put data into it. Returns undefined if the name may be sent. The caller has already
   * checked that no rule of the user names it.
   */
  async findUnapproved(name: string): Promise<Unapproved | undefined> {
    const registries = this.#lookup.registries;
    const allowedNames = this.#allowedNames.get(registries) ?? new Set();
    this.#allowedNames.set(registries, allowedNames);
    const isKnown = allowedNames.has(name) || registries.storedEntry(name) !== undefined ||
      (this.#catalog?.toolsOf(name).length ?? 0) > 0 || this.has(name);
    if (isKnown || await registries.isOffered(name, { signal: this.#shortSignal() })) {
      return undefined;
    }
    return {
      code: "APPROVAL_REQUIRED",
      isOnlyForReading: true,
      facts: [
        `No catalog of a registry, and no rule of yours, names a ${
          name.includes(":") ? "capability" : "server"
        } ${quoted(name)}`,
        ...registries.urlsFor(name).map((url) =>
          `If you answer yes, PML sends this name to the registry ${quoted(url, Infinity)}`
        ),
        "Nothing runs yet. PML asks again about the server that the registry has",
      ],
      accept: () => Promise.resolve(void allowedNames.add(name)),
    };
  }

  #shortSignal(): AbortSignal {
    return AbortSignal.any([this.#lookup.closing, AbortSignal.timeout(REQUEST_MS)]);
  }
}
