/**
 * Sends requests to the host thread, and waits for the answers asynchronously or by blocking.
 *
 * @module
 */

import type { HostReply, SentError, WorkerStart } from "./message.ts";

/** Options of an asynchronous request. */
export interface HostRequestOptions {
  /** Stops waiting when it aborts; the request then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Called with each message of the request before its answer. */
  readonly onSay?: ((value: unknown) => void) | undefined;
}

/** A request without an answer yet. */
interface HostRequest extends PromiseWithResolvers<unknown> {
  readonly onSay: HostRequestOptions["onSay"];
}

/** Sends requests to the host thread in both ways. */
export class HostClient {
  readonly #post: (message: unknown) => void;
  readonly #turn: Int32Array;
  readonly #answer: SharedArrayBuffer;
  readonly #pending = new Map<number, HostRequest>();
  #lastId = 0;

  /** Creates a client with the memory for synchronous answers and the function that sends. */
  constructor(start: WorkerStart, post: (message: unknown) => void) {
    this.#post = post;
    this.#turn = new Int32Array(start.turn);
    this.#answer = start.answer;
  }

  /** Sends a request and resolves with its answer. */
  async request(
    op: string,
    args: readonly unknown[],
    { signal, onSay }: HostRequestOptions = {},
  ): Promise<unknown> {
    signal?.throwIfAborted();
    const id = ++this.#lastId;
    const request = { ...Promise.withResolvers<unknown>(), onSay };
    const drop = () => {
      this.#post({ kind: "drop", id });
      this.#pending.delete(id);
      request.reject(signal?.reason);
    };
    this.#pending.set(id, request);
    signal?.addEventListener("abort", drop);
    try {
      this.#post({ kind: "ask", id, op, args });
      return await request.promise;
    } finally {
      signal?.removeEventListener("abort", drop);
      this.#pending.delete(id);
    }
  }

  /** Sends a request and blocks this thread until the answer comes. */
  requestSync(op: string, args: readonly unknown[]): unknown {
    Atomics.store(this.#turn, 0, 0);
    this.#post({ kind: "ask", id: 0, op, args });
    // A late notification of the previous answer may wake this thread too early, so the loop checks
    // the value.
    while (Atomics.load(this.#turn, 0) === 0) Atomics.wait(this.#turn, 0, 0);
    const [kind, length] = this.#turn;
    // The bytes are copied, because the next answer overwrites this memory.
    const bytes = new Uint8Array(this.#answer, 0, length).slice();
    return kind === 2 ? bytes : valueOf(JSON.parse(new TextDecoder().decode(bytes)));
  }

  /** Resolves a request with its answer. */
  settle(id: number, reply: HostReply): void {
    this.#pending.get(id)?.resolve(Promise.try(valueOf, reply));
  }

  /** Forwards a message that comes before the answer. */
  forward(id: number, value: unknown): void {
    this.#pending.get(id)?.onSay?.(value);
  }
}

function valueOf(reply: HostReply): unknown {
  if (reply.ok) return reply.value;
  throw errorOf(reply.error);
}

/** Returns an error of the class that Deno would throw. */
function errorOf({ name, message, code }: SentError): Error {
  const classes: Readonly<Record<string, new (message: string) => Error>> = {
    ...Deno.errors,
    TypeError,
  };
  const error = new (classes[name] ?? Error)(message);
  return code === undefined ? error : Object.assign(error, { code });
}

/** Returns the error for a function that modules cannot use. */
export function deniedFunction(message: string): Error {
  return errorOf({ name: "NotCapable", message, code: "SANDBOX_DENIED" });
}
