/**
 * Knows the calls that are under way: how many may run at once, and when all of them are over.
 *
 * @module
 */

import type { Call, CallTool, Gate, Outcome } from "./call.ts";
import { PmlError } from "./errors.ts";

/** How many calls may be under way. */
export interface CapacityLimits {
  /** How many run at once. */
  readonly concurrentCalls: number;
  /** How many wait for their turn beside them. */
  readonly queuedCalls: number;
}

/** The calls that are under way. */
export class Capacity {
  readonly #capacity: () => CapacityLimits;
  readonly #calls = new Set<Promise<unknown>>();
  readonly #queue: (() => void)[] = [];
  #active = 0;

  /** Makes an empty set for so many calls. */
  constructor(capacity: () => CapacityLimits) {
    this.#capacity = capacity;
  }

  /** Lets a call run or wait for its turn, and refuses what is beyond that at once. */
  readonly gate: Gate = (next) => async (call) => {
    // What is asked within a call has the place of that call: it would wait for itself.
    if (call.isNested) return await next(call);
    const { concurrentCalls, queuedCalls } = this.#capacity();
    const isFull = this.#active >= concurrentCalls;
    if (isFull && this.#queue.length >= queuedCalls) throw overloaded(call);
    const running = this.#run(call, { next, waits: isFull });
    this.#calls.add(running);
    try {
      return await running;
    } finally {
      this.#calls.delete(running);
    }
  };

  /** Settles when each of them is over, however it ended. */
  async over(): Promise<void> {
    await Promise.allSettled(this.#calls);
  }

  async #run(
    call: Call,
    { next, waits }: { readonly next: CallTool; readonly waits: boolean },
  ): Promise<Outcome> {
    // Who is called from the queue takes over the place of the one that ended.
    if (waits) await new Promise<void>((resolve) => this.#queue.push(resolve));
    else this.#active++;
    try {
      return await next(call);
    } finally {
      const following = this.#queue.shift();
      if (following === undefined) this.#active--;
      else following();
    }
  }
}

function overloaded({ id }: Call): PmlError {
  return new PmlError("OVERLOADED", `Cannot run "${id}": too many calls are under way`, {
    hint: "Call again later",
  });
}
