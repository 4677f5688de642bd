/**
 * The registries in their order: what they have of a name, its code, and their catalogs.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import type { CodeManifest, Manifest } from "../servers/manifest.ts";
import { codeManifest } from "../servers/kinds.ts";
import { Outages } from "../io/outages.ts";
import type { CatalogItem } from "./_catalog.ts";
import { type CatalogOutcome, Catalogs } from "./_catalogs.ts";
import { Downloads, type Wanting } from "./_downloads.ts";
import { AGAIN_MS, BackgroundRefresh } from "./_background.ts";
import { type KeptEntry, Place, type RegistryPlace, type RegistryUser } from "./_place.ts";
import type { OmittedTool } from "./manifest.ts";
import { ageOf, type Cache } from "./cache.ts";
import { inTime } from "./client.ts";
import { entryName, type Fqdn, parseFqdn } from "./fqdn.ts";

export type { CatalogItem, CatalogOutcome, OmittedTool, RegistryPlace, RegistryUser };

/** How long registries are left alone, in milliseconds. */
export interface RegistryTimes {
  /** The age of an entry at which it is looked at again, behind the calls. */
  readonly entryMs?: number;
  /** How long a registry is not asked again that could not be reached. */
  readonly restMs?: number;
}

/** An entry of a registry, and what is known of how it came here. */
export interface Found {
  readonly manifest: Manifest;
  /** The address of the registry, as it was configured. */
  readonly source: string;
  /** The hash of all that an approval is bound to. */
  readonly hash: string;
  /** When the registry last said so, in milliseconds. */
  readonly at: number;
  /** Whether the registry could not be reached when it was last asked. */
  readonly offline: boolean;
  /** Whether the registry has it no more. */
  readonly gone: boolean;
  /** Whether it was signed before one that was seen already. */
  readonly older: boolean;
  /** Who says that it is what its owner meant. */
  readonly vouched: string;
  /** Tools that could not be taken, and why. */
  readonly leftOut: readonly OmittedTool[];
}

type Waiting = Pick<Wanting, "signal">;

const REST_MS = 5_000;

/** Looks servers up. Making one asks nothing and reads nothing. */
export class Registries {
  readonly #user: RegistryUser;
  readonly #cache: Cache;
  readonly #places: readonly Place[];
  readonly #finding = new Map<string, Promise<Found | undefined>>();
  readonly #background: BackgroundRefresh;
  readonly #downloads: Downloads;
  readonly #catalogs: Catalogs;

  /** Takes the registries in the order that they are asked. */
  constructor(
    places: readonly RegistryPlace[],
    user: RegistryUser,
    { cache, entryMs, restMs = REST_MS }: { readonly cache: Cache } & RegistryTimes,
  ) {
    const shared = { cache, outages: new Outages(restMs) };
    this.#user = user;
    this.#cache = cache;
    this.#places = places.map((place) => new Place(place, user, shared));
    const background = this.#background = new BackgroundRefresh(user, entryMs);
    this.#catalogs = new Catalogs(this.#places, { cache, user, background });
    this.#downloads = new Downloads(cache, background, user.closing);
  }

  /**
   * Gives what is known of a name without asking anybody; undefined too where a registry that comes
   * first was never asked. What is old is looked at again, behind the caller.
   */
  known(name: string): Found | undefined {
    return this.#known(name, (place) => this.#background.entry(place, name));
  }

  /** The same, however old it is: nothing is asked behind the caller either. */
  kept(name: string): Found | undefined {
    return this.#known(name, () => {});
  }

  #known(name: string, onOld: (place: Place) => void): Found | undefined {
    const fqdn = parseFqdn(name);
    for (const place of this.#order(fqdn)) {
      const kept = place.kept(fqdn);
      if (kept === undefined) return undefined;
      if (this.#background.isOld(kept.at, fqdn)) onOld(place);
      if (kept.kind === "found") return this.#found(place, { fqdn, kept });
    }
    return undefined;
  }

  /** Gives an entry, asking the registries in order where it is not known; undefined: none has it. */
  async find(name: string, { signal }: Waiting): Promise<Found | undefined> {
    const known = this.known(name);
    if (known !== undefined) return known;
    const finding = this.#finding.get(name) ??
      this.#ask(name).finally(() => this.#finding.delete(name));
    this.#finding.set(name, finding);
    return await inTime(finding, signal);
  }

