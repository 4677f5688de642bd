/**
 * Limits how many runs wait for the user at once, because each waiting run occupies memory.
 *
 * @module
 */

import type { ConfigOwner } from "../config/current_config.ts";
import { PmlError } from "../core/errors.ts";

/** The runs that wait for the user. */
export class WaitingRuns {
  readonly #policy: ConfigOwner<"limits">;
  /** The number of approval requests that wait for the user, by run. */
  readonly #questionCounts = new Map<string, number>();

  /** Creates an empty set with the limits of the configuration. */
  constructor(policy: ConfigOwner<"limits">) {
    this.#policy = policy;
  }

  /**
   * Calls `ask` and counts its run as waiting until the answer. A run with several approval
   * requests counts once. Throws OVERLOADED if too many runs wait.
   */
  async during<T>(run: string, ask: () => Promise<T>): Promise<T> {
    const openCount = this.#questionCounts.get(run) ?? 0;
    const { waitingRuns: most } = this.#policy.config.limits;
    // guard: waiting-runs
    if (openCount === 0 && this.#questionCounts.size >= most) {
      const message = `Cannot ask the user: ${most} runs already wait for an answer`;
      throw new PmlError("OVERLOADED", message, {
        hint: "Answer those requests first, or raise limits.waiting_runs in config.yaml",
      });
    }
    this.#questionCounts.set(run, openCount + 1);
    try {
      return await ask();
    } finally {
      const count = (this.#questionCounts.get(run) ?? 1) - 1;
      if (count > 0) this.#questionCounts.set(run, count);
      else this.#questionCounts.delete(run);
    }
  }
}
