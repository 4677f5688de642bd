/**
 * Looks up entries, code and catalogs in all configured registries, in their order.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import type { CodeManifest, Manifest } from "../servers/manifest.ts";
import { codeManifest } from "../servers/kinds.ts";
import { Outages } from "../io/outages.ts";
import type { CatalogItem } from "./_catalog.ts";
import { type CatalogOutcome, Catalogs } from "./_catalogs.ts";
import { type CodeRequest, Downloads } from "./_downloads.ts";
import { AGAIN_MS, BackgroundRefresh } from "./_background.ts";
import {
  type CachedEntry,
  CachedRegistry,
  type RegistryAccess,
  type RegistryUser,
} from "./_cached_registry.ts";
import type { OmittedTool } from "./manifest.ts";
import { ageOf, type Cache } from "./cache.ts";
import { untilAborted } from "./client.ts";
import { entryName, type Fqdn, parseFqdn } from "./fqdn.ts";

export type { CatalogItem, CatalogOutcome, OmittedTool, RegistryAccess, RegistryUser };

/** Intervals between requests to registries, in milliseconds. */
export interface RegistryTimes {
  /** The age at which an entry is refreshed in the background. */
  readonly entryMs?: number;
  /** The pause before an unreachable registry is requested again. */
  readonly restMs?: number;
}

/** An entry of a registry, with its source and state. */
export interface FoundEntry {
  readonly manifest: Manifest;
  /** The URL of the registry as configured. */
  readonly source: string;
  /** The manifest hash, which approvals bind to. */
  readonly hash: string;
  /** The time of the registry's last confirmation, in milliseconds since 1970. */
  readonly at: number;
  /** Whether the last request could not reach the registry. */
  readonly offline: boolean;
  /** Whether the registry no longer has the entry. */
  readonly gone: boolean;
  /** Whether it was signed earlier than an entry that PML received before. */
  readonly older: boolean;
  /** How the origin of the entry was verified, as shown to the user. */
  readonly vouched: string;
  /** The omitted tools with the reasons. */
  readonly leftOut: readonly OmittedTool[];
}

type WaitSignal = Pick<CodeRequest, "signal">;

/** The pause before an unreachable registry is requested again, by default. */
const REST_MS = 5_000;

/** Looks up servers. The constructor requests and reads nothing. */
export class Registries {
  readonly #user: RegistryUser;
  readonly #cache: Cache;
  readonly #registries: readonly CachedRegistry[];
  readonly #finding = new Map<string, Promise<FoundEntry | undefined>>();
  readonly #background: BackgroundRefresh;
  readonly #downloads: Downloads;
  readonly #catalogs: Catalogs;

  /** Creates an instance with the registries in the order in which they are asked. */
  constructor(
    registries: readonly RegistryAccess[],
    user: RegistryUser,
    { cache, entryMs, restMs = REST_MS }: { readonly cache: Cache } & RegistryTimes,
  ) {
    const shared = { cache, outages: new Outages(restMs) };
    this.#user = user;
    this.#cache = cache;
    this.#registries = registries.map((registry) => new CachedRegistry(registry, user, shared));
    const background = this.#background = new BackgroundRefresh(user, entryMs);
    this.#catalogs = new Catalogs(this.#registries, { cache, user, background });
    this.#downloads = new Downloads(cache, background, user.closing);
  }

  /**
   * Returns the cached entry of a name; undefined if there is none, or if an earlier registry was
   * never asked for the name. Refreshes an expired entry in the background.
   */
  cachedEntry(name: string): FoundEntry | undefined {
    return this.#cachedEntry(name, (registry) => this.#background.refreshEntry(registry, name));
  }

  /** Returns the cached entry of a name at any age, without a refresh. */
  storedEntry(name: string): FoundEntry | undefined {
    return this.#cachedEntry(name, () => {});
  }

  #cachedEntry(name: string, onOld: (registry: CachedRegistry) => void): FoundEntry | undefined {
    const fqdn = parseFqdn(name);
    for (const registry of this.#order(fqdn)) {
      const answer = registry.cachedAnswer(fqdn);
      if (answer === undefined) return undefined;
      if (this.#background.isOld(answer.at, fqdn)) onOld(registry);
      if (answer.kind === "found") return this.#entryOf(registry, { fqdn, entry: answer });
    }
    return undefined;
  }

  /** Returns an entry, from the cache or the registries in order; undefined if none has it. */
  async find(name: string, { signal }: WaitSignal): Promise<FoundEntry | undefined> {
    const cached = this.cachedEntry(name);
    if (cached !== undefined) return cached;
    const finding = this.#finding.get(name) ??
      this.#ask(name).finally(() => this.#finding.delete(name));
    this.#finding.set(name, finding);
    return await untilAborted(finding, signal);
  }

