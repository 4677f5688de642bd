/**
 * Finds tools: those that there are and those that registries offer, by their words, and by their
 * meaning where the person named a model for that. It is loaded by the first search.
 *
 * @module
 */

import type { Config } from "../config/config.ts";
import type { Check } from "../core/check.ts";
import type { Fetch } from "../core/fetch.ts";
import type { ModelHub, ModelHubOptions } from "../embedding/model_hub.ts";
import type { Catalog, CatalogEntry } from "../search/catalog.ts";
import { Search, type SearchAnswer, type SearchOptions } from "../search/search.ts";
import type { Meaning, MeaningOptions } from "./meaning.ts";
import type { RegistryServers } from "./registry_servers.ts";

/** What finding needs from outside. */
export interface FinderOptions extends Omit<MeaningOptions, "folder" | "limits" | "onReady"> {
  readonly catalog: Catalog;
  /** Whether there is a server of this name. */
  readonly has: (server: string) => boolean;
  readonly config: () => Config;
  /** The servers of registries. */
  readonly adopted: () => Promise<RegistryServers>;
  /** Told when lists by the intent may be others, because all tools are understood now. */
  readonly onRanked: () => void;
  /** The way out to the network. */
  readonly fetch: Fetch;
}

/** Finds tools. */
export class Finder implements AsyncDisposable {
  readonly #options: FinderOptions;
  readonly #search: Search;
  #adopted: RegistryServers | undefined;
  #meaning: Meaning | undefined;

  /** Reads nothing before the first search. */
  constructor(options: FinderOptions) {
    this.#options = options;
    this.#search = new Search(options.catalog, {
      catalog: () => this.#adopted?.offers.catalog,
      isTaken: (server) => options.has(server),
      semantics: () => this.#meaning,
    });
  }

  /** Finds the tools that fit. */
  async search(
    query: string | readonly string[],
    options: SearchOptions = {},
  ): Promise<SearchAnswer> {
    await Promise.all([options.offers === false || this.#offers(), this.#follow()]);
    return await this.#search.search(query, options);
  }

  /** Gives the tools of a server that a registry offers, and that nobody has used here yet. */
  async offered(server: string): Promise<readonly CatalogEntry[]> {
    await this.#offers();
    return this.#adopted?.offers.catalog?.toolsOf(server) ?? [];
  }

  /** Tells whether search is lexical or hybrid, and why. */
  async check(): Promise<Check> {
    await this.#follow();
    if (this.#meaning !== undefined) {
      return await this.#meaning.check(this.entries());
    }
    const said = "lexical; `pml search install-model` has it understand meanings, too";
    return { name: "search", ok: true, said };
  }

  /** Says what search lacks to be hybrid as it is configured, and how that is got. */
  async lacking(): Promise<string | undefined> {
    await this.#follow();
    return this.#meaning?.lacking();
  }

  /** Opens a model that is not configured yet; whoever asked closes it. */
  async model(folder: string): Promise<Meaning> {
    const { config, onRanked, ...rest } = this.#options;
    const { Meaning } = await import("./meaning.ts");
    const onReady = () => {
      const { gateway: { exposure }, intent } = config();
      const isByIntent = exposure === "semantic" || exposure === "hybrid";
      if (isByIntent && intent !== undefined) onRanked();
    };
    return new Meaning({ ...rest, folder, limits: () => config().limits, onReady });
  }

  /** Opens the way to a hub of models. */
  async hub(options: Pick<ModelHubOptions, "from" | "signal">): Promise<ModelHub> {
    const { ModelHub } = await import("../embedding/model_hub.ts");
    return new ModelHub({ ...options, fetch: this.#options.fetch });
  }

  /** Gives the tools that are understood: what registries offer goes by words alone. */
  entries(): readonly CatalogEntry[] {
    return this.#options.catalog.list();
  }

  /** Ends what was started. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#meaning?.[Symbol.asyncDispose]();
  }

  /** Has the model at hand that the configuration names now. */
  async #follow(): Promise<void> {
    const { model } = this.#options.config();
    if (model === this.#meaning?.folder) return;
    const opened = model === undefined ? undefined : await this.model(model);
    // Another search may have been faster.
    if (opened?.folder === this.#meaning?.folder) return;
    const before = this.#meaning;
    this.#meaning = opened;
    await before?.[Symbol.asyncDispose]();
  }

  /** Has a look at what registries offer. */
  async #offers(): Promise<void> {
    const { config, adopted, log } = this.#options;
    if (config().registries.length === 0) return;
    const look = async () => {
      this.#adopted = await adopted();
      await this.#adopted.offers.look();
    };
    await look().catch((error) => log.warn(`Cannot search what registries offer: ${error}`));
  }
}
