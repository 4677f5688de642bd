/**
 * Asks the host thread for files, waiting for the answer or not.
 *
 * @module
 */

import type { Failure, Reply, WorkerStart } from "./message.ts";

/** A successful answer. */
export interface Answer {
  readonly value?: unknown;
  readonly bytes?: Uint8Array;
}

/** Both ways to ask the host thread. */
export class Asking {
  readonly #post: (message: unknown) => void;
  readonly #turn: Int32Array;
  readonly #answer: SharedArrayBuffer;
  readonly #waiting = new Map<number, PromiseWithResolvers<Answer>>();
  #last = 0;

  /** Takes the shared memory of synchronous answers and the way to send. */
  constructor(start: WorkerStart, post: (message: unknown) => void) {
    this.#post = post;
    this.#turn = new Int32Array(start.turn);
    this.#answer = start.answer;
  }

  /** Asks, and gives the answer when it comes. */
  later(op: string, args: unknown[]): Promise<Answer> {
    const id = ++this.#last;
    const waiting = Promise.withResolvers<Answer>();
    this.#waiting.set(id, waiting);
    this.#post({ kind: "file", id, op, args });
    return waiting.promise;
  }

  /** Asks, and blocks this thread until the answer is there. */
  now(op: string, args: unknown[]): Answer {
    Atomics.store(this.#turn, 0, 0);
    this.#post({ kind: "file", id: 0, op, args });
    Atomics.wait(this.#turn, 0, 0);
    const head = Atomics.load(this.#turn, 0);
    const length = this.#turn[1] ?? -1;
    // Copied, because the next answer overwrites this memory.
    const reply = JSON.parse(decode(new Uint8Array(this.#answer, 0, head).slice()));
    if (!reply.ok) throw errorOf(reply.error);
    return length < 0
      ? reply
      : { ...reply, bytes: new Uint8Array(new Uint8Array(this.#answer, head, length)) };
  }

  /** Hands an answer to whoever asked. */
  settle(id: number, reply: Reply): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (reply.ok) waiting?.resolve(reply);
    else waiting?.reject(errorOf(reply.error));
  }
}

/** Builds an error of the class that Deno itself would throw. */
export function errorOf(failure: Failure): Error {
  const classes: Readonly<Record<string, new (message: string) => Error>> = {
    ...Deno.errors,
    TypeError,
  };
  const error = new (classes[failure.name] ?? Error)(failure.message);
  return failure.code === undefined ? error : Object.assign(error, { code: failure.code });
}

/** Builds the error of something that no module may use. */
export function denied(message: string): Error {
  return errorOf({ name: "NotCapable", message, code: "SANDBOX_DENIED" });
}

/** Rebuilds what `Deno.stat` gives. */
export function infoOf({ value }: Answer): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value as Record<string, unknown>).map(([key, one]) => [ // the broker's record
      key,
      /time$/.test(key) && typeof one === "number" ? new Date(one) : one,
    ]),
  );
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
