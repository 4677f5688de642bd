/**
 * Lets the requests and notifications of one connection finish before another process takes the
 * connection over.
 *
 * @module
 */

import { NOT_BEGUN } from "../protocol/window.ts";
import type { RequestContext } from "../protocol/connection.ts";

/** Counts the requests and notifications of a connection that are served now. */
export class RequestDrain {
  #count = 0;
  readonly #drained = Promise.withResolvers<void>();
  #isDraining = false;

  /** Serves a request. While it drains, it notifies the client that the request was not begun. */
  async serve<T>(context: RequestContext, serve: () => Promise<T>): Promise<T> {
    if (this.#isDraining) {
      // guard: window-not-begun
      await context.notify({ method: NOT_BEGUN, params: { requestId: context.id } });
      return await new Promise(() => {}); // the next process answers it
    }
    return await this.follow(serve());
  }

  /** Counts work, which the end of draining waits for. A notification is passed on by this process. */
  async follow<T>(work: Promise<T>): Promise<T> {
    this.#count++;
    try {
      return await work;
    } finally {
      this.#count--;
      this.#resolveIfDrained();
    }
  }

  /** Begins no more requests. Resolves when no request and no notification is served. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    this.#resolveIfDrained();
    await this.#drained.promise;
  }

  #resolveIfDrained(): void {
    if (this.#isDraining && this.#count === 0) this.#drained.resolve();
  }
}
