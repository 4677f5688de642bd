/**
 * The servers of registries. The first call looks one up and asks the user. After the approval it
 * is pinned, and a server like any other in this workspace.
 *
 * @module
 */

import { memberOf, quoted } from "../../core/json.ts";
import type { Log } from "../../audit/log.ts";
import type { Redactor } from "../../audit/redact.ts";
import type { Keys } from "../../config/keys.ts";
import type { Manifest } from "../manifest.ts";
import { isOwnPin, type ServerIdentity, type Unapproved } from "../../policy/server_identity.ts";
import { definitionLines } from "../../policy/definition_texts.ts";
import type { Pins } from "../../policy/pins.ts";
import type { Policy } from "../../policy/policy.ts";
import { definitionHash } from "../../policy/integrity.ts";
import { pinnedChanges } from "../../policy/lock.ts";
import { requiredOf } from "../../registry/manifest.ts";
import { entryName, fqdnOf } from "../../registry/fqdn.ts";
import type { FoundEntry } from "../../registry/registries.ts";
import { assertKeys, type RegistryServer, registryServer } from "./registry_entry.ts";
import { codeManifest } from "../kinds.ts";
import type { ApprovedServers, LookupOptions, RegistryNames } from "../source.ts";
import { RegistryOffers } from "./registry_offers.ts";
import { reached, RegistryLookup } from "./registry_lookup.ts";

/** The options of `RegistryServers`. */
export interface RegistryServersOptions {
  readonly policy: Policy;
  readonly builtins: ReadonlySet<string>;
  readonly keys: Keys;
  readonly pins: Pins;
  readonly log: Log;
  readonly redactor: Redactor;
}

/** The servers of registries in this workspace. */
export class RegistryServers implements ApprovedServers, RegistryNames, Disposable {
  /** The catalogs of the registries. */
  readonly offers: RegistryOffers;
  /** Looks servers up. */
  readonly lookup: RegistryLookup;
  readonly #options: RegistryServersOptions;
  /** The last entries, by the whole name of a server or capability (`namespace:action`). */
  readonly #servers = new Map<string, RegistryServer>();
  /** The entries that the user approved here. */
  readonly #here = new Map<string, RegistryServer>();
  /** Their names, and those of servers whose entries differ from the approved ones. */
  readonly #approved = new Set<string>();
  /** The names for which the log contains that a server of the user hides them. */
  readonly #hidden = new Set<string>();

