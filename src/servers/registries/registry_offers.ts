/**
 * Caches the catalogs of registries. A name in a catalog can be sent to its registry without an
 * approval request.
 *
 * @module
 */

import { quoted } from "../../core/json.ts";
import type { Unapproved } from "../../policy/server_identity.ts";
import type { Fqdn } from "../../registry/fqdn.ts";
import type { CatalogItem, Registries } from "../../registry/registries.ts";
import type { Catalog } from "../../search/catalog.ts";
import { offeredCatalog } from "../../search/offered.ts";

/** The lookup of registries. `RegistryLookup` implements it. */
interface OfferLookup {
  /** The present registries. */
  readonly now: Registries;
  readonly closing: AbortSignal;
}

/** How long the first use waits for the catalogs of registries, in milliseconds. */
const FIRST_LOOK_MS = 2_000;

/** The catalogs of all registries as one. */
export class RegistryOffers {
  readonly #lookup: OfferLookup;
  readonly #isOther: (item: CatalogItem) => boolean;
  /** The registries whose catalogs were requested. */
  #requestedRegistries: Registries | undefined;
  /** The names that the user allows to send, by the registries that were shown with them. */
  readonly #saidTo = new WeakMap<Registries, Set<string>>();
  #items: readonly CatalogItem[] = [];
  #catalog: Catalog | undefined;

  /**
   * Sends no request yet. `isOther` returns whether an item is hidden: its name is the user's own, or
   * a policy forbids the server.
   */
  constructor(lookup: OfferLookup, isOther: (item: CatalogItem) => boolean) {
    this.#lookup = lookup;
    this.#isOther = isOther;
  }

  /** The tools that the registries offer. */
  get catalog(): Catalog | undefined {
    return this.#catalog;
  }

  /** Drops the catalog. The next use builds it again: names may be the user's own now. */
  forget(): void {
    this.#items = [];
  }

  /** Updates the catalog. Waits up to two seconds for registries if there is no catalog yet. */
  async look(): Promise<void> {
    const registries = this.#lookup.now;
    if (registries.catalog().length === 0 && this.#requestedRegistries !== registries) {
      this.#requestedRegistries = registries;
      // Unreachable registries are ignored here; the server lookup reports them.
      await registries.refreshCatalog({ signal: this.#briefly() }).catch(() => {});
    }
    const items = registries.catalog();
    if (items === this.#items) return;
    this.#items = items;
    this.#catalog = offeredCatalog(items.filter((item) => !this.#isOther(item)));
  }

  /** Returns whether the catalog has an entry with this whole name. */
  has(fqdn: string): boolean {
    return this.#items.some((item) => item.fqdn === fqdn);
  }

  /** Returns the name of the entry that offers a tool; undefined if it is not known. */
  async entryOf(tool: Fqdn): Promise<string | undefined> {
    // Unreachable registries are ignored here; the server lookup reports them.
    return await this.#lookup.now.entryOf(tool, { signal: this.#briefly() })
      .catch(() => undefined);
  }

  /**
   * Returns an approval request for a name that is in no catalog: a model may have put data into
   * it.
   */
  async unapproved(name: string): Promise<Unapproved | undefined> {
    const registries = this.#lookup.now;
    const allowedNames = this.#saidTo.get(registries) ?? new Set();
    this.#saidTo.set(registries, allowedNames);
    const isKnown = allowedNames.has(name) || registries.storedEntry(name) !== undefined ||
      (this.#catalog?.toolsOf(name).length ?? 0) > 0 || this.has(name);
    if (isKnown || await registries.offer(name, { signal: this.#briefly() })) return undefined;
    return {
      code: "APPROVAL_REQUIRED",
      isLook: true,
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

  #briefly(): AbortSignal {
    return AbortSignal.any([this.#lookup.closing, AbortSignal.timeout(FIRST_LOOK_MS)]);
  }
}
