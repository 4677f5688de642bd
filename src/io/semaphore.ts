/**
 * Limits how many things, such as processes, exist at once. A caller without a place waits in a
 * queue, and an unused thing is closed to free a place for the caller.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import type { Clock } from "./waiting.ts";

/** The owner of the things that take places. */
export interface SemaphoreOwner {
  /** The number of places now. */
  readonly maxPlaces: number;
  /** How many things are about to end, so that their places will be free. */
  readonly endingCount: number;
  /** Begins to close an unused thing. Returns whether there was one. */
  closeUnused(): boolean;
}

interface QueuedCaller extends PromiseWithResolvers<Disposable> {
  readonly key: string;
  readonly since: number;
}

/** How long a caller waits before it is overdue, in milliseconds. */
const PATIENCE_MS = 1_000;

/** A limited number of places, with a queue of callers that wait for one. */
export class Semaphore {
  readonly #owner: SemaphoreOwner;
  readonly #clock: Clock;
  #queue: readonly QueuedCaller[] = [];
  /** The keys whose callers get a place beyond the limit. */
  readonly #urgent: string[] = [];
  #takenCount = 0;

  /** Starts with all places free. The clock must be monotonic. */
  constructor(owner: SemaphoreOwner, clock: Clock = performance) {
    this.#owner = owner;
    this.#clock = clock;
  }

  /** Takes a free place; undefined if there is none or others wait. */
  tryAcquire(): Disposable | undefined {
    return this.#isFree() && this.#queue.length === 0 ? this.#take() : undefined;
  }

  /** Takes a place, after earlier callers. */
  async acquire(key: string): Promise<Disposable> {
    const place = this.#urgent.includes(key) ? this.#take() : this.tryAcquire();
    if (place !== undefined) return place;
    const waiting = { ...Promise.withResolvers<Disposable>(), key, since: this.#clock.now() };
    this.#queue = [...this.#queue, waiting];
    this.serveQueue();
    return await waiting.promise;
  }

  /** Returns whether a caller waits under a key. */
  isWaiting(key: string): boolean {
    return this.#queue.some((waiting) => waiting.key === key);
  }

  /** Removes the caller under a key from the queue. Returns whether there was one. */
  cancel(key: string): boolean {
    const caller = this.#dequeue(key);
    caller?.reject(new PmlError("CANCELLED", "Cannot start it: no call waits for it"));
    return caller !== undefined;
  }

  /**
   * Lets callers under a key have a place beyond the limit, until the result is disposed. Otherwise
   * a caller that has a place and waits for this key could wait forever.
   */
  passLimit(key: string): Disposable {
    this.#urgent.push(key);
    this.#dequeue(key)?.resolve(this.#take());
    return { [Symbol.dispose]: () => void this.#urgent.splice(this.#urgent.indexOf(key), 1) };
  }

  /** Returns how many callers are overdue, so that things in use must become free for them. */
  overdueCount(): number {
    const before = this.#clock.now() - PATIENCE_MS;
    return this.#queue.filter(({ since }) => since <= before).length;
  }

  /** Serves the queue as far as possible. Must be called when a place may be free. */
  serveQueue(): void {
    for (let [first] = this.#queue; first !== undefined && this.#isFree(); [first] = this.#queue) {
      this.#queue = this.#queue.slice(1);
      first.resolve(this.#take());
    }
    const owner = this.#owner;
    let missing = this.#queue.length - owner.endingCount;
    while (missing > 0 && owner.closeUnused()) missing--;
  }

  #isFree(): boolean {
    return this.#takenCount < this.#owner.maxPlaces;
  }

  #dequeue(key: string): QueuedCaller | undefined {
    const caller = this.#queue.find((waiting) => waiting.key === key);
    this.#queue = this.#queue.filter((waiting) => waiting !== caller);
    return caller;
  }

  #take(): Disposable {
    this.#takenCount++;
    let isTaken = true;
    return {
      [Symbol.dispose]: () => {
        if (!isTaken) return;
        isTaken = false;
        this.#takenCount--;
        this.serveQueue();
      },
    };
  }
}
