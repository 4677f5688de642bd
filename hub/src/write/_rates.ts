/**
 * How often each key may write.
 *
 * @module
 */

const MINUTE = 60_000;

/** Gives each name a number of turns a minute; those that were not taken are kept for a minute. */
export class Rates {
  readonly #most: number;
  readonly #left = new Map<string, { readonly turns: number; readonly at: number }>();

  /** Takes the number of turns a minute. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Takes a turn. Returns how many seconds to wait if there is none. */
  take(name: string, now = performance.now()): number | undefined {
    const { turns, at } = this.#left.get(name) ?? { turns: this.#most, at: now };
    const grown = Math.min(this.#most, turns + (now - at) * this.#most / MINUTE);
    if (grown < 1) return Math.ceil((1 - grown) * MINUTE / this.#most / 1_000);
    this.#left.set(name, { turns: grown - 1, at: now });
    return undefined;
  }
}
