/**
 * Says in which state a store is, and looks at the store for that only now and then.
 *
 * @module
 */

import { setTimeout as delay } from "node:timers/promises";

/** Timers may be early. */
const MARGIN_MS = 3;

/**
 * The stamp of a store, which changes with each change of the store. Several hubs answer alike, because
 * a change is reported as done only after each of them has read the stamp again.
 */
export class Stamp {
  readonly #ask: () => string | Promise<string>;
  readonly #validMs: number;
  #look: { readonly began: number; readonly stamp: string | Promise<string> } | undefined;

  /**
   * Takes the function that reads the stamp, and how long a stamp is valid, in milliseconds from the
   * start of the read. That must be the same for all hubs on a store.
   */
  constructor(ask: () => string | Promise<string>, validMs: number) {
    this.#ask = ask;
    this.#validMs = validMs;
  }

  /** Returns the stamp. Throws if the store must be looked at and does not answer. */
  now(): string | Promise<string> {
    const now = performance.now();
    // A later request does not use a read that began before it: that could have missed a change.
    if (this.#look !== undefined && now - this.#look.began < this.#validMs) return this.#look.stamp;
    const look = { began: now, stamp: this.#ask() };
    this.#look = look;
    if (typeof look.stamp !== "string") {
      look.stamp.catch(() => {
        if (this.#look === look) this.#look = undefined;
      });
    }
    return look.stamp;
  }

  /** Makes a change, and returns what became of it once every hub answers with it. */
  async settled<T>(change: () => T | Promise<T>): Promise<T> {
    try {
      return await change();
    } finally {
      this.#look = undefined;
      // Nor does a hub miss one that was made although its end was not seen.
      await delay(this.#validMs + MARGIN_MS);
    }
  }
}
