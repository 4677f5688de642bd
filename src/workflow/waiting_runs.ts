/**
 * Limits how many runs wait for the person at once, because each keeps what it has begun.
 *
 * @module
 */

import type { ConfigOwner } from "../config/current_config.ts";
import { PmlError } from "../core/errors.ts";

/** The runs that wait for an answer of the person. */
export class WaitingRuns {
  readonly #policy: ConfigOwner<"limits">;
  readonly #questions = new Map<string, number>();

  /** Takes the limits. */
  constructor(policy: ConfigOwner<"limits">) {
    this.#policy = policy;
  }

  /** Waits for an answer. A run waits once, however many questions it has open. */
  async during<T>(run: string, ask: () => Promise<T>): Promise<T> {
    const open = this.#questions.get(run) ?? 0;
    const { waitingRuns: most } = this.#policy.config.limits;
    // guard: waiting-runs
    if (open === 0 && this.#questions.size >= most) {
      const message = `Cannot ask the person: ${most} runs wait for an answer already`;
      throw new PmlError("OVERLOADED", message, {
        hint: "Have those questions answered first (limits.waiting_runs)",
      });
    }
    this.#questions.set(run, open + 1);
    try {
      return await ask();
    } finally {
      const left = (this.#questions.get(run) ?? 1) - 1;
      if (left > 0) this.#questions.set(run, left);
      else this.#questions.delete(run);
    }
  }
}
