/**
 * Caches the stamp of a store: a text that changes with each change of the store.
 *
 * @module
 */

import { setTimeout as delay } from "node:timers/promises";

/** Added to the wait, because a timer can fire a few milliseconds early. */
const MARGIN_MS = 3;

/**
 * Reads and caches the stamp of a store. Several hubs on one store return the same answers: a hub
 * reports a change as done only when the cached stamps of all hubs have expired.
 */
export class Stamp {
  readonly #read: () => string | Promise<string>;
  readonly #validMs: number;
  #lastRead: { readonly startedAt: number; readonly stamp: string | Promise<string> } | undefined;

  /**
   * Creates an instance. `read` reads the stamp. `validMs` is how long the result is valid, in
   * milliseconds from the start of the read; it must be the same for all hubs on a store.
   */
  constructor(read: () => string | Promise<string>, validMs: number) {
    this.#read = read;
    this.#validMs = validMs;
  }

  /** Returns the stamp. Throws if the cached stamp has expired and the store does not answer. */
  now(): string | Promise<string> {
    const now = performance.now();
    // Counts from the start of the read, because the read may miss a change made while it runs.
    if (this.#lastRead !== undefined && now - this.#lastRead.startedAt < this.#validMs) {
      return this.#lastRead.stamp;
    }
    const lastRead = { startedAt: now, stamp: this.#read() };
    this.#lastRead = lastRead;
    if (typeof lastRead.stamp !== "string") {
      lastRead.stamp.catch(() => {
        if (this.#lastRead === lastRead) this.#lastRead = undefined;
      });
    }
    return lastRead.stamp;
  }

  /** Makes a change, and returns its result as soon as no hub uses the earlier stamp. */
  async applyChange<T>(change: () => T | Promise<T>): Promise<T> {
    try {
      return await change();
    } finally {
      this.#lastRead = undefined;
      // Waits after an error, too: the store may have made the change before the connection broke.
      await delay(this.#validMs + MARGIN_MS);
    }
  }
}
