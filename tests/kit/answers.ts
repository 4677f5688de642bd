/**
 * Holds each request of a conversation to get exactly one answer.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Message } from "./json_rpc.ts";

type Id = number | string;

/** The requests that were sent, and who waits for their answers. */
export class Answers {
  readonly #asked = new Set<Id>();
  readonly #waiting = new Map<Id, (message: Message) => void>();

  /** Notes a request. */
  note(id: Id): void {
    this.#asked.add(id);
  }

  /** Notes a request, and gives its answer once that is there. */
  to(id: Id): Promise<Message> {
    this.note(id);
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

  /** Asserts that nothing was answered twice, or without being asked. */
  assertClean(messages: readonly Message[], told: string): void {
    const answers = messages.filter((message) => message.method === undefined);
    const ids = answers.map(({ id }) => id).filter((id) => id !== null);
    const unasked = ids.filter((id) => !this.#asked.has(id as Id));
    assert.deepEqual(unasked, [], `answers to what was never asked: ${told}`);
    const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
    assert.deepEqual(twice, [], `answered twice: ${told}`);
  }

  /** Asserts that every request has its answer. */
  assertAll(messages: readonly Message[], told: string): void {
    const unanswered = [...this.#asked].filter((id) =>
      !messages.some((message) => message.method === undefined && message.id === id)
    );
    assert.deepEqual(unanswered, [], `never answered: ${told}`);
  }
}
