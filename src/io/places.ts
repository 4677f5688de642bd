/**
 * Limits how many things exist at once. A caller without a place waits in a queue, and unused
 * things are closed for it.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import type { Clock } from "./waiting.ts";

/** The owner of the things that take places. */
export interface PlaceOwner {
  /** The number of places now. */
  readonly mostPlaces: number;
  /** How many things are about to end, so that their places will be free. */
  readonly ending: number;
  /** Begins to close an unused thing. Returns whether there was one. */
  giveUp(): boolean;
}

interface QueuedCaller extends PromiseWithResolvers<Disposable> {
  readonly key: string;
  readonly since: number;
}

/** How long a caller waits before it is overdue, in milliseconds. */
const PATIENCE_MS = 1_000;

/** The places, and the queue for them. */
export class Places {
  readonly #owner: PlaceOwner;
  readonly #clock: Clock;
  #queue: readonly QueuedCaller[] = [];
  /** The keys that must not wait. */
  readonly #hurried: string[] = [];
  #taken = 0;

  /** All places are free. The clock is monotonic. */
  constructor(owner: PlaceOwner, clock: Clock = performance) {
    this.#owner = owner;
    this.#clock = clock;
  }

  /** Takes a free place; undefined if there is none or others wait. */
  spare(): Disposable | undefined {
    return this.#isFree() && this.#queue.length === 0 ? this.#take() : undefined;
  }

  /** Takes a place, after earlier callers. */
  async take(key: string): Promise<Disposable> {
    const place = this.#hurried.includes(key) ? this.#take() : this.spare();
    if (place !== undefined) return place;
    const waiting = { ...Promise.withResolvers<Disposable>(), key, since: this.#clock.now() };
    this.#queue = [...this.#queue, waiting];
    this.look();
    return await waiting.promise;
  }

  /** Returns whether a caller waits under a key. */
  waits(key: string): boolean {
    return this.#queue.some((waiting) => waiting.key === key);
  }

  /** Removes the caller under a key from the queue. Returns whether there was one. */
  leave(key: string): boolean {
    const caller = this.#leave(key);
    caller?.reject(new PmlError("CANCELLED", "Cannot start it: no call waits for it"));
    return caller !== undefined;
  }

  /**
   * Lets callers under a key have a place beyond the limit, until the result is disposed. Otherwise
   * a caller that has a place and waits for this key would wait for itself.
   */
  hurry(key: string): Disposable {
    this.#hurried.push(key);
    this.#leave(key)?.resolve(this.#take());
    return { [Symbol.dispose]: () => void this.#hurried.splice(this.#hurried.indexOf(key), 1) };
  }

  /** Returns how many callers are overdue, so that things in use must become free for them. */
  overdue(): number {
    const before = this.#clock.now() - PATIENCE_MS;
    return this.#queue.filter(({ since }) => since <= before).length;
  }

  /** Serves the queue as far as possible. Must be called when a place may be free. */
  look(): void {
    for (let [first] = this.#queue; first !== undefined && this.#isFree(); [first] = this.#queue) {
      this.#queue = this.#queue.slice(1);
      first.resolve(this.#take());
    }
    const owner = this.#owner;
    let missing = this.#queue.length - owner.ending;
    while (missing > 0 && owner.giveUp()) missing--;
  }

  #isFree(): boolean {
    return this.#taken < this.#owner.mostPlaces;
  }

  #leave(key: string): QueuedCaller | undefined {
    const caller = this.#queue.find((waiting) => waiting.key === key);
    this.#queue = this.#queue.filter((waiting) => waiting !== caller);
    return caller;
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
