/**
 * A client with a connection of its own: the work on its requests can be brought to its end.
 *
 * @module
 */

import { NOT_BEGUN } from "../core/window.ts";
import type { RequestContext } from "../protocol/connection.ts";

/** Counts the requests that are worked on. */
export class Work {
  #count = 0;
  readonly #ended = Promise.withResolvers<void>();
  #isEnding = false;

  /** Works on a request. When the work is to end, the client is told that this was not begun. */
  async on<T>(context: RequestContext, work: () => Promise<T>): Promise<T> {
    if (this.#isEnding) {
      // guard: window-not-begun
      await context.notify({ method: NOT_BEGUN, params: { requestId: context.id } });
      return await new Promise(() => {}); // whoever takes over answers it
    }
    this.#count++;
    try {
      return await work();
    } finally {
      this.#count--;
      this.#rests();
    }
  }

  /** Begins no more. Resolves when nothing is worked on. */
  async end(): Promise<void> {
    this.#isEnding = true;
    this.#rests();
    await this.#ended.promise;
  }

  #rests(): void {
    if (this.#isEnding && this.#count === 0) this.#ended.resolve();
  }
}
