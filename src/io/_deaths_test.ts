/**
 * The part of the pool's model that counts deaths.
 *
 * @module
 */

/** Counts deaths in a row, by key, and computes how long the next start waits. */
export class Deaths {
  readonly #all = new Map<string, { count: number; at: number; version: string }>();
  readonly #now: () => number;

  /** Takes the clock of the pool. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Counts one more. */
  count({ key, version }: { readonly key: string; readonly version: string }): void {
    const count = (this.#all.get(key)?.count ?? 0) + 1;
    this.#all.set(key, { count, at: this.#now(), version });
  }

  /** Resets the count of a key after a successful use. */
  forget(key: string): void {
    this.#all.delete(key);
  }

  /** Returns how long a start must wait. A new version does not wait. */
  wait(key: string, version: string): number {
    if (this.#all.get(key)?.version !== version) this.#all.delete(key);
    const { count, at } = this.#all.get(key) ?? { count: 0, at: 0 };
    if (count < 5) return 0;
    return at + Math.min(500 * 2 ** (count - 5), 30_000) - this.#now();
  }
}
