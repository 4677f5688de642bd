/**
 * A clock that tests move forward.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import type { TimerClock } from "./pool.ts";

/** A clock that advances only in `pass()`. */
export class FakeClock implements TimerClock {
  #now = 0;
  #timers: { readonly at: number; readonly call: () => void }[] = [];

  readonly now = () => this.#now;

  readonly callLater = (call: () => void, ms: number) => {
    const timer = { at: this.#now + ms, call };
    this.#timers.push(timer);
    return () => void (this.#timers = this.#timers.filter((one) => one !== timer));
  };

  /** Advances the time, and runs the timers that are due. */
  async pass(ms: number): Promise<void> {
    const until = this.#now + ms;
    for (;;) {
      const next = this.#timers.filter(({ at }) => at <= until).sort((x, y) => x.at - y.at)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((one) => one !== next);
      this.#now = Math.max(this.#now, next.at);
      next.call();
      await settled();
    }
    this.#now = until;
  }
}

/** Waits until all work that needs no time is done. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
