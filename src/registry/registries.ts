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
import { CachedRegistry, type KeptEntry, type RegistryPlace, type RegistryUser } from "./_place.ts";
import type { OmittedTool } from "./manifest.ts";
import { ageOf, type Cache } from "./cache.ts";
import { untilAborted } from "./client.ts";
import { entryName, type Fqdn, parseFqdn } from "./fqdn.ts";

export type { CatalogItem, CatalogOutcome, OmittedTool, RegistryPlace, RegistryUser };

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

const REST_MS = 5_000;

/** Looks up servers. The constructor requests and reads nothing. */
export class Registries {
  readonly #user: RegistryUser;
  readonly #cache: Cache;
  readonly #places: readonly CachedRegistry[];
  readonly #finding = new Map<string, Promise<FoundEntry | undefined>>();
  readonly #background: BackgroundRefresh;
  readonly #downloads: Downloads;
  readonly #catalogs: Catalogs;

  /** Takes the registries in the order of their requests. */
  constructor(
    places: readonly RegistryPlace[],
    user: RegistryUser,
    { cache, entryMs, restMs = REST_MS }: { readonly cache: Cache } & RegistryTimes,
  ) {
    const shared = { cache, outages: new Outages(restMs) };
    this.#user = user;
    this.#cache = cache;
    this.#places = places.map((place) => new CachedRegistry(place, user, shared));
    const background = this.#background = new BackgroundRefresh(user, entryMs);
    this.#catalogs = new Catalogs(this.#places, { cache, user, background });
    this.#downloads = new Downloads(cache, background, user.closing);
  }

  /**
   * Returns the cached entry of a name; undefined if there is none, or if an earlier registry was
   * never asked for the name. Refreshes an expired entry in the background.
   */
  cachedEntry(name: string): FoundEntry | undefined {
    return this.#cachedEntry(name, (place) => this.#background.entry(place, name));
  }

  /** Returns the cached entry of a name at any age, without a refresh. */
  storedEntry(name: string): FoundEntry | undefined {
    return this.#cachedEntry(name, () => {});
  }

  #cachedEntry(name: string, onOld: (place: CachedRegistry) => void): FoundEntry | undefined {
    const fqdn = parseFqdn(name);
    for (const place of this.#order(fqdn)) {
      const answer = place.cachedAnswer(fqdn);
      if (answer === undefined) return undefined;
      if (this.#background.isOld(answer.at, fqdn)) onOld(place);
      if (answer.kind === "found") return this.#entryOf(place, { fqdn, entry: answer });
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
    const own = codeManifest(manifest);
    if (own === undefined) {
      throw new PmlError("BUG", `Cannot load "${manifest.fqdn}": it is no module`);
    }
    const registry = this.#places.find((place) => place.source.url === source);
    return await this.#downloads.code(own, { ...request, registry });
  }

  /** Returns all cached catalog entries. Refreshes expired catalogs in the background. */
  catalog(): readonly CatalogItem[] {
    return this.#catalogs.items();
  }

  /** Returns whether a catalog lists a server. The name is not sent to any registry. */
  async offer(name: string, { signal }: WaitSignal): Promise<boolean> {
    for (const place of this.#order(parseFqdn(name))) {
      if (await this.#catalogs.has(name, { place, signal })) return true;
    }
    return false;
  }

  /**
   * Returns the name of the entry that offers a tool, a server or a capability; undefined if it is
   * in no catalog. The name is not sent to any registry. Registries after the one that offers the
   * tool get no request.
   */
  async entryOf(tool: Fqdn, { signal }: WaitSignal): Promise<string | undefined> {
    for (const place of this.#order(tool)) {
      const entry = await this.#catalogs.entryOf(tool, { place, signal });
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
    const url = this.#user.pinned(entryName(fqdn))?.source;
    const pinned = this.#places.find(({ source }) => source.url === url);
    return pinned === undefined ? this.#places : [pinned];
  }

  /**
   * Requests a name from the registries in order. Throws if a registry cannot be reached, because
   * the next one may have another server of this name, and must not learn the first one's names.
   */
  async #ask(name: string, again = false): Promise<FoundEntry | undefined> {
    const fqdn = parseFqdn(name);
    const without: CachedRegistry[] = [];
    for (const place of this.#order(fqdn)) {
      const before = place.cachedAnswer(fqdn);
      const isUsed = !again && before !== undefined &&
        (before.kind === "found" || ageOf(before.at) < AGAIN_MS);
      const answer = isUsed
        ? before
        : await place.limitDuringOutage(() => place.look(fqdn, this.#user.closing));
      if (answer.kind === "found") {
        // Caches that these registries do not have the name, so that the next lookup skips them.
        const missing = { kind: "missing", at: Date.now() } as const;
        for (const other of without) other.keep(fqdn, missing, { stored: true });
        return this.#entryOf(place, { fqdn, entry: answer });
      }
      without.push(place);
    }
    return undefined;
  }

  #entryOf(
    place: CachedRegistry,
    { fqdn, entry }: { readonly fqdn: Fqdn; readonly entry: KeptEntry },
  ): FoundEntry {
    const { at, gone, issued, newest } = entry;
    // guard: signature-older
    return {
      ...place.read(fqdn, entry),
      source: place.source.url,
      at,
      gone,
      offline: place.isDown,
      older: issued < newest,
      vouched: vouchedBy(place),
    };
  }
}

function vouchedBy({ isSigned, isSecure, host }: CachedRegistry): string {
  if (isSigned) return "signed by the key of this registry";
  return isSecure
    ? `authenticated only by TLS to ${host}`
    : `not authenticated: ${host} is reached without TLS`;
}