  /** Asks for an entry now, whatever is known of it. */
  async refresh(name: string, { signal }: Waiting): Promise<Found | undefined> {
    return await inTime(this.#ask(name, true), signal);
  }

  /** Gives the registries that would be told a name if it were looked up, in order. */
  asked(name: string): readonly string[] {
    return this.#order(parseFqdn(name)).map(({ source }) => source.url);
  }

  /** Tells whether the code of an entry is here. */
  hasCode({ manifest }: Found): boolean {
    const code = codeManifest(manifest);
    return code !== undefined && this.#cache.hasCode(code.integrity);
  }

  /** The file that the code of a module is kept in, once it was loaded. */
  codePath({ integrity }: CodeManifest): string {
    return this.#cache.codePath(integrity);
  }

  /** Gives the code of a module: the bytes whose hash its entry says, or an error. */
  async code({ manifest, source }: Found, wanting: Omit<Wanting, "place">): Promise<Uint8Array> {
    const own = codeManifest(manifest);
    if (own === undefined) {
      throw new PmlError("BUG", `Cannot load "${manifest.fqdn}": it is no module`);
    }
    const place = this.#places.find((place) => place.source.url === source);
    return await this.#downloads.code(own, { ...wanting, place });
  }

  /** Gives what is known of all that there is; what is old is asked for again, behind the caller. */
  catalog(): readonly CatalogItem[] {
    return this.#catalogs.items();
  }

  /** Tells whether the registries that would be asked for a name offer it; none is told the name. */
  async offer(name: string, { signal }: Waiting): Promise<boolean> {
    for (const place of this.#order(parseFqdn(name))) {
      if (await this.#catalogs.has(name, { place, signal })) return true;
    }
    return false;
  }

  /**
   * Returns the name of the entry that offers a tool: its server or a capability; undefined if no
   * registry has one in its catalog. None is told a name, and none is asked behind the one that
   * offers it.
   */
  async entryOf(tool: Fqdn, { signal }: Waiting): Promise<string | undefined> {
    for (const place of this.#order(tool)) {
      const found = await this.#catalogs.entryOf(tool, { place, signal });
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Asks every registry for its catalog now. */
  async refreshCatalog({ signal }: Waiting): Promise<readonly CatalogOutcome[]> {
    return await this.#catalogs.refresh(signal);
  }

  /** Gives the registries that may be asked for a name, in order. */
  #order(fqdn: Fqdn): readonly Place[] {
    if (this.#user.isPrivate(fqdn.name)) return [];
    const url = this.#user.pinned(entryName(fqdn))?.source;
    const pinned = this.#places.find(({ source }) => source.url === url);
    return pinned === undefined ? this.#places : [pinned];
  }

  /**
   * Asks in order. A registry that cannot answer ends it: the next might have something else under
   * this name, and would learn a name that is none of its own.
   */
  async #ask(name: string, again = false): Promise<Found | undefined> {
    const fqdn = parseFqdn(name);
    const without: Place[] = [];
    for (const place of this.#order(fqdn)) {
      const before = place.kept(fqdn);
      const isUsed = !again && before !== undefined &&
        (before.kind === "found" || ageOf(before.at) < AGAIN_MS);
      const kept = isUsed
        ? before
        : await place.briefly(() => place.look(fqdn, this.#user.closing));
      if (kept.kind === "found") {
        // So that it is known next time, that these have not got it is kept too.
        const missing = { kind: "missing", at: Date.now() } as const;
        for (const other of without) other.keep(fqdn, missing, { stored: true });
        return this.#found(place, { fqdn, kept });
      }
      without.push(place);
    }
    return undefined;
  }

  #found(
    place: Place,
    { fqdn, kept }: { readonly fqdn: Fqdn; readonly kept: KeptEntry },
  ): Found {
    const { at, gone, issued, newest } = kept;
    // guard: signature-older
    return {
      ...place.read(fqdn, kept),
      source: place.source.url,
      at,
      gone,
      offline: place.isDown,
      older: issued < newest,
      vouched: vouchedBy(place),
    };
  }
}

function vouchedBy({ isSigned, isSecure, host }: Place): string {
  if (isSigned) return "signed by the key of this registry";
  return isSecure
    ? `vouched for by TLS to ${host} only`
    : `vouched for by nobody: ${host} is reached without TLS`;
}
