/**
 * The servers of registries. The first call of a server looks the server up and asks the user.
 * After the approval, the server is pinned and can be used in this workspace like any other server.
 *
 * @module
 */

import { memberOf, quoted } from "../../core/json.ts";
import type { Manifest } from "../manifest.ts";
import { isOwnPin, type ServerIdentity, type Unapproved } from "../../policy/server_identity.ts";
import { definitionLines } from "../../policy/definition_texts.ts";
import { definitionHash } from "../../policy/integrity.ts";
import { pinnedChanges } from "../../policy/lock.ts";
import { requiredVariables } from "../../registry/manifest.ts";
import { entryName, fqdnOf } from "../../registry/fqdn.ts";
import type { FoundEntry } from "../../registry/registries.ts";
import { assertKeys, type RegistryServer, registryServer } from "./registry_entry.ts";
import { codeManifest } from "../kinds.ts";
import type { ApprovedServers, LookupOptions, RegistryNames } from "../source.ts";
import { RegistryOffers } from "./registry_offers.ts";
import { lookUp, RegistryLookup, type RegistryParts } from "./registry_lookup.ts";

/** The servers of registries in this workspace. */
export class RegistryServers implements ApprovedServers, RegistryNames, Disposable {
  /** The catalogs of the registries. */
  readonly offers: RegistryOffers;
  /** Looks up servers in registries. */
  readonly lookup: RegistryLookup;
  readonly #parts: RegistryParts;
  readonly #builtins: ReadonlySet<string>;
  /**
   * The servers of the last entries, by the whole name of a server or capability
   * (`namespace:action`).
   */
  readonly #servers = new Map<string, RegistryServer>();
  /** The servers whose current entries the user approved in this workspace, by whole name. */
  readonly #approvedServers = new Map<string, RegistryServer>();
  /**
   * All names that the user approved in this workspace, also if their entries have changed since.
   */
  readonly #approvedNames = new Set<string>();
  /** The names that a server of the user hides, and that are logged already. */
  readonly #hiddenNames = new Set<string>();

