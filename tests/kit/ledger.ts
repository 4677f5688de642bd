/**
 * Keeps which requests were sent and what came: each request has one answer, and nothing else has.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Message } from "./json_rpc.ts";

/** What was asked of a server, and what it said. */
export class Ledger {
  /** The messages that came, in order. */
  readonly messages: Message[] = [];
  readonly #waiting = new Map<number | string, (message: Message) => void>();
  readonly #asked = new Set<number | string>();
  readonly #told: () => string;
  #broken: unknown;

  /** Takes what tells more of the server, for messages. */
  constructor(told: () => string) {
    this.#told = told;
  }

  /** Notes an id that was sent. */
  ask(id: number | string): void {
    this.#asked.add(id);
  }

  /** Notes an id that was sent, and gives its answer. */
  answerTo(id: number | string): Promise<Message> {
    this.ask(id);
    const { promise, resolve } = Promise.withResolvers<Message>();
    this.#waiting.set(id, resolve);
    return promise;
  }

  /** Takes an answer. */
  settle(message: Message): void {
    if (message.id === undefined || message.id === null) return;
    this.#waiting.get(message.id)?.(message);
    this.#waiting.delete(message.id);
  }

  /** Notes what went wrong; the first thing counts. */
  broke(error: unknown): void {
    this.#broken ??= error;
  }

  /** Asserts that nothing went wrong, and no request has two answers. */
  assertClean(): void {
    if (this.#broken !== undefined) throw this.#broken;
    const answers = this.messages.filter((message) => message.method === undefined);
    const ids = answers.map(({ id }) => id).filter((id) => id !== null);
    const unasked = ids.filter((id) => !this.#asked.has(id as string | number));
    assert.deepEqual(unasked, [], `answers to what was never asked: ${this.#told()}`);
    const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
    assert.deepEqual(twice, [], `answered twice: ${this.#told()}`);
  }

  /** Asserts that every request so far has its one answer, and that nothing went wrong. */
  assertAnswered(): void {
    this.assertClean();
    const unanswered = [...this.#asked].filter((id) =>
      !this.messages.some((message) => message.method === undefined && message.id === id)
    );
    assert.deepEqual(unanswered, [], `never answered: ${this.#told()}`);
  }
}
