/**
 * The servers of registries: looked up when somebody calls them, asked about once, pinned, and from
 * then on servers like any other in this workspace.
 *
 * @module
 */

import type { Log } from "../audit/log.ts";
import type { Redactor } from "../audit/redact.ts";
import type { Keys } from "../config/keys.ts";
import type { RegistryEntry } from "../config/registries.ts";
import { PmlError } from "../core/errors.ts";
import { defined, quoted } from "../core/json.ts";
import type { Manifest } from "../core/manifest.ts";
import type { ServerIdentity, Unapproved } from "../core/server_identity.ts";
import type { Pins } from "../policy/pins.ts";
import type { Policy } from "../policy/policy.ts";
import { Cache } from "../registry/cache.ts";
import { pinnedChanges, pinnedIn } from "../registry/lock.ts";
import { requiredOf } from "../registry/manifest.ts";
import { type Found, Registries } from "../registry/registries.ts";
import { sourceOf } from "../registry/sources.ts";
import { GuardedFetch } from "../remote/guarded_fetch.ts";
import { assertKeys, misusedToken } from "./entry.ts";
import { Newer } from "./newer.ts";
import { OnOffer } from "./on_offer.ts";
import { type RegistryServer, registryServer } from "./registry_server.ts";

/** What adopting needs. */
export interface RegistryServersOptions {
  readonly policy: Policy;
  readonly builtins: ReadonlySet<string>;
  readonly keys: Keys;
  readonly pins: Pins;
  readonly log: Log;
  readonly redactor: Redactor;
}

/** The servers of registries in this workspace. */
export class RegistryServers implements Disposable {
  /** What the registries offer. */
  readonly offers: OnOffer;
  readonly #options: RegistryServersOptions;
  readonly #closing = new AbortController();
  readonly #network = new GuardedFetch();
  readonly #cache: Cache;
  /** What was found last, by name. */
  readonly #found = new Map<string, RegistryServer>();
  /** What the person approved here. */
  readonly #here = new Map<string, RegistryServer>();
  /** Their names, and those of servers that are something else now than was approved. */
  readonly #approved = new Set<string>();
  /** The names that were told to be hidden by the person's own. */
  readonly #hidden = new Set<string>();
  /** What was looked up anew to be compared: what was shown is what is pinned then. */
  readonly #newer: Newer;
  #places: readonly RegistryEntry[] = [];
  #registries: Registries;

