/**
 * Refreshes expired entries and catalogs in the background.
 *
 * @module
 */

import { asPmlError } from "../core/errors.ts";
import type { CachedRegistry, RegistryUser } from "./_cached_registry.ts";
import { ageOf } from "./cache.ts";
import { type Fqdn, parseFqdn } from "./fqdn.ts";

const MINUTE_MS = 60_000;
/** The age at which an entry expires, by default. */
const ENTRY_MS = 15 * MINUTE_MS;
/**
 * How long a missing name is cached, and the shortest time between two refreshes of an item, in ms.
 */
export const AGAIN_MS = MINUTE_MS;
/** Matches an exact version, whose entry never changes. */
const EXACT = /^\d+\.\d/;

/** Refreshes entries and catalogs after the caller got the cached value. */
export class BackgroundRefresh {
  readonly #user: RegistryUser;
  readonly #entryMs: number;
  /** The last run of each item, with its start time. */
  readonly #runs = new Map<string, { readonly startedAt: number; hasEnded: boolean }>();

  /** Creates an instance. `entryMs` is the age at which an entry expires, in milliseconds. */
  constructor(user: RegistryUser, entryMs = ENTRY_MS) {
    this.#user = user;
    this.#entryMs = entryMs;
  }

  /** Returns whether an entry that was confirmed at this time must be requested again. */
  isOld(confirmedAt: number, { version }: Fqdn): boolean {
    return ageOf(confirmedAt) >= this.#entryMs && !EXACT.test(version ?? "");
  }

  /** Requests an entry again in the background, and reports a change. */
  refreshEntry(registry: CachedRegistry, name: string, isForced = false): void {
    this.run(registry, {
      key: name,
      isForced,
      work: async () => {
        const fqdn = parseFqdn(name);
        const before = registry.cachedAnswer(fqdn);
        // Another process may have refreshed the entry.
        const stored = isForced ? undefined : registry.latestAnswer(fqdn);
        const after = stored !== undefined && !this.isOld(stored.at, fqdn)
          ? stored
          : await registry.requestEntry(fqdn, this.#user.closing);
        const stateOf = (answer = before) =>
          answer?.kind === "found"
            ? `${registry.parseEntry(fqdn, answer).hash} ${answer.gone}`
            : "missing";
        if (stateOf(before) !== stateOf(after)) this.#user.entryChanged(name);
      },
    });
  }

  /**
   * Runs `work` in the background. Does nothing during an outage, while work for the same key runs,
   * and, unless `isForced`, if such work began a short time ago.
   */
  run(
    registry: CachedRegistry,
    { key, isForced, work }: {
      readonly key: string;
      readonly isForced: boolean;
      readonly work: () => Promise<unknown>;
    },
  ): void {
    const { log, closing } = this.#user;
    const id = `${registry.source.url} ${key}`;
    const last = this.#runs.get(id);
    const isSoon = last !== undefined && ageOf(last.startedAt) < Math.min(AGAIN_MS, this.#entryMs);
    if (last?.hasEnded === false || isSoon && !isForced || !registry.canAsk || closing.aborted) {
      return;
    }
    const run = { startedAt: Date.now(), hasEnded: false };
    this.#runs.set(id, run);
    work().catch((error) => {
      const { code, message } = asPmlError(error);
      // `CachedRegistry` logs that its registry cannot be reached.
      if (code !== "REGISTRY_OFFLINE" && !closing.aborted) log.warn(message);
    }).finally(() => {
      run.hasEnded = true;
    });
  }
}
