/**
 * A clock that tests move forward.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import type { TimerClock } from "./pool.ts";

/** Time that goes on when it is told to. */
export class FakeClock implements TimerClock {
  #now = 0;
  #timers: { readonly at: number; readonly call: () => void }[] = [];

  readonly now = () => this.#now;

  readonly later = (call: () => void, ms: number) => {
    const timer = { at: this.#now + ms, call };
    this.#timers.push(timer);
    return () => void (this.#timers = this.#timers.filter((one) => one !== timer));
  };

  /** Lets time go on, with all that happens meanwhile. */
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

/** Lets everything happen that needs no time. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
