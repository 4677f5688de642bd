/**
 * Lets the requests and notifications of one connection finish before another process takes the
 * connection over.
 *
 * @module
 */

import { NOT_BEGUN } from "../protocol/takeover.ts";
import type { RequestContext } from "../protocol/connection.ts";

/** Counts the requests and notifications that a connection is serving. */
export class RequestDrain {
  #activeCount = 0;
  readonly #drained = Promise.withResolvers<void>();
  #isDraining = false;

  /** Serves a request. After `drain()`, notifies the client that it has not begun. */
  async serve<T>(context: RequestContext, serve: () => Promise<T>): Promise<T> {
    if (this.#isDraining) {
      // guard: window-not-begun
      await context.notify({ method: NOT_BEGUN, params: { requestId: context.id } });
      return await new Promise(() => {}); // the next process answers it
    }
    return await this.track(serve());
  }

  /** Counts work until it ends, so that `drain()` waits for it. */
  async track<T>(work: Promise<T>): Promise<T> {
    this.#activeCount++;
    try {
      return await work;
    } finally {
      this.#activeCount--;
      this.#resolveIfDrained();
    }
  }

  /** Stops beginning requests. Resolves when all counted work has ended. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    this.#resolveIfDrained();
    await this.#drained.promise;
  }

  #resolveIfDrained(): void {
    if (this.#isDraining && this.#activeCount === 0) this.#drained.resolve();
  }
}
