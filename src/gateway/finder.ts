/**
 * Finds tools of servers and of registry offers: by their words, and by their meaning. The meaning
 * comes from the shipped word vectors, and from a model if the user configured one. The first search
 * loads this file.
 *
 * @module
 */

import { messageOf } from "../core/errors.ts";
import type { Config } from "../config/current_config.ts";
import type { Log } from "../audit/log.ts";
import type { Environment } from "../config/env.ts";
import type { Limits } from "../config/limits.ts";
import type { CheckReport } from "../core/check.ts";
import type { ModelHub, ModelHubOptions } from "../search/embedding/model_hub.ts";
import type { Catalog, CatalogEntry } from "../search/catalog.ts";
import type { ShippedExamples } from "../search/examples.ts";
import {
  Search,
  type SearchAnswer,
  type SearchOptions,
  type SearchSources,
} from "../search/search.ts";
import type { Semantics } from "../search/semantics.ts";
import { shippedExamples, shippedWords } from "../search/shipped.ts";
import { WordMeaning } from "../search/word_meaning.ts";
import type { WordVectors } from "../search/word_vectors.ts";
import type { Servers } from "../servers/lists/servers.ts";
import { proxyVariables } from "../policy/network.ts";
import type { Policy } from "../policy/policy.ts";
import type { UseMemory } from "../workflow/use_memory.ts";
import type { Machine } from "../servers/machine.ts";
import type { Meaning, MeaningOwner } from "../search/meaning.ts";
import type { RegistryServers } from "../servers/registries/registry_servers.ts";

/** The collaborators of `Finder`. `App` implements it. */
export interface FinderHost {
  readonly catalog: Catalog;
  readonly servers: Pick<Servers, "has">;
  readonly policy: Pick<Policy, "now">;
  readonly log: Log;
  /** The parts with the user's proxy, and whether the process keeps running (`serve`, `stdio`). */
  readonly parts: Parameters<typeof proxyVariables>[0] & { readonly isLongRunning?: boolean };
  /** Opens the servers of registries. */
  registries(): Promise<RegistryServers>;
  /** Returns the tools of the cloud; undefined if the cloud cannot be used. */
  cloudTools(): Catalog | undefined;
  /** Opens the memory of the use of tools. */
  openMemory(): Promise<UseMemory>;
  /** Opens the process groups and the network. */
  machine(): Promise<Pick<Machine, "groups" | "fetch">>;
  /** Is called when all tools have vectors, so that lists by the intent may have changed. */
  notifyRankedTools(): void;
}

/** Finds tools. */
export class Finder implements SearchSources, MeaningOwner, AsyncDisposable {
  /** The variables of the process. */
  readonly environment: Environment;
  readonly #host: FinderHost;
  readonly #search: Search;
  #registries: RegistryServers | undefined;
  /** The configured model. */
  #meaning: Meaning | undefined;
  #loading: Promise<[WordVectors, ShippedExamples]> | undefined;
  #examples: ShippedExamples | undefined;
  #words: WordVectors | undefined;
  /** The model that ships with PML. */
  #shippedMeaning: WordMeaning | undefined;

  /** Takes the host. Reads nothing before the first search. */
  constructor(host: FinderHost) {
    this.#host = host;
    this.environment = host.policy.now.loaded.environment;
    this.#search = new Search(host.catalog, this);
  }

  /** The log of this PML. */
  get log(): Log {
    return this.#host.log;
  }

  /** Whether the process keeps running after the search. */
  get isLongRunning(): boolean {
    return this.#host.parts.isLongRunning === true;
  }

  /** The limits of the configuration. */
  get limits(): Limits {
    return this.#config().limits;
  }