  /** Takes what holds; nothing is asked of any registry yet. */
  constructor(options: RegistryServersOptions) {
    const { policy, log } = options;
    this.#options = options;
    this.#cache = new Cache(policy.now.config.home, { warn: (message) => log.warn(message) });
    this.#registries = this.#opened();
    this.offers = new OnOffer({
      registries: () => this.#registries,
      isOther: (name) => this.#isHidden(name),
      closing: this.#closing.signal,
    });
    this.#newer = new Newer({
      registries: () => this.#registries,
      closing: this.#closing.signal,
      warn: (message) => log.warn(message),
    });
    policy.onChange((change) => {
      if (policy.now.config.registries !== this.#places) {
        this.#registries = this.#opened();
        this.#newer.forget();
      }
      if (change === "registry") return;
      this.offers.forget();
      // What a person is shown says what is granted, and whose a name is.
      this.#found.clear();
      if (this.#approved.size > 0) this.#tell();
    });
  }

  /** Takes up what the person approved in this workspace before. */
  async open(): Promise<void> {
    const { pins } = this.#options;
    const { home } = await pins.state();
    for (const [name, { source }] of Object.entries(home)) {
      if (source === "private" || this.#isHidden(name)) continue;
      this.#approved.add(name);
      const found = this.#registries.kept(name);
      if (found === undefined || misusedToken(found, this.#places) !== undefined) continue;
      const server = this.#serverOf(found);
      if (await pins.unapproved(server.identity) === undefined) this.#here.set(name, server);
    }
    if (this.#approved.size > 0) this.#tell();
  }

  /** Returns a server that the person approved here. */
  at(name: string): RegistryServer | undefined {
    return this.#isOther(name) ? undefined : this.#here.get(name);
  }

  /** Returns what a registry says of a server that the person approved here. */
  manifestOf(name: string): Manifest | undefined {
    return this.at(name)?.found.manifest;
  }

  /**
   * The servers that the person approved here, also those that are something else by now; but none
   * whose name is another's.
   */
  names(): readonly string[] {
    return [...this.#approved].filter((name) => !this.#isOther(name));
  }

  /** Returns the servers of the lock as their registries have them, to be compared with what is pinned. */
  async identities(): Promise<readonly ServerIdentity[]> {
    const { lock } = await this.#options.pins.state();
    const locked = Object.entries(lock).filter(([, { source }]) => source !== "private");
    const names = new Set([...locked.map(([name]) => name), ...this.names()]);
    const found = await Promise.all([...names].map((name) => this.#newer.of(name)));
    return found.flatMap((one) => one === undefined ? [] : [this.#serverOf(one).identity]);
  }

  /** Says why a server may not be used as it is; undefined where it may. */
  blocked(name: string): string | undefined {
    const here = this.#here.get(name);
    const known = this.#registries.kept(name);
    if (known === undefined) return "nobody that is asked for servers has it now";
    if (misusedToken(known, this.#places) !== undefined) {
      return "its registry has it given the token of a registry";
    }
    return here !== undefined && known.hash === here.found.hash
      ? undefined
      : "its registry says something else of it now; calling it asks the person";
  }

  /**
   * Tells what nobody has approved yet of a server that a registry has. It is looked up first, by
   * a name that somebody offered; about any other name the person is asked before that.
   */
  async unapproved(
    name: string,
    { signal, isAllowed, isNamed }: {
      readonly signal: AbortSignal;
      /** Whether the person allowed its first use beforehand. */
      readonly isAllowed: boolean;
      /** Whether the person said this name, or PML itself. */
      readonly isNamed: boolean;
    },
  ): Promise<Unapproved | undefined> {
    if (this.#isOther(name)) return undefined;
    const { home } = await this.#options.pins.state();
    const isUsed = pinnedIn(home, name) !== undefined;
    const unoffered = () => this.offers.unapproved(name);
    const nameless = isNamed || isUsed ? undefined : await this.#reached(name, unoffered);
    if (nameless !== undefined) return nameless;
    const found = await this.#newest(name, signal);
    if (found === undefined) return undefined;
    const wrong = misusedToken(found, this.#places);
    if (wrong !== undefined) throw wrong;
    const server = this.#serverOf(found);
    const { pins } = this.#options;
    const unapproved = await pins.unapproved(server.identity);
    if (unapproved !== undefined && !(isAllowed && await this.#isFirst(server.identity))) {
      assertKeys(found.manifest, this.#options.keys);
      return unapproved;
    }
    await unapproved?.accept();
    this.#take(server);
    return undefined;
  }

  /** Another process may have seen a newer entry, and the person approved that one. */
  async #newest(name: string, signal: AbortSignal): Promise<Found | undefined> {
    const known = this.#registries.known(name);
    if (known === undefined) {
      return await this.#reached(name, () => this.#registries.find(name, { signal }));
    }
    const pinned = this.#options.pins.pinned(name)?.manifest;
    if (pinned === undefined || pinned === known.hash) return known;
    // Where it cannot be asked, what is known is asked about.
    return await this.#registries.refresh(name, { signal }).catch(() => undefined) ?? known;
  }

  async #reached<T>(name: string, look: () => Promise<T>): Promise<T> {
    try {
      return await look();
    } catch (error) {
      if (!(error instanceof PmlError) || error.code !== "REGISTRY_OFFLINE") throw error;
      const { code, message, hint, detail } = error;
      const why = message.replace(/^C/, "c");
      const told = { ...defined({ hint, detail }), cause: error };
      throw new PmlError(code, `Cannot look up ${quoted(name)}: ${why}`, told);
    }
  }

  /** Whether nobody pinned another one here, or in the lock that came with the workspace. */
  async #isFirst({ name, pinned }: ServerIdentity): Promise<boolean> {
    const { lock, home } = await this.#options.pins.state();
    const locked = pinnedIn(lock, name);
    return pinnedIn(home, name) === undefined &&
      (locked === undefined || pinnedChanges(locked, pinned).length === 0);
  }

  /** Has the code of a module at hand before it is read. */
  async ready(
    name: string,
    { signal, tell }: { readonly signal: AbortSignal; readonly tell: (message: string) => void },
  ): Promise<void> {
    const { found } = this.#here.get(name) ?? {};
    if (found?.manifest.kind !== "deno" || this.#registries.hasCode(found)) return;
    tell(`getting ${name} from ${new URL(found.source.replace(/^mcp\+/, "")).host}`);
    await this.#registries.code(found, {
      signal,
      onProgress: ({ progress, total }) =>
        tell(`getting ${name}: ${progress}${total === undefined ? "" : ` of ${total}`} bytes`),
    });
  }

  /** The variables that the servers need which the person approved here. */
  wanted(): readonly { readonly server: string; readonly names: readonly string[] }[] {
    return this.names().map((server) => {
      const manifest = this.manifestOf(server);
      return { server, names: manifest === undefined ? [] : requiredOf(manifest) };
    });
  }

  /** Tells how many servers are known of each registry; nothing is asked. */
  known(): readonly { readonly url: string; readonly servers: number }[] {
    const items = this.#registries.catalog();
    return this.#places.map(({ url }) => ({
      url,
      servers: items.filter(({ source }) => source === url).length,
    }));
  }

  /** Asks the registries for what they offer, and for the servers that are used here. */
  async refresh(signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    const [outcomes] = await Promise.all([
      this.#registries.refreshCatalog({ signal }),
      ...this.names().map((name) =>
        this.#registries.refresh(name, { signal }).catch((error) => log.warn(`${error.message}`))
      ),
    ]);
    for (const { error } of outcomes) if (error !== undefined) log.warn(error.message);
  }

  /** Asks nothing any more. */
  [Symbol.dispose](): void {
    this.#closing.abort(new PmlError("CANCELLED", "Cannot ask a registry: PML is ending"));
    this.#network[Symbol.dispose]();
  }

  #opened(): Registries {
    const { policy, log, redactor } = this.#options;
    const { environment } = policy.now.loaded;
    this.#places = policy.now.config.registries;
    const token = (name: string) => {
      const value = environment.get(name);
      if (value !== undefined) redactor.register(value);
      return value;
    };
    return new Registries({
      places: this.#places.map(({ url, tokenEnv, publicKey }) => ({
        source: sourceOf(url, {
          fetch: this.#network.fetch,
          ...(tokenEnv === undefined ? {} : { token: () => token(tokenEnv) }),
        }),
        publicKey,
        named: (name) => this.#named(name),
      })),
      cache: this.#cache,
      // What a lock pins as somebody's own is nobody else's business, also where it is not defined.
      isPrivate: (name) =>
        this.#isOther(name) || this.#options.pins.pinned(name)?.source === "private",
      pinned: (name) => {
        const source = this.#options.pins.pinned(name)?.source;
        return this.#places.find(({ url }) => url === source)?.url;
      },
      onChange: (name) => log.info(`${quoted(name)} is another one at its registry now`),
      warn: (message) => log.warn(message),
      closing: this.#closing.signal,
    });
  }

  /** Gives the hosts that the person named for a server, which may lie on this machine. */
  #named(name: string): readonly string[] {
    const { cloud, grants } = this.#options.policy.now.config;
    const hub = cloud?.url === undefined ? [] : [new URL(cloud.url).host];
    return [...hub, ...grants[name]?.net ?? []];
  }

  /** Whether a name stands for what ships with PML, or what a file defines or has switched off. */
  #isOther(name: string): boolean {
    const { builtins, policy } = this.#options;
    const { config, loaded: { file, parents } } = policy.now;
    const own = [config, file, ...parents].flatMap((each) => each?.servers ?? []);
    return builtins.has(name) || policy.disabledIn(name) !== undefined ||
      own.some((server) => server.name === name);
  }

  /** Tells whether what a registry has under a name is hidden; that a person's own hides it, once. */
  #isHidden(name: string): boolean {
    const { policy, log } = this.#options;
    const isOwn = policy.now.config.servers.some((own) => own.name === name);
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
    this.#options.policy.approve([...this.#here.keys()].filter((name) => !this.#isOther(name)));
  }

  /** Returns what was found as a server: the same object as long as it is the same. */
  #serverOf(found: Found): RegistryServer {
    const { name } = found.manifest;
    const known = this.#found.get(name);
    const lookOf = ({ hash, source, vouched, older, gone }: Found) =>
      JSON.stringify([hash, source, vouched, older, gone]);
    if (known !== undefined && lookOf(known.found) === lookOf(found)) return known;
    const { policy, builtins } = this.#options;
    const own = policy.now.config.servers.map((each) => each.name);
    const server = registryServer(found, {
      config: policy.now.config,
      environment: policy.now.loaded.environment,
      names: [...builtins, ...own, ...this.#here.keys()],
      codePath: (code) => this.#registries.codePath(code),
    });
    this.#found.set(name, server);
    return server;
  }
}
