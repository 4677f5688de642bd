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
import type { ServerDefinition } from "../config/servers.ts";
import { confusableWith } from "../core/confusable.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined, quoted } from "../core/json.ts";
import type { Manifest } from "../core/manifest.ts";
import type { Unapproved } from "../permissions/trust_gate.ts";
import type { AtHand, Pins } from "../policy/pins.ts";
import type { Policy } from "../policy/policy.ts";
import { Cache } from "../registry/cache.ts";
import { pinnedChanges, pinnedIn, pinnedOf } from "../registry/lock.ts";
import { requiredOf } from "../registry/manifest.ts";
import { type Found, Registries } from "../registry/registries.ts";
import { sourceOf } from "../registry/sources.ts";
import { GuardedFetch } from "../remote/guarded_fetch.ts";
import { isProxy } from "../remote/rpc.ts";
import { assertKeys, definitionOf, factsOf, grantsOf, misusedToken } from "./entry.ts";
import { OnOffer } from "./on_offer.ts";

/** What adopting needs. */
export interface AdoptedOptions {
  readonly policy: Policy;
  readonly builtins: ReadonlySet<string>;
  readonly keys: Keys;
  readonly pins: Pins;
  readonly log: Log;
  readonly redactor: Redactor;
}

/** A server that a registry has. */
interface Server {
  readonly found: Found;
  readonly hand: AtHand;
  readonly definition: ServerDefinition | undefined;
}

/** How long a comparison with what is pinned waits for registries. */
const COMPARED_MS = 4_000;

/** The servers of registries in this workspace. */
export class Adopted implements Disposable {
  /** What the registries offer. */
  readonly offers: OnOffer;
  readonly #options: AdoptedOptions;
  readonly #closing = new AbortController();
  readonly #network = new GuardedFetch();
  readonly #cache: Cache;
  /** What was found last, by name. */
  readonly #found = new Map<string, Server>();
  /** What the person approved here. */
  readonly #here = new Map<string, Server>();
  /** Their names, and those of servers that are something else now than was approved. */
  readonly #approved = new Set<string>();
  /** What was looked up anew to be compared, by name: what was shown is what is pinned then. */
  readonly #anew = new Map<string, Promise<Found | undefined>>();
  #places: readonly RegistryEntry[] = [];
  #registries: Registries;

