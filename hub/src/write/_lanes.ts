/**
 * Bounds how many bodies a hub reads at once, in all and for each key, so that slow uploads do not
 * delay others.
 *
 * @module
 */

/** How many bodies are read at once, of all keys and of one. */
const MOST = { all: 8, one: 4 };

/** Assigns a lane to each body that is read. */
export class Lanes {
  readonly #taken: string[] = [];

  /** Takes a lane for a key until it is disposed; undefined if there is none. */
  take(key: string): Disposable | undefined {
    const own = this.#taken.filter((one) => one === key).length;
    if (this.#taken.length === MOST.all || own === MOST.one) return undefined;
    this.#taken.push(key);
    return { [Symbol.dispose]: () => void this.#taken.splice(this.#taken.indexOf(key), 1) };
  }
}