  /** Returns the tools that registries and the cloud offer. */
  catalogs(): readonly Catalog[] {
    return [this.#registries?.offers.catalog, this.#host.cloudTools()]
      .filter((one) => one !== undefined);
  }

  /** Returns whether a server of this name exists. */
  isTaken(server: string): boolean {
    return this.#host.servers.has(server);
  }

  /** Returns the configured model and the model that ships with PML, once they are open. */
  semantics(): readonly Semantics[] {
    return [this.#meaning, this.#shippedMeaning].filter((one) => one !== undefined);
  }

  /** Returns the examples that ship with PML, once they are loaded. */
  examples(): ShippedExamples | undefined {
    return this.#examples;
  }

  /** Returns the word vectors that ship with PML, once they are loaded. */
  words(): WordVectors | undefined {
    return this.#words;
  }

  /** Returns the process groups of this PML. */
  async groups(): Promise<Machine["groups"]> {
    return (await this.#host.machine()).groups;
  }

  /** Returns the variables that make an installer use the user's proxy. */
  proxyVariables(): Readonly<Record<string, string>> {
    return proxyVariables(this.#host.parts);
  }

  /** Reports that all tools have vectors, so that lists by the intent may have changed. */
  onAllIndexed(): void {
    const { gateway: { exposure }, intent } = this.#config();
    const isByIntent = exposure === "semantic" || exposure === "hybrid";
    if (isByIntent && intent !== undefined) this.#host.notifyRankedTools();
  }

  /** Finds the tools that match. */
  async search(
    query: string | readonly string[],
    options: SearchOptions = {},
  ): Promise<SearchAnswer> {
    await Promise.all([options.offers === false || this.#updateOffers(), this.#openModel()]);
    const { actor } = options;
    if (actor === undefined || options.memory !== undefined || !this.#config().memory) {
      return await this.#search.search(query, options);
    }
    const memory = await this.#host.openMemory();
    const answer = await this.#search.search(query, { ...options, memory });
    for (const [index, text] of [query].flat().entries()) {
      const tools = (answer.byQuery[index] ?? []).map(({ id }) => id);
      memory.recordSearch(actor, { query: text, foundTools: tools });
    }
    return answer;
  }

  /** Returns the tools of a server from a registry that is not configured yet. */
  async offeredTools(server: string): Promise<readonly CatalogEntry[]> {
    // A configured server needs no registry.
    if (this.#host.servers.has(server)) return [];
    await this.#updateOffers();
    return this.#registries?.offers.catalog?.toolsOf(server) ?? [];
  }

  /** Returns a report that states which model search uses, and why. */
  async check(): Promise<CheckReport> {
    await this.#openModel();
    if (this.#meaning !== undefined) {
      return await this.#meaning.check(this.entries());
    }
    const text = "with the built-in model; `pml search install-model` adds a larger one";
    return { name: "search", ok: true, message: text };
  }

  /** Returns which part of the configured model is missing, and how to install it. */
  async missingPart(): Promise<string | undefined> {
    await this.#openModel();
    return this.#meaning?.installNote();
  }

  /**
   * Installs the library of the configured model if it is missing. Returns the name of the library;
   * undefined if no model is configured.
   */
  async installLibrary(): Promise<string | undefined> {
    await this.#openModel();
    return await this.#meaning?.installLibrary();
  }

  /** Opens a model that is not configured yet. The caller closes it. */
  async model(folder: string): Promise<Meaning> {
    const { Meaning } = await import("../search/meaning.ts");
    return new Meaning(folder, this);
  }

  /** Opens a client for a hub of models. */
  async hub(options: Pick<ModelHubOptions, "from" | "signal">): Promise<ModelHub> {
    const { ModelHub } = await import("../search/embedding/model_hub.ts");
    return new ModelHub({ ...options, fetch: (await this.#host.machine()).fetch });
  }

  /** Returns the tools that are searched by meaning. Registry offers are searched by words only. */
  entries(): readonly CatalogEntry[] {
    return this.#host.catalog.list();
  }

  /** Ends the processes of the model. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#meaning?.[Symbol.asyncDispose]();
  }

  /** Opens the model that the configuration names now, and closes the previous model. */
  async #openModel(): Promise<void> {
    this.#loading ??= Promise.all([shippedWords(), shippedExamples()]);
    [this.#words, this.#examples] = await this.#loading;
    this.#shippedMeaning ??= new WordMeaning(this.#words);
    const { model } = this.#config();
    if (model === this.#meaning?.folder) return;
    const meaning = model === undefined ? undefined : await this.model(model);
    // Another search may have opened the model meanwhile.
    if (meaning?.folder === this.#meaning?.folder) return;
    const previous = this.#meaning;
    this.#meaning = meaning;
    await previous?.[Symbol.asyncDispose]();
  }

  /** Updates the catalogs of registries. */
  async #updateOffers(): Promise<void> {
    const host = this.#host;
    if (this.#config().registries.length === 0) return;
    const update = async () => {
      this.#registries = await host.registries();
      await this.#registries.offers.update();
    };
    await update().catch((error) =>
      host.log.warn(`Cannot search the servers of registries: ${messageOf(error)}`)
    );
  }

  #config(): Config {
    return this.#host.policy.now.config;
  }
}
