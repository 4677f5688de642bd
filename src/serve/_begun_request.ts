/**
 * A request whose call began at once.
 *
 * @module
 */

import type { Cancel } from "../core/quick_tool.ts";

/** It is answered once, or cancelled: a client that cancelled a request waits for no answer. */
export class BegunRequest {
  /** Cancels its call. */
  cancel: Cancel | undefined;
  readonly #onOver: (said?: string) => void;
  #abort: AbortController | undefined;
  #isOver = false;

  /** Takes what is called once, with the members of the answer if there is one. */
  constructor(onOver: (said?: string) => void) {
    this.#onOver = onOver;
  }

  /** Whether it was answered or cancelled. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Returns the signal that aborts with it, which few requests need. */
  signal(): AbortSignal {
    return (this.#abort = new AbortController()).signal;
  }

  /** Answers it. */
  answer(said: string): void {
    if (!this.#isOver) this.#end(said);
  }

  /** Cancels it. */
  abort(reason: unknown): void {
    if (this.#isOver) return;
    this.#end();
    this.#abort?.abort(reason);
    this.cancel?.(reason);
  }

  #end(said?: string): void {
    this.#isOver = true;
    this.#onOver(said);
  }
}