  /** Takes the present configuration. Sends no request yet. */
  constructor(options: RegistryServersOptions) {
    const { policy } = options;
    const isOther = (name: string) => this.#isOther(name);
    this.#options = options;
    this.lookup = new RegistryLookup({ ...options, isOther });
    this.offers = new RegistryOffers(
      this.lookup,
      (item) => this.#isHidden(item.name) || this.lookup.forbidden(item) !== undefined,
    );
    policy.onChange((change) => {
      if (change === "registry") return;
      this.offers.forget();
      // An approval request contains grants and the owner of a name, which may have changed.
      // guard: found-anew
      this.#servers.clear();
      if (this.#approved.size > 0) this.#tell();
    });
  }

  /** Loads the servers that the user approved in this workspace before. */
  async open(): Promise<void> {
    const { pins } = this.#options;
    const { home } = await pins.state();
    for (const [name, pin] of Object.entries(home)) {
      if (isOwnPin(pin) || this.#isHidden(name)) continue;
      this.#approved.add(name);
      const entry = this.lookup.now.storedEntry(name);
      // guard: token-later
      if (entry === undefined || this.lookup.refused(entry) !== undefined) continue;
      const server = this.#serverOf(entry);
      if (await pins.unapproved(server.identity) === undefined) this.#here.set(name, server);
    }
    if (this.#approved.size > 0) this.#tell();
  }

  /** Returns a server that the user approved here. */
  at(name: string): RegistryServer | undefined {
    return this.#isOther(name) ? undefined : this.#here.get(name);
  }

  /** Returns the manifest of a server that the user approved here. */
  manifestOf(name: string): Manifest | undefined {
    return this.at(name)?.entry.manifest;
  }

  /**
   * Returns the names that the user approved here, also those whose entries have changed, without
   * names that have another meaning now.
   */
  names(): readonly string[] {
    return [...this.#approved].filter((name) => !this.#isOther(name));
  }

  /** Returns the names of the servers among them. */
  servers(): readonly string[] {
    return this.names().filter((name) => !name.includes(":"));
  }

  /** Returns the names of the capabilities among them. */
  capabilities(): readonly string[] {
    return this.names().filter((name) => name.includes(":"));
  }

  /** Returns the present entries of the servers in the lock, to compare them with the pins. */
  async identities(): Promise<readonly ServerIdentity[]> {
    const { lock } = await this.#options.pins.state();
    const locked = Object.entries(lock).filter(([, pin]) => !isOwnPin(pin));
    const names = new Set([...locked.map(([name]) => name), ...this.names()]);
    const entries = await Promise.all([...names].map((name) => this.lookup.compared(name)));
    return entries.flatMap((one) => one === undefined ? [] : [this.#serverOf(one).identity]);
  }

  /** Returns why a server may not be used as it is; undefined if it may. */
  blocked(name: string): string | undefined {
    const here = this.#here.get(name);
    const entry = this.lookup.now.storedEntry(name);
    if (entry === undefined) return "no configured registry has it now";
    const wrong = this.lookup.refused(entry);
    if (wrong !== undefined) return wrong.message;
    return here !== undefined && entry.hash === here.entry.hash
      ? undefined
      : "its registry has another entry now; calling it asks the user";
  }

  /**
   * Returns the name under which a registry has a tool: that of its server, or that of a capability
   * (`fs:read_json`). A server that has the tool wins.
   */
  async entryOf(server: string, tool: string, isNamed: boolean): Promise<string> {
    const fqdn = fqdnOf(`${server}:${tool}`);
    if (fqdn?.action === undefined || fqdn.version !== undefined) return server;
    const whole = entryName(fqdn);
    const { home } = await this.#options.pins.state();
    const { tools = [] } = this.#here.get(server)?.entry.manifest ?? {};
    if (tools.some(({ name }) => name === tool)) return server;
    if (memberOf(home, whole) !== undefined) return whole;
    // A server that is used may have tools that its registry does not list.
    const isUsed = memberOf(home, server) !== undefined && tools.length === 0;
    // A name that the user wrote is looked up as it is.
    if (isUsed || isNamed) return server;
    return await this.offers.entryOf(fqdn) ?? server;
  }

  /**
   * Returns an approval request for a server or a capability of a registry; undefined if it is
   * approved. It is looked up first if its name is in a catalog. Any other name needs an approval
   * before that.
   */
  async unapproved(
    name: string,
    { signal, isAllowed, isNamed, tool }: LookupOptions,
  ): Promise<Unapproved | undefined> {
    if (this.#isOther(name)) return undefined;
    const { home } = await this.#options.pins.state();
    const isUsed = memberOf(home, name) !== undefined;
    const unoffered = () => this.offers.unapproved(name);
    const nameless = isNamed || isUsed ? undefined : await reached(name, unoffered);
    // A client with an identity may invent names. They create no approval request, and are denied.
    const { identity } = this.#options.policy.now.config.narrowing ?? {};
    if (nameless !== undefined) return identity === undefined ? nameless : undefined;
    const entry = await this.lookup.newest(name, signal);
    if (entry === undefined) return undefined;
    const wrong = this.lookup.refused(entry);
    // guard: token
    if (wrong !== undefined) throw wrong;
    const server = this.#serverOf(entry);
    const { pins } = this.#options;
    const unapproved = await pins.unapproved(server.identity);
    if (unapproved !== undefined && !(isAllowed && await this.#isFirst(server.identity))) {
      // guard: keys-first
      assertKeys(entry.manifest, this.#options.keys);
      const { facts } = unapproved;
      return {
        ...unapproved,
        ...textsOf(entry.manifest, tool),
        facts: [...facts, ...await this.lookup.textOf(entry, signal)],
      };
    }
    await unapproved?.accept();
    this.#take(server);
    return undefined;
  }

  /** Returns whether no other entry is pinned here, or in the lock of the workspace. */
  async #isFirst({ name, pinned }: ServerIdentity): Promise<boolean> {
    const { lock, home } = await this.#options.pins.state();
    const locked = memberOf(lock, name);
    return memberOf(home, name) === undefined &&
      (locked === undefined || pinnedChanges(locked, pinned).length === 0);
  }

  /** Fetches the code of a module before it is read. */
  async ready(
    name: string,
    { signal, tell }: { readonly signal: AbortSignal; readonly tell: (message: string) => void },
  ): Promise<void> {
    const { entry } = this.#here.get(name) ?? {};
    if (entry === undefined || codeManifest(entry.manifest) === undefined) return;
    if (this.lookup.now.hasCode(entry)) return;
    tell(`getting ${name} from ${new URL(entry.source.replace(/^mcp\+/, "")).host}`);
    await this.lookup.now.code(entry, {
      signal,
      onProgress: ({ progress, total }) =>
        tell(`getting ${name}: ${progress}${total === undefined ? "" : ` of ${total}`} bytes`),
    });
  }

  /** Returns the variables that the approved servers need. */
  neededVariables(): readonly { readonly server: string; readonly names: readonly string[] }[] {
    return this.names().map((server) => {
      const manifest = this.manifestOf(server);
      return { server, names: manifest === undefined ? [] : requiredOf(manifest) };
    });
  }

  /** Stops all requests. */
  [Symbol.dispose](): void {
    this.lookup[Symbol.dispose]();
  }

  /** Returns whether a name is of a built-in server, or a file defines or disables it. */
  #isOther(whole: string): boolean {
    const name = whole.split(":", 1)[0] ?? "";
    const { builtins, policy } = this.#options;
    const { config, loaded: { file, parents } } = policy.now;
    const own = [config, file, ...parents].flatMap((each) => each?.servers ?? []);
    return builtins.has(name) || policy.disabledIn(name) !== undefined ||
      own.some((server) => server.name === name);
  }

  /**
   * Returns whether a name has another meaning here. Logs once if a server of the user hides it.
   */
  #isHidden(name: string): boolean {
    const { policy, log } = this.#options;
    const [server] = name.split(":", 1);
    const isOwn = policy.now.config.servers.some((own) => own.name === server);
    if (isOwn && !this.#hidden.has(name)) {
      log.debug(`A registry has a server ${quoted(name)}, too: your own definition counts`);
      this.#hidden.add(name);
    }
    return this.#isOther(name);
  }

  #take(server: RegistryServer): void {
    const { name } = server.identity;
    if (this.#here.get(name) === server) return;
    this.#here.set(name, server);
    this.#approved.add(name);
    this.#tell();
  }

  #tell(): void {
    const here = [...this.#here].filter(([name]) => !this.#isOther(name));
    this.#options.policy.approve(new Map(here.map(([name, { entry }]) => [name, entry.source])));
  }

  /** Returns the server of an entry: the same object as long as the entry is the same. */
  #serverOf(entry: FoundEntry): RegistryServer {
    const { fqdn: name } = entry.manifest;
    const lastServer = this.#servers.get(name);
    const lookOf = ({ hash, source, vouched, older, gone }: FoundEntry) =>
      JSON.stringify([hash, source, vouched, older, gone]);
    if (lastServer !== undefined && lookOf(lastServer.entry) === lookOf(entry)) return lastServer;
    const { policy, builtins } = this.#options;
    const own = policy.now.config.servers.map((each) => each.name);
    const server = registryServer(entry, {
      config: policy.now.config,
      environment: policy.now.loaded.environment,
      names: [...builtins, ...own, ...this.#here.keys()],
      codePath: (code) => this.lookup.now.codePath(code),
    });
    this.#servers.set(name, server);
    return server;
  }
}

/** Returns the texts of a call's tool for the approval request, if its registry describes it. */
function textsOf(
  { tools }: FoundEntry["manifest"],
  tool: string | undefined,
): Pick<Unapproved, "definition" | "definitionLines"> {
  const definition = tools.find(({ name }) => name === tool)?.definition;
  return definition === undefined
    ? {}
    : { definition: definitionHash(definition), definitionLines: definitionLines(definition) };
}
