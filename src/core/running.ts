/**
 * Knows the calls that are under way, so that whoever closes the house can wait for their ends.
 *
 * @module
 */

import type { Gate } from "./call.ts";

/** The calls that are under way. */
export class Running {
  readonly #calls = new Set<Promise<unknown>>();

  /** Follows each call that passes. */
  readonly gate: Gate = (next) => async (call) => {
    const running = next(call);
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
}
