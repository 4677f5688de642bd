/**
 * One registry: its cached entries and its availability.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { type JsonObject, textOf } from "../core/json.ts";
import type { Manifest } from "../servers/manifest.ts";
import { memoized } from "../core/memo.ts";
import type { Outages } from "../io/outages.ts";
import type { WarningLog } from "../io/private_files.ts";
import type { Cache } from "./cache.ts";
import { entryName, type Fqdn } from "./fqdn.ts";
import { isOlder } from "../policy/lock.ts";
import { manifestHash, type OmittedTool, parseManifest } from "./manifest.ts";
import { verifyManifest } from "./signature.ts";
import type { Lookup, RegistryReader } from "./source.ts";

/** The configuration of a registry. */
export interface RegistryAccess {
  readonly source: RegistryReader;
  /** The public key for the signatures of its entries: Ed25519, as PEM or base64. */
  readonly publicKey?: string | undefined;
  /** Whether PML logs no warning if the registry cannot be reached. */
  readonly isQuiet?: boolean;
}

/** The last response of a registry for a name. */
export type CachedAnswer = CachedEntry | { readonly kind: "missing"; readonly at: number };

/** An entry as sent by the registry, and the time of its last confirmation. */
export interface CachedEntry {
  readonly kind: "found";
  readonly json: JsonObject;
  readonly etag: string | null;
  readonly at: number;
  /** The time when this entry was signed; 0 without a key. */
  readonly issued: number;
  /** The latest signing time of any known entry with this name; 0 without a key. */
  readonly newest: number;
  /** Whether the registry no longer has the entry. */
  readonly gone: boolean;
}

/** A parsed entry. */
export interface ParsedEntry {
  readonly manifest: Manifest;
  readonly hash: string;
  readonly leftOut: readonly OmittedTool[];
}

type EntryLookup = Extract<Lookup, { readonly kind: "found" }>;

/** The registry and the version that a name is pinned to. */
export interface PinnedEntry {
  readonly source: string;
  readonly version?: string | undefined;
}

/** The user's private names, pins and allowed hosts. `RegistryLookup` implements it. */
export interface RegistryUser {
  readonly log: WarningLog;
  /** Aborts when PML stops, so that no more requests are sent. */
  readonly closing: AbortSignal;
  /** Returns whether the user defined a server. Its name is not sent to any registry. */
  isPrivate(server: string): boolean;
  /** Returns the pin of a name. Other registries and older versions are not used for it. */
  pinOf(name: string): PinnedEntry | undefined;
  /** Returns the hosts that the user allowed a server to use without TLS. */
  allowedHosts(server: string): readonly string[];
  /** Is called when the entry of a name changed. */
  entryChanged(name: string): void;
}

/** The state that all registries share. */
export interface SharedState {
  readonly cache: Cache;
  /** The unreachable registries, by their URLs. */
  readonly outages: Outages;
}

/** The maximum number of cached answers of one registry. */
const MOST_NAMES = 20_000;

/** A registry, its cached entries, and its state. */
export class CachedRegistry {
  readonly source: RegistryReader;
  /** The host of the registry. */
  readonly host: string;
  readonly isSecure: boolean;
  readonly isSigned: boolean;
  readonly #access: RegistryAccess;
  readonly #user: RegistryUser;
  readonly #shared: SharedState;
  readonly #answers = new Map<string, CachedAnswer>();
  /** The parsers by name. Each parser remembers its last entry. */
  readonly #parsers = new Map<string, (entry: CachedEntry) => ParsedEntry>();

  /** Creates an instance. Requests and reads nothing yet. */
  constructor(access: RegistryAccess, user: RegistryUser, shared: SharedState) {
    const { source, publicKey } = access;
    const { host, protocol } = new URL(source.url.replace(/^mcp\+/, ""));
    this.source = source;
    this.host = host;
    this.isSecure = protocol === "https:";
    this.isSigned = publicKey !== undefined;
    this.#access = access;
    this.#user = user;
    this.#shared = shared;
  }

  /** Whether the last request could not reach the registry, so that an outage is recorded. */
  get isDown(): boolean {
    return this.#shared.outages.errorOf(this.source.url) !== undefined;
  }

  /** Whether a request would be sent now, instead of failing with the last error. */
  get canAsk(): boolean {
    return this.#shared.outages.isDue(this.source.url);
  }

  /** Runs a request. During an outage, only one request at a time is sent, as a probe. */
  async ask<T>(request: (source: RegistryReader) => Promise<T>): Promise<T> {
    const { outages } = this.#shared;
    const { url } = this.source;
    const down = outages.errorOf(url);
    if (down !== undefined && !this.canAsk) throw down;
    const answer = this.#ask(request);
    outages.setProbe(url, answer);
    return await answer;
  }

  /**
   * Returns the result of `work`. During an outage, waits only a short time for it, and then throws
   * the error of the outage.
   */
  async limitDuringOutage<T>(work: () => Promise<T>): Promise<T> {
    return await this.#shared.outages.limitDuringOutage(this.source.url, work);
  }

