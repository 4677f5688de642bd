/**
 * Limits how many bodies a hub reads at once, in total and per key, so that slow uploads do not delay
 * other uploads.
 *
 * @module
 */

/** The maximum number of bodies that are read at once for all keys, and for one key. */
const LIMITS = { all: 8, perKey: 4 };

/** Counts the bodies that are being read. Each of them uses one lane. */
export class Lanes {
  readonly #keys: string[] = [];

  /** Takes a lane for a key until the result is disposed. Returns undefined if none is free. */
  take(key: string): Disposable | undefined {
    const keyCount = this.#keys.filter((laneKey) => laneKey === key).length;
    if (this.#keys.length === LIMITS.all || keyCount === LIMITS.perKey) return undefined;
    this.#keys.push(key);
    return { [Symbol.dispose]: () => void this.#keys.splice(this.#keys.indexOf(key), 1) };
  }
}
