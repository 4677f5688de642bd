/**
 * One registry as it is known here: what it said before, and whether it can be asked now.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import type { Manifest } from "../core/manifest.ts";
import { memoized } from "../core/memo.ts";
import type { Outages } from "../io/outages.ts";
import type { Cache } from "./cache.ts";
import { entryName, type Fqdn } from "./fqdn.ts";
import { manifestHash, parseManifest } from "./manifest.ts";
import { verifyManifest } from "./signature.ts";
import type { Source } from "./source.ts";

/** A registry as it was configured. */
export interface RegistryPlace {
  readonly source: Source;
  /** The key that its entries are signed with: Ed25519, as PEM or base64. */
  readonly publicKey?: string | undefined;
  /** Gives the hosts beside its own that the person lets a server of it go to without TLS. */
  readonly named?: (server: string) => readonly string[];
}

/** A tool of an entry that is left out, and why. */
export interface LeftOut {
  readonly name: string;
  readonly reason: string;
}

/** What a registry said of a name. */
export type Kept = KeptEntry | { readonly kind: "missing"; readonly at: number };

/** An entry as it was sent, and when that was last so. */
export interface KeptEntry {
  readonly kind: "found";
  readonly json: JsonObject;
  readonly etag: string | null;
  readonly at: number;
  /** When it was signed, and when the newest was that was ever seen; 0 without a key. */
  readonly issued: number;
  readonly newest: number;
  /** Whether the registry does not have it any more. */
  readonly gone: boolean;
}

/** What an entry means. */
export interface Read {
  readonly manifest: Manifest;
  readonly hash: string;
  readonly leftOut: readonly LeftOut[];
}

/** What a place needs beside its registry. */
export interface PlaceOptions {
  readonly cache: Cache;
  readonly warn: (message: string) => void;
  /** The registries that could not be reached, by their addresses. */
  readonly outages: Outages;
}

/** How many names are remembered that a registry does not have. */
const MOST_NAMES = 20_000;

/** A registry, its entries in the cache, and its state. */
export class Place {
  readonly source: Source;
  /** Where it is. */
  readonly host: string;
  readonly isSecure: boolean;
  readonly isSigned: boolean;
  readonly #publicKey: string | undefined;
  readonly #named: (server: string) => readonly string[];
  readonly #options: PlaceOptions;
  readonly #kept = new Map<string, Kept>();
  readonly #reads = new Map<string, (kept: KeptEntry) => Read>();

  /** Asks nothing, and reads nothing. */
  constructor({ source, publicKey, named = () => [] }: RegistryPlace, options: PlaceOptions) {
    const { host, protocol } = new URL(source.url.replace(/^mcp\+/, ""));
    this.source = source;
    this.host = host;
    this.isSecure = protocol === "https:";
    this.isSigned = publicKey !== undefined;
    this.#publicKey = publicKey;
    this.#named = named;
    this.#options = options;
  }

  /** Whether it could not be reached when it was last asked. */
  get isDown(): boolean {
    return this.#options.outages.of(this.source.url) !== undefined;
  }

  /** Whether a question would be put to it, and not be answered by what is known of its state. */
  get canAsk(): boolean {
    return this.#options.outages.isDue(this.source.url);
  }

  /** Asks it something; while it is away one question at a time finds out whether it still is. */
  async ask<T>(question: (source: Source) => Promise<T>): Promise<T> {
    const { outages } = this.#options;
    const { url } = this.source;
    const down = outages.of(url);
    if (down !== undefined && !this.canAsk) throw down;
    const answer = this.#asked(question);
    outages.watch(url, answer);
    return await answer;
  }

  /** Does what somebody waits for; while it is away, only for a moment. */
  async briefly<T>(work: () => Promise<T>): Promise<T> {
    return await this.#options.outages.briefly(this.source.url, work);
  }