  async #ask<T>(request: (source: RegistryReader) => Promise<T>): Promise<T> {
    const { outages } = this.#shared;
    const { url } = this.source;
    try {
      const answer = await request(this.source);
      outages.forget(url);
      return answer;
    } catch (error) {
      if (!(error instanceof PmlError)) throw error;
      const isUnreachable = error.code === "REGISTRY_OFFLINE";
      if (isUnreachable && !this.isDown && !this.#access.isQuiet) {
        this.#user.log.warn(`${error.message}; PML uses cached entries`);
      }
      if (isUnreachable) outages.record(url, error);
      // A bad response shows that the registry can be reached.
      else if (error.code === "REGISTRY_BAD_RESPONSE") outages.forget(url);
      throw error;
    }
  }

  /** Returns the last response for a name, if it is still usable. */
  cachedAnswer(fqdn: Fqdn): CachedAnswer | undefined {
    const key = keyOf(fqdn);
    const answer = this.#answers.get(key) ?? this.#stored(key);
    if (answer === undefined) return undefined;
    try {
      if (answer.kind === "found") this.parseEntry(fqdn, answer);
    } catch {
      // The key or the checks changed after the entry was cached, so it must be downloaded again.
      return undefined;
    }
    this.#answers.set(key, answer);
    return answer;
  }

  /** Returns the newest response that any process cached. */
  latestAnswer(fqdn: Fqdn): CachedAnswer | undefined {
    const key = keyOf(fqdn);
    const stored = this.#stored(key);
    if (stored !== undefined && stored.at > (this.#answers.get(key)?.at ?? 0)) {
      this.#answers.delete(key);
    }
    return this.cachedAnswer(fqdn);
  }

  /**
   * Parses an entry, and checks its signature. Remembers the last parsed entry of each name. Throws
   * if the entry is not valid.
   */
  parseEntry(fqdn: Fqdn, entry: CachedEntry): ParsedEntry {
    const key = keyOf(fqdn);
    const parser = this.#parsers.get(key) ?? memoized(({ json }) => this.#parse(fqdn, json).read);
    this.#parsers.set(key, parser);
    return parser(entry);
  }

  /** Requests the entry of a name and caches the response. */
  async requestEntry(fqdn: Fqdn, signal: AbortSignal): Promise<CachedAnswer> {
    const before = this.cachedAnswer(fqdn);
    const entry = before?.kind === "found" ? before : undefined;
    const lookup = await this.ask((source) =>
      source.manifest(fqdn, signal, entry?.etag ?? undefined)
    );
    const at = Date.now();
    switch (lookup.kind) {
      case "unchanged":
        // `entry` is always defined here: a source returns this only for a request with an etag.
        return this.keep(fqdn, entry ? { ...entry, at, gone: false } : { kind: "missing", at });
      case "missing":
        // A server in use keeps working. PML reports that the registry no longer has its entry.
        return this.keep(fqdn, entry ? { ...entry, at, gone: true } : { kind: "missing", at });
      case "found": {
        const { json, etag = null } = await this.#notOlderThanPin(fqdn, lookup, signal);
        const { issued } = this.#parse(fqdn, json);
        const newest = Math.max(issued, entry?.newest ?? 0);
        return this.keep(fqdn, { kind: "found", json, etag, at, issued, newest, gone: false });
      }
    }
  }

  /**
   * Returns the pinned version if the newest entry of the registry is older than this version. So
   * users of a version that was removed from the catalog keep this version.
   */
  async #notOlderThanPin(
    fqdn: Fqdn,
    lookup: EntryLookup,
    signal: AbortSignal,
  ): Promise<EntryLookup> {
    const { version } = this.#user.pinOf(entryName(fqdn)) ?? {};
    const isOlderThanPin = fqdn.version === undefined &&
      isOlder(textOf(lookup.json.version), version);
    if (!isOlderThanPin) return lookup;
    const exact = await this.ask((source) => source.manifest({ ...fqdn, version }, signal));
    return exact.kind === "found" ? exact : lookup;
  }

  /** Caches a response. A missing name is stored on disk only if `stored` is true. */
  keep(fqdn: Fqdn, answer: CachedAnswer, { stored = answer.kind === "found" } = {}): CachedAnswer {
    const key = keyOf(fqdn);
    if (stored) this.#shared.cache.keep("entry", [this.source.url, key], answer);
    if (this.#answers.size >= MOST_NAMES) this.#answers.clear();
    this.#answers.set(key, answer);
    return answer;
  }

  #stored(key: string): CachedAnswer | undefined {
    const stored = this.#shared.cache.read("entry", [this.source.url, key]);
    // The cache returns only values that PML stored.
    return stored as CachedAnswer | undefined;
  }

  #parse(fqdn: Fqdn, json: JsonObject): { readonly read: ParsedEntry; readonly issued: number } {
    const { publicKey } = this.#access;
    const leftOut: OmittedTool[] = [];
    const manifest = parseManifest(json, {
      url: this.source.url,
      asked: fqdn,
      plainHttpHosts: new Set([this.host, ...this.#user.allowedHosts(fqdn.name)]),
      leftOut,
    });
    const issued = publicKey === undefined
      ? 0
      : verifyManifest(json, { registry: this.source.url, publicKey });
    return { read: { manifest, hash: manifestHash(manifest), leftOut }, issued };
  }
}

function keyOf(fqdn: Fqdn): string {
  const { version } = fqdn;
  return version === undefined ? entryName(fqdn) : `${entryName(fqdn)}@${version}`;
}
