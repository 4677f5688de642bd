/**
 * Records requests and received messages: each request has one answer, and no other answers exist.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Message } from "./json_rpc.ts";

/** The requests to a server, and its messages. */
export class Ledger {
  /** The received messages, in order. */
  readonly messages: Message[] = [];
  readonly #waiting = new Map<number | string, (message: Message) => void>();
  readonly #asked = new Set<number | string>();
  readonly #told: () => string;
  #broken: unknown;

  /** Takes a function that returns details about the server for errors. */
  constructor(told: () => string) {
    this.#told = told;
  }

  /** Records a sent id. */
  ask(id: number | string): void {
    this.#asked.add(id);
  }

  /** Records a sent id, and returns its answer. */
  answerTo(id: number | string): Promise<Message> {
    this.ask(id);
    const { promise, resolve } = Promise.withResolvers<Message>();
    this.#waiting.set(id, resolve);
    return promise;
  }

  /** Records an answer. */
  settle(message: Message): void {
    if (message.id === undefined || message.id === null) return;
    this.#waiting.get(message.id)?.(message);
    this.#waiting.delete(message.id);
  }

  /** Records an error; the first one counts. */
  broke(error: unknown): void {
    this.#broken ??= error;
  }

  /** Asserts that there was no error, and that no request has two answers. */
  assertClean(): void {
    if (this.#broken !== undefined) throw this.#broken;
    const answers = this.messages.filter((message) => message.method === undefined);
    const ids = answers.map(({ id }) => id).filter((id) => id !== null);
    const unasked = ids.filter((id) => !this.#asked.has(id as string | number));
    assert.deepEqual(unasked, [], `answers without a request: ${this.#told()}`);
    const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
    assert.deepEqual(twice, [], `answered twice: ${this.#told()}`);
  }

  /** Asserts that every request so far has exactly one answer, and that there was no error. */
  assertAnswered(): void {
    this.assertClean();
    const unanswered = [...this.#asked].filter((id) =>
      !this.messages.some((message) => message.method === undefined && message.id === id)
    );
    assert.deepEqual(unanswered, [], `never answered: ${this.#told()}`);
  }
}