  async #asked<T>(question: (source: Source) => Promise<T>): Promise<T> {
    const { outages, warn } = this.#options;
    const { url } = this.source;
    try {
      const answer = await question(this.source);
      outages.forget(url);
      return answer;
    } catch (error) {
      if (!(error instanceof PmlError)) throw error;
      const isAway = error.code === "REGISTRY_OFFLINE";
      if (isAway && !this.isDown) warn(`${error.message}; what is cached of it is used`);
      if (isAway) outages.note(url, error);
      // It answered, whatever it said.
      else if (error.code === "REGISTRY_BAD_RESPONSE") outages.forget(url);
      throw error;
    }
  }

  /** Gives what it said of a name, as far as that can still be used. */
  kept(fqdn: Fqdn): Kept | undefined {
    const key = keyOf(fqdn);
    const kept = this.#kept.get(key) ?? this.#stored(key);
    if (kept === undefined) return undefined;
    try {
      if (kept.kind === "found") this.read(fqdn, kept);
    } catch {
      // Another key, or other rules than when it was kept: it is asked for again.
      return undefined;
    }
    this.#kept.set(key, kept);
    return kept;
  }

  /** Gives the newest that any process has kept of a name. */
  newest(fqdn: Fqdn): Kept | undefined {
    const key = keyOf(fqdn);
    const stored = this.#stored(key);
    if (stored !== undefined && stored.at > (this.#kept.get(key)?.at ?? 0)) this.#kept.delete(key);
    return this.kept(fqdn);
  }

  /** Gives what an entry means, or throws; its signature is compared each time it is loaded. */
  read(fqdn: Fqdn, kept: KeptEntry): Read {
    const key = keyOf(fqdn);
    const read = this.#reads.get(key) ?? memoized(({ json }) => this.#parse(fqdn, json).read);
    this.#reads.set(key, read);
    return read(kept);
  }

  /** Asks for a name, and keeps what it says. */
  async look(fqdn: Fqdn, signal: AbortSignal): Promise<Kept> {
    const before = this.kept(fqdn);
    const entry = before?.kind === "found" ? before : undefined;
    const lookup = await this.ask((source) =>
      source.manifest(fqdn, { signal, etag: entry?.etag ?? undefined })
    );
    const at = Date.now();
    switch (lookup.kind) {
      case "unchanged":
        // A source that was asked without a tag does not say so.
        return this.keep(fqdn, entry ? { ...entry, at, gone: false } : { kind: "missing", at });
      case "missing":
        // What is in use goes on: the person is told that it is there no more.
        return this.keep(fqdn, entry ? { ...entry, at, gone: true } : { kind: "missing", at });
      case "found": {
        const { json, etag = null } = lookup;
        const { issued } = this.#parse(fqdn, json);
        const newest = Math.max(issued, entry?.newest ?? 0);
        return this.keep(fqdn, { kind: "found", json, etag, at, issued, newest, gone: false });
      }
    }
  }

  /** Keeps what is known of a name; that it is missing is kept on disk only where it matters. */
  keep(fqdn: Fqdn, kept: Kept, { stored = kept.kind === "found" } = {}): Kept {
    const key = keyOf(fqdn);
    if (stored) this.#options.cache.keep("entry", [this.source.url, key], kept);
    if (this.#kept.size >= MOST_NAMES) this.#kept.clear();
    this.#kept.set(key, kept);
    return kept;
  }

  #stored(key: string): Kept | undefined {
    const kept = this.#options.cache.read("entry", [this.source.url, key]);
    // What the cache gives is what we wrote, or nothing.
    return kept as Kept | undefined;
  }

  #parse(fqdn: Fqdn, json: JsonObject): { readonly read: Read; readonly issued: number } {
    const leftOut: LeftOut[] = [];
    const manifest = parseManifest(json, {
      url: this.source.url,
      asked: fqdn,
      named: new Set([this.host, ...this.#named(fqdn.name)]),
      onLeftOut: (name, reason) => leftOut.push({ name, reason }),
    });
    const publicKey = this.#publicKey;
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
