/**
 * Finds tools of servers and of registry offers: by their words, and by their meaning if the user
 * configured a model. It is loaded by the first search.
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

/** The PML whose tools are searched. `App` implements it. */
export interface FinderHost {
  readonly catalog: Catalog;
  readonly servers: Pick<Servers, "has">;
  readonly policy: Pick<Policy, "now">;
  readonly log: Log;
  /** The parts that know the proxy of the user, and whether the process stays. */
  readonly parts: Parameters<typeof proxyVariables>[0] & { readonly stays?: boolean };
  /** Opens the servers of registries. */
  registries(): Promise<RegistryServers>;
  /** Returns the tools of the cloud, if it can be used. */
  cloudTools(): Catalog | undefined;
  /** Opens the memory of the use of tools. */
  memory(): Promise<UseMemory>;
  /** Opens the process groups and the network. */
  machine(): Promise<Pick<Machine, "groups" | "fetch">>;
  /** Is called when lists by the intent may differ, because all tools have vectors now. */
  toolsRanked(): void;
}

/** Finds tools. */
export class Finder implements SearchSources, MeaningOwner, AsyncDisposable {
  /** The variables of the process. */
  readonly environment: Environment;
  readonly #host: FinderHost;
  readonly #search: Search;
  #registries: RegistryServers | undefined;
  #meaning: Meaning | undefined;
  #loading: Promise<[WordVectors, ShippedExamples]> | undefined;
  #examples: ShippedExamples | undefined;
  #words: WordVectors | undefined;
  #shipped: WordMeaning | undefined;

  /** Reads nothing before the first search. */
  constructor(host: FinderHost) {
    this.#host = host;
    this.environment = host.policy.now.loaded.environment;
    this.#search = new Search(host.catalog, this);
  }

  /** The log of this PML. */
  get log(): Log {
    return this.#host.log;
  }

  /** Whether the process stays. */
  get stays(): boolean {
    return this.#host.parts.stays === true;
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

  /** Returns the model that is configured, and the one that ships with PML, once they are open. */
  semantics(): readonly Semantics[] {
    return [this.#meaning, this.#shipped].filter((one) => one !== undefined);
  }

  /** Returns the examples that ship with PML, once they are loaded. */
  examples(): ShippedExamples | undefined {
    return this.#examples;
  }

  /** Returns the words that ship with PML, once they are loaded. */
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

  /** Reports that lists by the intent may differ, because all tools have vectors now. */
  allIndexed(): void {
    const { gateway: { exposure }, intent } = this.#config();
    const isByIntent = exposure === "semantic" || exposure === "hybrid";
    if (isByIntent && intent !== undefined) this.#host.toolsRanked();
  }

  /** Finds the tools that match. */
  async search(
    query: string | readonly string[],
    options: SearchOptions = {},
  ): Promise<SearchAnswer> {
    await Promise.all([options.offers === false || this.#offers(), this.#follow()]);
    const { actor } = options;
    if (actor === undefined || options.memory !== undefined || !this.#config().memory) {
      return await this.#search.search(query, options);
    }
    const memory = await this.#host.memory();
    const answer = await this.#search.search(query, { ...options, memory });
    for (const [at, text] of [query].flat().entries()) {
      const tools = (answer.byQuery[at] ?? []).map(({ id }) => id);
      memory.searched(actor, { query: text, tools });
    }
    return answer;
  }

  /** Returns the tools of a server that a registry offers and that was not used here yet. */
  async offered(server: string): Promise<readonly CatalogEntry[]> {
    // A configured server needs no registry.
    if (this.#host.servers.has(server)) return [];
    await this.#offers();
    return this.#registries?.offers.catalog?.toolsOf(server) ?? [];
  }

  /** Returns a check that states which model search uses, and why. */
  async check(): Promise<CheckReport> {
    await this.#follow();
    if (this.#meaning !== undefined) {
      return await this.#meaning.check(this.entries());
    }
    const text = "with the built-in model; `pml search install-model` adds a larger one";
    return { name: "search", ok: true, message: text };
  }

  /** Returns the missing part of the configured hybrid search, and how to install it. */
  async lacking(): Promise<string | undefined> {
    await this.#follow();
    return this.#meaning?.lacking();
  }

  /**
   * Installs the library of the configured model if it is missing. Returns its name, or undefined
   * if no model is configured.
   */
  async installLibrary(): Promise<string | undefined> {
    await this.#follow();
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

  /** Opens the model that the configuration names now, and closes another one. */
  async #follow(): Promise<void> {
    this.#loading ??= Promise.all([shippedWords(), shippedExamples()]);
    [this.#words, this.#examples] = await this.#loading;
    this.#shipped ??= new WordMeaning(this.#words);
    const { model } = this.#config();
    if (model === this.#meaning?.folder) return;
    const meaning = model === undefined ? undefined : await this.model(model);
    // Another search may have been faster.
    if (meaning?.folder === this.#meaning?.folder) return;
    const before = this.#meaning;
    this.#meaning = meaning;
    await before?.[Symbol.asyncDispose]();
  }

  /** Updates the catalogs of registries. */
  async #offers(): Promise<void> {
    const host = this.#host;
    if (this.#config().registries.length === 0) return;
    const look = async () => {
      this.#registries = await host.registries();
      await this.#registries.offers.look();
    };
    await look().catch((error) =>
      host.log.warn(`Cannot search the servers of registries: ${messageOf(error)}`)
    );
  }

  #config(): Config {
    return this.#host.policy.now.config;
  }
}
