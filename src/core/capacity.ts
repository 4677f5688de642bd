/**
 * Limits how many calls run at once, and waits until all calls are over.
 *
 * @module
 */

import type { Call, CallTool, Gate, Outcome } from "./call.ts";
import { PmlError } from "./errors.ts";

/** The limits on calls that are under way. */
export interface CapacityLimits {
  /** How many calls may run at once. */
  readonly concurrentCalls: number;
  /** How many further calls may wait for their turn. */
  readonly queuedCalls: number;
}

/** The calls that are under way. */
export class Capacity {
  readonly #capacity: () => CapacityLimits;
  readonly #onRefused: (call: Call) => void;
  readonly #calls = new Set<Promise<unknown>>();
  /** Is called when the last call that runs at once is over. */
  #rests: (() => void) | undefined;
  #atOnce = 0;
  readonly #queue: (() => void)[] = [];
  #active = 0;

  /** Creates an empty set. The limits are read again for each call. */
  constructor(capacity: () => CapacityLimits, onRefused: (call: Call) => void) {
    this.#capacity = capacity;
    this.#onRefused = onRefused;
  }

  /** Runs a call, or lets it wait for its turn. Throws OVERLOADED if the queue is full. */
  readonly gate: Gate = (next) => async (call) => {
    // A nested call uses the capacity of its outer call. Otherwise the outer call would wait for
    // itself.
    if (call.isNested) return await next(call);
    const { concurrentCalls, queuedCalls } = this.#capacity();
    const isFull = this.#active >= concurrentCalls;
    if (isFull && this.#queue.length >= queuedCalls) {
      this.#onRefused(call);
      throw overloaded(call);
    }
    const running = this.#run(call, { next, waits: isFull });
    this.#calls.add(running);
    try {
      return await running;
    } finally {
      this.#calls.delete(running);
    }
  };

  /** Takes the place of a call that runs at once; returns false if there is none. `leave` ends it. */
  enter(): boolean {
    if (this.#active >= this.#capacity().concurrentCalls) return false;
    this.#active++;
    this.#atOnce++;
    return true;
  }

  /** Gives the place of a call back. */
  leave(): void {
    this.#next();
    if (--this.#atOnce === 0) this.#rests?.();
  }

  /** Waits until all calls are over, whether they succeed or fail. */
  async over(): Promise<void> {
    if (this.#atOnce > 0) await new Promise<void>((resolve) => this.#rests = resolve);
    await Promise.allSettled(this.#calls);
  }

  async #run(
    call: Call,
    { next, waits }: { readonly next: CallTool; readonly waits: boolean },
  ): Promise<Outcome> {
    // A call from the queue takes the place of the call that ended, so the count stays.
    if (waits) await new Promise<void>((resolve) => this.#queue.push(resolve));
    else this.#active++;
    try {
      return await next(call);
    } finally {
      this.#next();
    }
  }

  #next(): void {
    const following = this.#queue.shift();
    if (following === undefined) this.#active--;
    else following();
  }
}

function overloaded({ id }: Call): PmlError {
  return new PmlError("OVERLOADED", `Cannot run "${id}": too many calls are under way`, {
    hint: "Call again later",
  });
}
