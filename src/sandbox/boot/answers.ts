/**
 * Answers the requests of the Worker. File requests are answered synchronously; other requests are
 * answered when they are done.
 *
 * @module
 */

import type { Broker } from "./broker.ts";
import type { FromWorker, HostReply } from "./message.ts";
import type { HostFunction } from "./host_function.ts";
import { failureReply } from "./refusal.ts";

/** The initial size of the memory for synchronous answers, in bytes. */
const ANSWER_START = 1 << 16;
/** The memory for an answer in addition to the limit of a result, in bytes. */
const SPARE = 1 << 20;
/** The maximum number of asynchronous requests that one Worker may have open. */
const OPEN_MAX = 1_024;
const TOO_MANY = { name: "Error", message: `Too many open requests: ${OPEN_MAX}` };

/** The handlers of requests, and the limit of answers. */
export interface AnswersOptions {
  /** The largest answer to a synchronous request, in bytes. */
  readonly resultBytes: number;
  readonly files: Pick<Broker, "answer">;
  readonly ops: Readonly<Record<string, HostFunction>>;
}

/** The requests of one Worker. */
export class WorkerRequests {
  /** The shared memory where the Worker finds answers to synchronous requests. */
  readonly slot: AnswerSlot;
  readonly #port: MessagePort;
  readonly #options: AnswersOptions;
  readonly #ops: ReadonlyMap<string, HostFunction>;
  readonly #open = new Map<number, AbortController>();

  /** Creates an instance that answers on `port`. */
  constructor(port: MessagePort, options: AnswersOptions) {
    this.#port = port;
    this.#options = options;
    this.#ops = new Map(Object.entries(options.ops));
    this.slot = new AnswerSlot(options.resultBytes + SPARE);
  }

  /** Handles a request, or aborts a request that the Worker no longer waits for. */
  take(message: Exclude<FromWorker, { readonly kind: "frame" }>): void {
    const { id } = message;
    if (message.kind === "drop") return this.#open.get(id)?.abort();
    const { op, args } = message;
    // A request with id 0 is synchronous: the Worker is blocked until it gets the answer.
    const run = id === 0 ? undefined : this.#ops.get(op);
    if (run !== undefined) return void this.#answer(run, { id, op, args });
    const reply = this.#options.files.answer(op, args);
    if (id === 0) return this.slot.put(reply);
    this.#reply(id, reply);
  }

  async #answer(
    run: HostFunction,
    { id, op, args }: { readonly id: number; readonly op: string; readonly args: unknown[] },
  ): Promise<void> {
    const controller = new AbortController();
    const say = (value: unknown) => this.#port.postMessage({ kind: "said", id, value });
    try {
      // A second request with the same id could not be counted.
      if (this.#open.size >= OPEN_MAX || this.#open.has(id)) {
        return this.#reply(id, { ok: false, error: TOO_MANY });
      }
      this.#open.set(id, controller);
      const value = await run(args, { signal: controller.signal, say });
      this.#reply(id, { ok: true, value });
    } catch (error) {
      this.#reply(id, failureReply(error, { op, args }));
    }
    this.#open.delete(id);
  }

  #reply(id: number, reply: HostReply): void {
    const bytes = bytesIn(reply);
    this.#port.postMessage({ kind: "reply", id, reply }, bytes ? [bytes.buffer] : []);
  }
}

function bytesIn(reply: HostReply): Uint8Array<ArrayBuffer> | undefined {
  // These bytes come from the host thread and are never in shared memory.
  return reply.ok && reply.value instanceof Uint8Array
    ? reply.value as Uint8Array<ArrayBuffer>
    : undefined;
}

/** Writes answers for a Worker that is blocked in a synchronous call. */
class AnswerSlot {
  readonly turn = new SharedArrayBuffer(8);
  readonly answer: SharedArrayBuffer;
  readonly #turn = new Int32Array(this.turn);

  constructor(maxByteLength: number) {
    this.answer = new SharedArrayBuffer(ANSWER_START, { maxByteLength });
  }

  put(reply: HostReply): void {
    const plain = bytesIn(reply);
    const bytes = plain ?? new TextEncoder().encode(JSON.stringify(reply));
    if (bytes.length > this.answer.byteLength) this.answer.grow(bytes.length);
    new Uint8Array(this.answer).set(bytes);
    this.#turn[1] = bytes.length;
    Atomics.store(this.#turn, 0, plain ? 2 : 1);
    Atomics.notify(this.#turn, 0);
  }
}