  /** Takes what holds; nothing is asked of any registry yet. */
  constructor(options: AdoptedOptions) {
    const { policy, log } = options;
    this.#options = options;
    this.#cache = new Cache(policy.now.config.home, { warn: (message) => log.warn(message) });
    this.#registries = this.#opened();
    this.offers = new OnOffer({
      registries: () => this.#registries,
      isOther: (name) => this.#isOther(name),
      closing: this.#closing.signal,
    });
    policy.onChange((change) => {
      if (policy.now.config.registries !== this.#places) {
        this.#registries = this.#opened();
        this.#anew.clear();
      }
      if (change === "adopted") return;
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
      if (source === "private" || this.#isOther(name)) continue;
      this.#approved.add(name);
      const found = this.#registries.kept(name);
      if (found === undefined || misusedToken(found, this.#places) !== undefined) continue;
      const server = this.#serverOf(found);
      if (await pins.unapproved(server.hand) === undefined) this.#here.set(name, server);
    }
    if (this.#approved.size > 0) this.#tell();
  }

  /** Gives what a registry says of a server that the person approved here. */
  manifestOf(name: string): Manifest | undefined {
    return this.#isOther(name) ? undefined : this.#here.get(name)?.found.manifest;
  }

  /**
   * The servers that the person approved here, also those that are something else by now; but none
   * whose name is another's.
   */
  names(): readonly string[] {
    return [...this.#approved].filter((name) => !this.#isOther(name));
  }

  /** Gives the servers of the lock as their registries have them, to be compared with what is pinned. */
  async hands(): Promise<readonly AtHand[]> {
    const { lock } = await this.#options.pins.state();
    const locked = Object.entries(lock).filter(([, { source }]) => source !== "private");
    const names = new Set([...locked.map(([name]) => name), ...this.names()]);
    const hands = await Promise.all([...names].map(async (name) => {
      const asked = this.#anew.get(name) ?? this.#askedAnew(name);
      this.#anew.set(name, asked);
      const found = await asked;
      return found === undefined ? [] : [this.#serverOf(found).hand];
    }));
    return hands.flat();
  }

  /** Asks for a server now; where that fails, what is kept is told of and given. */
  async #askedAnew(name: string): Promise<Found | undefined> {
    const late = AbortSignal.timeout(COMPARED_MS);
    const signal = AbortSignal.any([this.#closing.signal, late]);
    try {
      return await this.#registries.refresh(name, { signal });
    } catch (error) {
      if (this.#closing.signal.aborted) throw error;
      const { code, message, hint } = asPmlError(error);
      const why = late.aborted ? `no answer in ${COMPARED_MS} ms` : message;
      const kept = this.#registries.kept(name);
      if (kept === undefined) {
        // That nothing differs cannot be said of what nobody knows.
        throw new PmlError(
          late.aborted ? "REGISTRY_OFFLINE" : code,
          `Cannot compare ${quoted(name)} with what is pinned: ${why}`,
          { hint: hint ?? "Try again when its registry can be reached", cause: error },
        );
      }
      this.#options.log.warn(
        `Compared ${quoted(name)} with what was known of it, as it cannot be asked about: ${why}`,
      );
      return kept;
    }
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
    const unapproved = await pins.unapproved(server.hand);
    if (unapproved !== undefined && !(isAllowed && await this.#isFirst(server.hand))) {
      assertKeys(found.manifest, this.#options.keys);
      return unapproved;
    }
    await unapproved?.accept();
    this.#adopt(server);
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
  async #isFirst({ name, pinned }: AtHand): Promise<boolean> {
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

  #adopt(server: Server): void {
    const { name } = server.hand;
    if (this.#here.get(name) === server) return;
    this.#here.set(name, server);
    this.#approved.add(name);
    this.#tell();
  }

  #tell(): void {
    const own = [...this.#here].filter(([name]) => !this.#isOther(name));
    this.#options.policy.adopt(new Map(own));
  }

  /** Gives what was found as a server: the same object as long as it is the same. */
  #serverOf(found: Found): Server {
    const { name } = found.manifest;
    const known = this.#found.get(name);
    const lookOf = ({ hash, source, vouched, older, gone }: Found) =>
      JSON.stringify([hash, source, vouched, older, gone]);
    if (known !== undefined && lookOf(known.found) === lookOf(found)) return known;
    const { workspace, grants } = this.#options.policy.now.config;
    const definition = definitionOf(found.manifest, (code) => this.#registries.codePath(code));
    const hand: AtHand = {
      name,
      pinned: pinnedOf(found.manifest, found),
      facts: [
        ...factsOf(found, {
          definition,
          environment: this.#options.policy.now.loaded.environment,
          workspace,
          grants: grantsOf(found.manifest, grants[name]),
          twin: confusableWith(name, this.#names()),
        }),
        ...this.#accountLines(found.manifest),
      ],
      origin: "registry",
    };
    const server = { found, hand, definition };
    this.#found.set(name, server);
    return server;
  }

  #accountLines(manifest: Manifest): readonly string[] {
    const { cloud } = this.#options.policy.now.config;
    if (manifest.kind !== "cloud" || !isProxy(manifest.proxyTo, cloud?.url)) return [];
    return [`Your PML_API_KEY goes with all that is sent to ${new URL(manifest.proxyTo).host}`];
  }

  /** Every name that a person may know here. */
  #names(): readonly string[] {
    const own = this.#options.policy.now.config.servers.map(({ name }) => name);
    return [...this.#options.builtins, ...own, ...this.#here.keys()];
  }
}