  /** `builtins` are the names of the servers that ship with PML. Sends no request yet. */
  constructor(parts: RegistryParts, builtins: ReadonlySet<string>) {
    const { policy } = parts;
    const isReserved = (name: string) => this.#isReserved(name);
    this.#parts = parts;
    this.#builtins = builtins;
    this.lookup = new RegistryLookup(parts, isReserved);
    this.offers = new RegistryOffers(
      this.lookup,
      (item) => this.#isHidden(item.name) || this.lookup.forbidden(item) !== undefined,
    );
    policy.onChange((change) => {
      if (change === "registry") return;
      this.offers.forget();
      // Approval requests contain grants and similar names, which may have changed.
      // guard: found-anew
      this.#servers.clear();
      if (this.#approvedNames.size > 0) this.#reportApproved();
    });
  }

  /** Loads the servers that the user approved in this workspace before. */
  async open(): Promise<void> {
    const { pins } = this.#parts;
    const { home } = await pins.state();
    for (const [name, pin] of Object.entries(home)) {
      if (isOwnPin(pin) || this.#isHidden(name)) continue;
      this.#approvedNames.add(name);
      const entry = this.lookup.registries.storedEntry(name);
      // guard: token-later
      if (entry === undefined || this.lookup.refusalOf(entry) !== undefined) continue;
      const server = this.#serverOf(entry);
      if (await pins.findUnapproved(server.identity) === undefined) {
        this.#approvedServers.set(name, server);
      }
    }
    if (this.#approvedNames.size > 0) this.#reportApproved();
  }

  /** Returns a server that the user approved in this workspace. */
  find(name: string): RegistryServer | undefined {
    return this.#isReserved(name) ? undefined : this.#approvedServers.get(name);
  }

  /** Returns the manifest of a server that the user approved in this workspace. */
  manifestOf(name: string): Manifest | undefined {
    return this.find(name)?.entry.manifest;
  }

  /**
   * Returns all names that the user approved in this workspace, also if their entries have changed.
   * Leaves out names that belong to a server that is not from a registry now.
   */
  names(): readonly string[] {
    return [...this.#approvedNames].filter((name) => !this.#isReserved(name));
  }

  /** Returns the approved names of servers. */
  servers(): readonly string[] {
    return this.names().filter((name) => !name.includes(":"));
  }

  /** Returns the approved names of capabilities. */
  capabilities(): readonly string[] {
    return this.names().filter((name) => name.includes(":"));
  }

  /** Returns the current identities of the pinned servers, to compare them with the pins. */
  async identities(): Promise<readonly ServerIdentity[]> {
    const { lock } = await this.#parts.pins.state();
    const locked = Object.entries(lock).filter(([, pin]) => !isOwnPin(pin));
    const names = new Set([...locked.map(([name]) => name), ...this.names()]);
    const entries = await Promise.all([...names].map((name) => this.lookup.entryToCompare(name)));
    return entries.flatMap((entry) => entry === undefined ? [] : [this.#serverOf(entry).identity]);
  }

  /** Returns why a server may not be used without another approval; undefined if it may. */
  whyBlocked(name: string): string | undefined {
    const approved = this.#approvedServers.get(name);
    const entry = this.lookup.registries.storedEntry(name);
    if (entry === undefined) return "no configured registry has it now";
    const refusal = this.lookup.refusalOf(entry);
    if (refusal !== undefined) return refusal.message;
    return approved !== undefined && entry.hash === approved.entry.hash
      ? undefined
      : "its registry has another entry now; calling it asks the user";
  }

  /**
   * Returns the URL of the registry that has a server or a capability, as its cached entry or the
   * cached catalogs show it; undefined if neither has the name.
   */
  sourceOf(name: string): string | undefined {
    if (this.#isReserved(name) || fqdnOf(name) === undefined) return undefined;
    const { registries } = this.lookup;
    return registries.storedEntry(name)?.source ??
      registries.catalog().find(({ fqdn }) => fqdn === name)?.source;
  }

  /**
   * Returns the name of the registry's entry that has a tool: the server, or a capability such as
   * `fs:read_json`. If both have the tool, returns the server.
   */
  async entryOf(server: string, tool: string, isNamed: boolean): Promise<string> {
    const fqdn = fqdnOf(`${server}:${tool}`);
    if (fqdn?.action === undefined || fqdn.version !== undefined) return server;
    const whole = entryName(fqdn);
    const { home } = await this.#parts.pins.state();
    const { tools = [] } = this.#approvedServers.get(server)?.entry.manifest ?? {};
    if (tools.some(({ name }) => name === tool)) return server;
    if (memberOf(home, whole) !== undefined) return whole;
    // If the registry lists no tools of an approved server, the server may have any tool.
    const isUsed = memberOf(home, server) !== undefined && tools.length === 0;
    // A name that the user wrote is looked up unchanged.
    if (isUsed || isNamed) return server;
    return await this.offers.entryOf(fqdn) ?? server;
  }

  /**
   * Looks up a server or a capability in the registries. Returns an approval request for it;
   * undefined if it is approved, or if no registry has it. If the name is in no catalog, returns an
   * approval request for the lookup itself.
   */
  async findUnapproved(
    name: string,
    { signal, isAllowed, isNamed, tool }: LookupOptions,
  ): Promise<Unapproved | undefined> {
    if (this.#isReserved(name)) return undefined;
    const { home } = await this.#parts.pins.state();
    const isUsed = memberOf(home, name) !== undefined;
    const checkOffers = () => this.offers.findUnapproved(name);
    const nameRequest = isNamed || isUsed ? undefined : await lookUp(name, checkOffers);
    // A client with an identity may invent names: they create no approval requests and are denied.
    const { identity } = this.#parts.policy.now.config.restrictions ?? {};
    if (nameRequest !== undefined) return identity === undefined ? nameRequest : undefined;
    const entry = await this.lookup.newestEntry(name, signal);
    if (entry === undefined) return undefined;
    const refusal = this.lookup.refusalOf(entry);
    // guard: token
    if (refusal !== undefined) throw refusal;
    const server = this.#serverOf(entry);
    const { pins } = this.#parts;
    const unapproved = await pins.findUnapproved(server.identity);
    if (unapproved !== undefined && !(isAllowed && await this.#isFirst(server.identity))) {
      // guard: keys-first
      assertKeys(entry.manifest, this.#parts.keys);
      const { facts } = unapproved;
      return {
        ...unapproved,
        ...textsOf(entry.manifest, tool),
        facts: [...facts, ...await this.lookup.textOf(entry, signal)],
      };
    }
    await unapproved?.accept();
    this.#setApproved(server);
    return undefined;
  }

  /**
   * Returns whether the server is new in this workspace: no entry of it is pinned here, and the
   * lock contains no other entry.
   */
  async #isFirst({ name, pinned }: ServerIdentity): Promise<boolean> {
    const { lock, home } = await this.#parts.pins.state();
    const locked = memberOf(lock, name);
    return memberOf(home, name) === undefined &&
      (locked === undefined || pinnedChanges(locked, pinned).length === 0);
  }

  /** Fetches the code of a module before it is read. */
  async fetchCode(
    name: string,
    { signal, tell }: { readonly signal: AbortSignal; readonly tell: (message: string) => void },
  ): Promise<void> {
    const { entry } = this.#approvedServers.get(name) ?? {};
    if (entry === undefined || codeManifest(entry.manifest) === undefined) return;
    if (this.lookup.registries.hasCode(entry)) return;
    tell(`getting ${name} from ${new URL(entry.source.replace(/^mcp\+/, "")).host}`);
    await this.lookup.registries.code(entry, {
      signal,
      onProgress: ({ progress, total }) =>
        tell(`getting ${name}: ${progress}${total === undefined ? "" : ` of ${total}`} bytes`),
    });
  }

  /** Returns the variables that the approved servers need. */
  neededVariables(): readonly { readonly server: string; readonly names: readonly string[] }[] {
    return this.names().map((server) => {
      const manifest = this.manifestOf(server);
      return { server, names: manifest === undefined ? [] : requiredVariables(manifest) };
    });
  }

  /** Stops all requests. */
  [Symbol.dispose](): void {
    this.lookup[Symbol.dispose]();
  }

  /** Returns whether a name belongs to a built-in server, or a file defines or disables it. */
  #isReserved(whole: string): boolean {
    const name = whole.split(":", 1)[0] ?? "";
    const { policy } = this.#parts;
    const { config, loaded: { file, parents } } = policy.now;
    const definitions = [config, file, ...parents].flatMap((each) => each?.servers ?? []);
    return this.#builtins.has(name) || policy.fileThatDisables(name) !== undefined ||
      definitions.some((definition) => definition.name === name);
  }

  /**
   * Returns whether a name belongs to a server that is not from a registry. If a server of the user
   * hides the name, logs that once.
   */
  #isHidden(name: string): boolean {
    const { policy, log } = this.#parts;
    const [server] = name.split(":", 1);
    const isOwn = policy.now.config.servers.some((own) => own.name === server);
    if (isOwn && !this.#hiddenNames.has(name)) {
      log.debug(`A registry has a server ${quoted(name)}, too: your own definition counts`);
      this.#hiddenNames.add(name);
    }
    return this.#isReserved(name);
  }

  #setApproved(server: RegistryServer): void {
    const { name } = server.identity;
    if (this.#approvedServers.get(name) === server) return;
    this.#approvedServers.set(name, server);
    this.#approvedNames.add(name);
    this.#reportApproved();
  }

  #reportApproved(): void {
    const servers = [...this.#approvedServers].filter(([name]) => !this.#isReserved(name));
    this.#parts.policy.approve(new Map(servers.map(([name, { entry }]) => [name, entry.source])));
  }

  /** Returns the server of an entry: the same object until the entry changes. */
  #serverOf(entry: FoundEntry): RegistryServer {
    const { fqdn: name } = entry.manifest;
    const lastServer = this.#servers.get(name);
    const factsOf = ({ hash, source, vouched, older, gone }: FoundEntry) =>
      JSON.stringify([hash, source, vouched, older, gone]);
    if (lastServer !== undefined && factsOf(lastServer.entry) === factsOf(entry)) return lastServer;
    const { policy } = this.#parts;
    const configuredNames = policy.now.config.servers.map((each) => each.name);
    const server = registryServer(entry, {
      config: policy.now.config,
      environment: policy.now.loaded.environment,
      names: [...this.#builtins, ...configuredNames, ...this.#approvedServers.keys()],
      codePath: (code) => this.lookup.registries.codePath(code),
    });
    this.#servers.set(name, server);
    return server;
  }
}

/**
 * Returns the definition of a called tool for the approval request, if the registry contains it.
 */
function textsOf(
  { tools }: FoundEntry["manifest"],
  tool: string | undefined,
): Pick<Unapproved, "definition" | "definitionLines"> {
  const definition = tools.find(({ name }) => name === tool)?.definition;
  return definition === undefined
    ? {}
    : { definition: definitionHash(definition), definitionLines: definitionLines(definition) };
}
