/**
 * What registries offer, as their catalogs had it at the last look, and so which names they may be
 * told without a question.
 *
 * @module
 */

import { quoted } from "../../core/json.ts";
import type { Unapproved } from "../../policy/server_identity.ts";
import type { Fqdn } from "../../registry/fqdn.ts";
import type { CatalogItem, Registries } from "../../registry/registries.ts";
import type { Catalog } from "../../search/catalog.ts";
import { offeredCatalog } from "../../search/offered.ts";

/** What looking needs from outside. */
export interface OnOfferOptions {
  /** The registries that are asked now. */
  readonly registries: () => Registries;
  /** Whether a name is the person's own, and so nobody else's, or a policy forbids the server. */
  readonly isOther: (item: CatalogItem) => boolean;
  readonly closing: AbortSignal;
}

/** How long the first look waits for what registries offer. */
const FIRST_LOOK_MS = 2_000;

/** The catalogs of all registries as one. */
export class OnOffer {
  readonly #options: OnOfferOptions;
  /** The registries that were waited for. */
  #asked: Registries | undefined;
  /** The names that the person let be told, by the registries that were shown with them. */
  readonly #saidTo = new WeakMap<Registries, Set<string>>();
  #items: readonly CatalogItem[] = [];
  #catalog: Catalog | undefined;

  /** Asks nothing. */
  constructor(options: OnOfferOptions) {
    this.#options = options;
  }

  /** The tools that the registries offer. */
  get catalog(): Catalog | undefined {
    return this.#catalog;
  }

  /** Makes the catalog anew at the next look: names may be the person's own now. */
  forget(): void {
    this.#items = [];
  }

  /** Looks at what the registries offer; waits for them a little where nothing is known yet. */
  async look(): Promise<void> {
    const registries = this.#options.registries();
    if (registries.catalog().length === 0 && this.#asked !== registries) {
      this.#asked = registries;
      // Who cannot be asked is told of by who looks a server up.
      await registries.refreshCatalog({ signal: this.#briefly() }).catch(() => {});
    }
    const items = registries.catalog();
    if (items === this.#items) return;
    this.#items = items;
    this.#catalog = offeredCatalog(items.filter((item) => !this.#options.isOther(item)));
  }

  /** Tells whether a registry offers an entry of this whole name, as far as it is known. */
  has(fqdn: string): boolean {
    return this.#items.some((item) => item.fqdn === fqdn);
  }

  /** Returns the name of the entry that offers a tool; undefined if it is not known. */
  async entryOf(tool: Fqdn): Promise<string | undefined> {
    // Who cannot be asked is told of by who looks a server up.
    return await this.#options.registries().entryOf(tool, { signal: this.#briefly() })
      .catch(() => undefined);
  }

  /** Asks whether a name may be told that nobody offered: a model may have put into it what it knows. */
  async unapproved(name: string): Promise<Unapproved | undefined> {
    const registries = this.#options.registries();
    const said = this.#saidTo.get(registries) ?? new Set();
    this.#saidTo.set(registries, said);
    const isKnown = said.has(name) || registries.kept(name) !== undefined ||
      (this.#catalog?.toolsOf(name).length ?? 0) > 0 || this.has(name);
    if (isKnown || await registries.offer(name, { signal: this.#briefly() })) return undefined;
    return {
      code: "APPROVAL_REQUIRED",
      isLook: true,
      facts: [
        `No catalog of a registry, and no rule of yours, names a ${
          name.includes(":") ? "capability" : "server"
        } ${quoted(name)}`,
        ...registries.asked(name).map((url) =>
          `Yes tells this name to the registry ${quoted(url, Infinity)}`
        ),
        "Nothing runs yet: what they have is asked about then",
      ],
      accept: () => Promise.resolve(void said.add(name)),
    };
  }

  #briefly(): AbortSignal {
    return AbortSignal.any([this.#options.closing, AbortSignal.timeout(FIRST_LOOK_MS)]);
  }
}
