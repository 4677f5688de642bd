/**
 * Bounds how many things live at once: who finds no place waits, first come, first served, and what
 * nobody uses is given up for them.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";

/** How many places there are, and what makes one free. */
export interface PlacesOptions {
  readonly most: () => number;
  /** How many end already, whose places will be free. */
  readonly ending: () => number;
  /** Has something end that nobody uses; tells whether there was anything. */
  readonly free: () => boolean;
  /** Gives a time that never goes back, in milliseconds. */
  readonly now?: () => number;
}

interface Waiting extends PromiseWithResolvers<Disposable> {
  readonly key: string;
  readonly since: number;
}

/** How long somebody waits before nothing that is in use is used for one call more. */
const PATIENCE_MS = 1_000;

/** The places, and who waits for one. */
export class Places {
  readonly #options: PlacesOptions;
  readonly #now: () => number;
  #queue: readonly Waiting[] = [];
  /** The keys of those that must not wait. */
  readonly #hurried: string[] = [];
  #taken = 0;

  /** Makes so many places. */
  constructor(options: PlacesOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Takes a place that nobody waits for; undefined where there is none. */
  spare(): Disposable | undefined {
    return this.#isFree() && this.#queue.length === 0 ? this.#take() : undefined;
  }

  /** Waits for a place, behind those who came before. */
  async take(key: string): Promise<Disposable> {
    const place = this.#hurried.includes(key) ? this.#take() : this.spare();
    if (place !== undefined) return place;
    const waiting = { ...Promise.withResolvers<Disposable>(), key, since: this.#now() };
    this.#queue = [...this.#queue, waiting];
    this.look();
    return await waiting.promise;
  }

  /** Tells whether somebody waits under a key. */
  waits(key: string): boolean {
    return this.#queue.some((waiting) => waiting.key === key);
  }

  /** Takes who waits under a key out of the queue; tells whether there was anybody. */
  leave(key: string): boolean {
    const left = this.#leave(key);
    left?.reject(new PmlError("CANCELLED", "Cannot start it: nobody waits for it any more"));
    return left !== undefined;
  }

  /**
   * Gives who waits under a key, now or later, a place beyond the bound, until it is disposed. Who
   * holds a place and waits for that one would else wait for itself.
   */
  hurry(key: string): Disposable {
    this.#hurried.push(key);
    this.#leave(key)?.resolve(this.#take());
    return { [Symbol.dispose]: () => void this.#hurried.splice(this.#hurried.indexOf(key), 1) };
  }

  /** How many have waited for so long that what is in use has to come free for them. */
  overdue(): number {
    const before = this.#now() - PATIENCE_MS;
    return this.#queue.filter(({ since }) => since <= before).length;
  }

  /** Serves who waits, as far as something is free or unused; called when that may be so. */
  look(): void {
    for (let [first] = this.#queue; first !== undefined && this.#isFree(); [first] = this.#queue) {
      this.#queue = this.#queue.slice(1);
      first.resolve(this.#take());
    }
    const { ending, free } = this.#options;
    for (let missing = this.#queue.length - ending(); missing > 0 && free(); missing--);
  }

  #isFree(): boolean {
    return this.#taken < this.#options.most();
  }

  #leave(key: string): Waiting | undefined {
    const found = this.#queue.find((waiting) => waiting.key === key);
    this.#queue = this.#queue.filter((waiting) => waiting !== found);
    return found;
  }

  #take(): Disposable {
    this.#taken++;
    let isTaken = true;
    return {
      [Symbol.dispose]: () => {
        if (!isTaken) return;
        isTaken = false;
        this.#taken--;
        this.look();
      },
    };
  }
}
