/**
 * Answers what the Worker asks: files at once, in one step each; what takes time when it is done.
 *
 * @module
 */

import type { Broker } from "./broker.ts";
import type { FromWorker, Reply } from "./message.ts";
import type { Power } from "./power.ts";
import { failed } from "./refusal.ts";

const ANSWER_START = 1 << 16;
const SPARE = 1 << 20;
/** How many requests that take time one Worker may have open. */
const OPEN_MAX = 1_024;
const TOO_MANY = { name: "Error", message: `Too many open requests: ${OPEN_MAX}` };

/** Who answers. */
export interface AnswersOptions {
  /** The largest answer to a request that the Worker waits for. */
  readonly resultBytes: number;
  readonly files: Pick<Broker, "answer">;
  readonly powers: Readonly<Record<string, Power>>;
}

/** The requests of one Worker. */
export class Answers {
  /** Where answers lie that the Worker waits for. */
  readonly slot: AnswerSlot;
  readonly #port: MessagePort;
  readonly #options: AnswersOptions;
  readonly #powers: ReadonlyMap<string, Power>;
  readonly #open = new Map<number, AbortController>();

  /** Takes the way back. */
  constructor(port: MessagePort, options: AnswersOptions) {
    this.#port = port;
    this.#options = options;
    this.#powers = new Map(Object.entries(options.powers));
    this.slot = new AnswerSlot(options.resultBytes + SPARE);
  }

  /** Takes a request, or lets go of one. */
  take(message: Exclude<FromWorker, { readonly kind: "frame" }>): void {
    const { id } = message;
    if (message.kind === "drop") return this.#open.get(id)?.abort();
    const { op, args } = message;
    // A Worker that waits in the middle of a synchronous call is answered at once.
    const power = id === 0 ? undefined : this.#powers.get(op);
    if (power !== undefined) return void this.#answer(power, { id, op, args });
    const reply = this.#options.files.answer(op, args);
    if (id === 0) return this.slot.put(reply);
    this.#reply(id, reply);
  }

  async #answer(
    power: Power,
    { id, op, args }: { readonly id: number; readonly op: string; readonly args: unknown[] },
  ): Promise<void> {
    const controller = new AbortController();
    const say = (value: unknown) => this.#port.postMessage({ kind: "said", id, value });
    try {
      // One more under the number of another would be counted by nobody.
      if (this.#open.size >= OPEN_MAX || this.#open.has(id)) {
        return this.#reply(id, { ok: false, error: TOO_MANY });
      }
      this.#open.set(id, controller);
      const value = await power(args, { signal: controller.signal, say });
      this.#reply(id, { ok: true, value });
    } catch (error) {
      this.#reply(id, failed(error, { op, args }));
    }
    this.#open.delete(id);
  }

  #reply(id: number, reply: Reply): void {
    const bytes = bytesIn(reply);
    this.#port.postMessage({ kind: "reply", id, reply }, bytes ? [bytes.buffer] : []);
  }
}

function bytesIn(reply: Reply): Uint8Array<ArrayBuffer> | undefined {
  // The host thread makes its own, never in shared memory.
  return reply.ok && reply.value instanceof Uint8Array
    ? reply.value as Uint8Array<ArrayBuffer>
    : undefined;
}

/** Hands answers to a Worker that waits in the middle of a synchronous call. */
class AnswerSlot {
  readonly turn = new SharedArrayBuffer(8);
  readonly answer: SharedArrayBuffer;
  readonly #turn = new Int32Array(this.turn);

  constructor(maxByteLength: number) {
    this.answer = new SharedArrayBuffer(ANSWER_START, { maxByteLength });
  }

  put(reply: Reply): void {
    const plain = bytesIn(reply);
    const bytes = plain ?? new TextEncoder().encode(JSON.stringify(reply));
    if (bytes.length > this.answer.byteLength) this.answer.grow(bytes.length);
    new Uint8Array(this.answer).set(bytes);
    this.#turn[1] = bytes.length;
    Atomics.store(this.#turn, 0, plain ? 2 : 1);
    Atomics.notify(this.#turn, 0);
  }
}
