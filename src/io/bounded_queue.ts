/**
 * Runs work in order, with limits for callers that could add work without end.
 *
 * @module
 */

/** The limits of `BoundedQueue`. */
export interface QueueLimits {
  /** The maximum number of pieces of work that wait. */
  readonly waiting: number;
  /** The maximum number of pieces of work in a minute. */
  readonly perMinute: number;
  /** The maximum number of bytes in a minute. */
  readonly bytesPerMinute: number;
}

const MINUTE_MS = 60_000;

/** Runs one piece of work after the other. */
export class BoundedQueue {
  readonly #limits: QueueLimits;
  readonly #now: () => number;
  #last: Promise<void> = Promise.resolve();
  #waitingCount = 0;
  #since = -Infinity;
  #count = 0;
  #bytes = 0;

  /** Takes the limits, and a clock in milliseconds. */
  constructor(limits: QueueLimits, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  /** A promise that resolves when all work so far is done; undefined if there is none. */
  get busy(): Promise<void> | undefined {
    return this.#waitingCount === 0 ? undefined : this.#last;
  }

  /**
   * Runs work after all earlier work, and returns undefined. If a limit is reached, does nothing,
   * and returns a text about the limit.
   */
  take(bytes: number, work: () => Promise<void>): string | undefined {
    const { waiting, perMinute, bytesPerMinute } = this.#limits;
    if (this.#now() - this.#since >= MINUTE_MS) {
      this.#since = this.#now();
      this.#count = this.#bytes = 0;
    }
    if (this.#waitingCount >= waiting) return `${waiting} of them wait`;
    if (this.#count >= perMinute) return `there were ${perMinute} in a minute`;
    if (this.#bytes + bytes > bytesPerMinute) {
      return `there were more than ${bytesPerMinute} bytes in a minute`;
    }
    this.#waitingCount++;
    this.#count++;
    this.#bytes += bytes;
    this.#last = this.#last.then(work).catch(() => {}).finally(() => this.#waitingCount--);
    return undefined;
  }
}