  /** Requests an entry now, even if it is cached. */
  async refresh(name: string, { signal }: WaitSignal): Promise<FoundEntry | undefined> {
    return await untilAborted(this.#ask(name, true), signal);
  }

  /** Returns the URLs of the registries to which a lookup may send a name, in order. */
  urlsFor(name: string): readonly string[] {
    return this.#order(parseFqdn(name)).map(({ source }) => source.url);
  }

  /** Returns whether the code of an entry is cached. */
  hasCode({ manifest }: FoundEntry): boolean {
    const code = codeManifest(manifest);
    return code !== undefined && this.#cache.hasCode(code.integrity);
  }

  /** Returns the path of the cached code of a module. */
  codePath({ integrity }: CodeManifest): string {
    return this.#cache.codePath(integrity);
  }

  /** Returns the code of a module. Throws INTEGRITY_MISMATCH if its hash is not the entry's. */
  async code(
    { manifest, source }: FoundEntry,
    request: Omit<CodeRequest, "registry">,
  ): Promise<Uint8Array> {
    const code = codeManifest(manifest);
    if (code === undefined) {
      throw new PmlError("BUG", `Cannot load "${manifest.fqdn}": it is not a module`);
    }
    const registry = this.#registries.find((registry) => registry.source.url === source);
    return await this.#downloads.code(code, { ...request, registry });
  }

  /** Returns all cached catalog entries. Refreshes expired catalogs in the background. */
  catalog(): readonly CatalogItem[] {
    return this.#catalogs.items();
  }

  /** Returns whether a catalog lists a server. The name is not sent to any registry. */
  async isOffered(name: string, { signal }: WaitSignal): Promise<boolean> {
    for (const registry of this.#order(parseFqdn(name))) {
      if (await this.#catalogs.isOffered(name, { registry, signal })) return true;
    }
    return false;
  }

  /**
   * Returns the name of the entry that offers a tool, a server or a capability; undefined if it is
   * in no catalog. The name is not sent to any registry. Registries after the one that offers the
   * tool get no request.
   */
  async findEntryOf(tool: Fqdn, { signal }: WaitSignal): Promise<string | undefined> {
    for (const registry of this.#order(tool)) {
      const entry = await this.#catalogs.findEntryOf(tool, { registry, signal });
      if (entry !== undefined) return entry;
    }
    return undefined;
  }

  /** Downloads the catalogs of all registries now. */
  async refreshCatalog({ signal }: WaitSignal): Promise<readonly CatalogOutcome[]> {
    return await this.#catalogs.refresh(signal);
  }

  /** Returns the registries to which a name may be sent, in order. */
  #order(fqdn: Fqdn): readonly CachedRegistry[] {
    if (this.#user.isPrivate(fqdn.name)) return [];
    const url = this.#user.pinOf(entryName(fqdn))?.source;
    const pinned = this.#registries.find(({ source }) => source.url === url);
    return pinned === undefined ? this.#registries : [pinned];
  }

  /**
   * Requests a name from the registries in order. Throws if a registry cannot be reached. The next
   * registry is not asked then: it may have another server of this name, and must not receive the
   * names of servers of the first registry.
   */
  async #ask(name: string, isForced = false): Promise<FoundEntry | undefined> {
    const fqdn = parseFqdn(name);
    const registriesWithout: CachedRegistry[] = [];
    for (const registry of this.#order(fqdn)) {
      const before = registry.cachedAnswer(fqdn);
      const isUsed = !isForced && before !== undefined &&
        (before.kind === "found" || ageOf(before.at) < AGAIN_MS);
      const answer = isUsed
        ? before
        : await registry.limitDuringOutage(() => registry.requestEntry(fqdn, this.#user.closing));
      if (answer.kind === "found") {
        // Caches that these registries do not have the name, so that the next lookup skips them.
        const missing = { kind: "missing", at: Date.now() } as const;
        for (const other of registriesWithout) other.keep(fqdn, missing, { stored: true });
        return this.#entryOf(registry, { fqdn, entry: answer });
      }
      registriesWithout.push(registry);
    }
    return undefined;
  }

  #entryOf(
    registry: CachedRegistry,
    { fqdn, entry }: { readonly fqdn: Fqdn; readonly entry: CachedEntry },
  ): FoundEntry {
    const { at, gone, issued, newest } = entry;
    // guard: signature-older
    return {
      ...registry.parseEntry(fqdn, entry),
      source: registry.source.url,
      at,
      gone,
      offline: registry.isDown,
      older: issued < newest,
      vouched: originText(registry),
    };
  }
}

function originText({ isSigned, isSecure, host }: CachedRegistry): string {
  if (isSigned) return "signed by the key of this registry";
  return isSecure
    ? `authenticated only by TLS to ${host}`
    : `not authenticated: ${host} is reached without TLS`;
}
