/**
 * The order of notifications and answers to a server. Each is a separate HTTP request, and several
 * that are open may arrive in any order.
 *
 * @module
 */

import { soon } from "../../io/waiting.ts";

/** How long a message waits for the one before it, in milliseconds. */
const ORDER_MS = 1_000;

/** The notifications and answers to one server. */
export class OrderedMessages {
  readonly #sending = new Set<Promise<void>>();
  #last: Promise<void> = Promise.resolve();

  /** Sends a message when the one before it has arrived, but does not wait long for it. */
  add(send: () => Promise<void>): Promise<void> {
    const last = this.#last;
    const sent: Promise<void> =
      (this.#sending.size === 0 ? send() : soon(last, ORDER_MS).then(send))
        .finally(() => this.#sending.delete(sent));
    this.#sending.add(sent);
    return this.#last = sent;
  }

  /** Resolves when the present messages have arrived. */
  async sent(): Promise<void> {
    await Promise.all(this.#sending);
  }
}
