/**
 * Keeps notifications and answers to a server in order. PML sends each of them in a separate HTTP
 * request, and concurrent requests may arrive in any order.
 *
 * @module
 */

import { settlesWithin } from "../../io/waiting.ts";

/** How long a message waits for the message before it, in milliseconds. */
const ORDER_MS = 1_000;

/** Sends the notifications and answers to one server in order. */
export class OrderedMessages {
  readonly #sending = new Set<Promise<void>>();
  #last: Promise<void> = Promise.resolve();

  /** Sends a message when the message before it has arrived, or after `ORDER_MS`. */
  add(send: () => Promise<void>): Promise<void> {
    const last = this.#last;
    const sent: Promise<void> =
      (this.#sending.size === 0 ? send() : settlesWithin(last, ORDER_MS).then(send))
        .finally(() => this.#sending.delete(sent));
    this.#sending.add(sent);
    return this.#last = sent;
  }

  /** Resolves when the messages that were added so far have arrived. */
  async allSent(): Promise<void> {
    await Promise.all(this.#sending);
  }
}
