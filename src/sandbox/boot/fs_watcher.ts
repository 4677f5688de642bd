/**
 * `Deno.watchFs` over the broker.
 *
 * @module
 */

import type { Asking } from "./asking.ts";

/** Watches files until it is closed. */
export class BrokeredWatcher implements AsyncIterableIterator<unknown>, Disposable {
  readonly #asking: Asking;
  readonly #id: unknown;
  #closed = false;

  /** Begins to watch; what cannot be watched is refused at once. */
  constructor(asking: Asking, asked: readonly unknown[]) {
    this.#asking = asking;
    this.#id = asking.now("watch.open", asked);
  }

  /** Gives the next event. */
  async next(): Promise<IteratorResult<unknown>> {
    const value = this.#closed ? null : await this.#asking.later("watch.next", [this.#id]);
    return value === null ? { value: undefined, done: true } : { value, done: false };
  }

  /** Ends the watch, also when a loop is left. */
  return(value?: unknown): Promise<IteratorResult<unknown>> {
    this.close();
    return Promise.resolve({ value, done: true });
  }

  /** Ends the watch. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#asking.now("watch.close", [this.#id]);
  }

  /** Does nothing: a module keeps no process alive. */
  ref(): void {}

  /** Does nothing, as `ref()`. */
  unref(): void {}

  /** Gives itself. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Ends the watch at the end of a block. */
  [Symbol.dispose](): void {
    this.close();
  }
}
