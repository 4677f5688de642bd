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
  readonly #questions = new Map<string, number>();

  /** Creates an empty set with the limits of the configuration. */
  constructor(policy: ConfigOwner<"limits">) {
    this.#policy = policy;
  }

  /** Waits for an answer. A run counts once, however many approval requests it has. */
  async during<T>(run: string, ask: () => Promise<T>): Promise<T> {
    const open = this.#questions.get(run) ?? 0;
    const { waitingRuns: most } = this.#policy.config.limits;
    // guard: waiting-runs
    if (open === 0 && this.#questions.size >= most) {
      const message = `Cannot ask the user: ${most} runs already wait for an answer`;
      throw new PmlError("OVERLOADED", message, {
        hint: "Answer those requests first, or raise limits.waiting_runs in config.yaml",
      });
    }
    this.#questions.set(run, open + 1);
    try {
      return await ask();
    } finally {
      const count = (this.#questions.get(run) ?? 1) - 1;
      if (count > 0) this.#questions.set(run, count);
      else this.#questions.delete(run);
    }
  }
}
