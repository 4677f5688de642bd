/**
 * Refreshes expired entries and catalogs in the background.
 *
 * @module
 */

import { asPmlError } from "../core/errors.ts";
import type { CachedRegistry, RegistryUser } from "./_place.ts";
import { ageOf } from "./cache.ts";
import { type Fqdn, parseFqdn } from "./fqdn.ts";

const MINUTE_MS = 60_000;
const ENTRY_MS = 15 * MINUTE_MS;
/** How long a missing name is cached, and the shortest time between two refreshes of one item. */
export const AGAIN_MS = MINUTE_MS;
/** A version whose entry never changes. */
const EXACT = /^\d+\.\d/;

/** Refreshes entries and catalogs after the caller got the cached value. */
export class BackgroundRefresh {
  readonly #user: RegistryUser;
  readonly #entryMs: number;
  readonly #runs = new Map<string, { readonly at: number; isOver: boolean }>();

  /** Takes the age in milliseconds at which an entry is expired. */
  constructor(user: RegistryUser, entryMs = ENTRY_MS) {
    this.#user = user;
    this.#entryMs = entryMs;
  }

  /** Returns whether an entry of this time must be requested again. */
  isOld(at: number, { version }: Fqdn): boolean {
    return ageOf(at) >= this.#entryMs && !EXACT.test(version ?? "");
  }

  /** Requests an entry again. */
  entry(place: CachedRegistry, name: string, isForced = false): void {
    this.run(place, {
      key: name,
      isForced,
      work: async () => {
        const fqdn = parseFqdn(name);
        const before = place.cachedAnswer(fqdn);
        // Another process may have refreshed the entry.
        const stored = isForced ? undefined : place.newest(fqdn);
        const after = stored !== undefined && !this.isOld(stored.at, fqdn)
          ? stored
          : await place.look(fqdn, this.#user.closing);
        const is = (answer = before) =>
          answer?.kind === "found" ? `${place.read(fqdn, answer).hash} ${answer.gone}` : "missing";
        if (is(before) !== is(after)) this.#user.entryChanged(name);
      },
    });
  }

  /** Runs work of one key at most once at a time, not too often, and not during an outage. */
  run(
    place: CachedRegistry,
    { key, isForced, work }: {
      readonly key: string;
      readonly isForced: boolean;
      readonly work: () => Promise<unknown>;
    },
  ): void {
    const { log, closing } = this.#user;
    const id = `${place.source.url} ${key}`;
    const last = this.#runs.get(id);
    const isSoon = last !== undefined && ageOf(last.at) < Math.min(AGAIN_MS, this.#entryMs);
    if (last?.isOver === false || isSoon && !isForced || !place.canAsk || closing.aborted) return;
    const now = { at: Date.now(), isOver: false };
    this.#runs.set(id, now);
    work().catch((error) => {
      const { code, message } = asPmlError(error);
      // `CachedRegistry` logs that its registry cannot be reached.
      if (code !== "REGISTRY_OFFLINE" && !closing.aborted) log.warn(message);
    }).finally(() => {
      now.isOver = true;
    });
  }
}
