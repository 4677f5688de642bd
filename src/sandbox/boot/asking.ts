/**
 * Asks the host thread, waiting for the answer or not.
 *
 * @module
 */

import type { Failure, Reply, WorkerStart } from "./message.ts";

/** How an answer is waited for. */
export interface Waiting {
  /** Lets go of the request: the answer is the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Takes what is said before the answer. */
  readonly onSay?: ((value: unknown) => void) | undefined;
}

interface Asked extends PromiseWithResolvers<unknown> {
  readonly onSay: Waiting["onSay"];
}

/** Both ways to ask the host thread. */
export class Asking {
  readonly #post: (message: unknown) => void;
  readonly #turn: Int32Array;
  readonly #answer: SharedArrayBuffer;
  readonly #waiting = new Map<number, Asked>();
  #last = 0;

  /** Takes the shared memory of synchronous answers and the way to send. */
  constructor(start: WorkerStart, post: (message: unknown) => void) {
    this.#post = post;
    this.#turn = new Int32Array(start.turn);
    this.#answer = start.answer;
  }

  /** Asks, and gives the answer when it comes. */
  async later(
    op: string,
    args: readonly unknown[],
    { signal, onSay }: Waiting = {},
  ): Promise<unknown> {
    signal?.throwIfAborted();
    const id = ++this.#last;
    const asked = { ...Promise.withResolvers<unknown>(), onSay };
    const drop = () => {
      this.#post({ kind: "drop", id });
      this.#waiting.delete(id);
      asked.reject(signal?.reason);
    };
    this.#waiting.set(id, asked);
    signal?.addEventListener("abort", drop);
    try {
      this.#post({ kind: "ask", id, op, args });
      return await asked.promise;
    } finally {
      signal?.removeEventListener("abort", drop);
      this.#waiting.delete(id);
    }
  }

  /** Asks, and blocks this thread until the answer is there. */
  now(op: string, args: readonly unknown[]): unknown {
    Atomics.store(this.#turn, 0, 0);
    this.#post({ kind: "ask", id: 0, op, args });
    // The host thread wakes after it has answered: the wake of the last answer may come only now.
    while (Atomics.load(this.#turn, 0) === 0) Atomics.wait(this.#turn, 0, 0);
    const [kind, length] = this.#turn;
    // Copied, because the next answer overwrites this memory.
    const bytes = new Uint8Array(this.#answer, 0, length).slice();
    return kind === 2 ? bytes : valueOf(JSON.parse(new TextDecoder().decode(bytes)));
  }

  /** Hands an answer to whoever asked. */
  settle(id: number, reply: Reply): void {
    this.#waiting.get(id)?.resolve(Promise.try(valueOf, reply));
  }

  /** Hands on what is said before an answer. */
  hear(id: number, value: unknown): void {
    this.#waiting.get(id)?.onSay?.(value);
  }
}

function valueOf(reply: Reply): unknown {
  if (reply.ok) return reply.value;
  throw errorOf(reply.error);
}

/** Builds an error of the class that Deno itself would throw. */
function errorOf({ name, message, code }: Failure): Error {
  const classes: Readonly<Record<string, new (message: string) => Error>> = {
    ...Deno.errors,
    TypeError,
  };
  const error = new (classes[name] ?? Error)(message);
  return code === undefined ? error : Object.assign(error, { code });
}

/** Builds the error of something that no module may use. */
export function denied(message: string): Error {
  return errorOf({ name: "NotCapable", message, code: "SANDBOX_DENIED" });
}
