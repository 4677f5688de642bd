/**
 * Limits how many calls run at once. Further calls wait in a queue, in their order.
 *
 * @module
 */

import type { Call } from "../protocol/call.ts";
import type { CancelListener } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
import { cancelled } from "./deadline.ts";

/** The limits on calls that are under way. */
export interface CapacityLimits {
  /** How many calls may run at once. */
  readonly concurrentCalls: number;
  /** How many further calls may wait for their turn. */
  readonly queuedCalls: number;
}

/** The calls that are under way. */
export class Capacity {
  readonly #limits: () => CapacityLimits;
  readonly #onRefused: (call: Call) => void;
  readonly #queue: QueuedCall[] = [];
  readonly #idle: (() => void)[] = [];
  #active = 0;

  /** Creates an empty set. The limits are read again for each call. */
  constructor(limits: () => CapacityLimits, onRefused: (call: Call) => void) {
    this.#limits = limits;
    this.#onRefused = onRefused;
  }

  /**
   * Enters a call, which must `leave()`. Returns a promise if it has to wait for its turn, which
   * rejects if the call is cancelled before. Throws OVERLOADED if the queue is full. A nested call
   * uses the place of its outer call, which would otherwise wait for itself.
   */
  enter(call: Call): Promise<void> | undefined {
    if (call.isNested) return undefined;
    const { concurrentCalls, queuedCalls } = this.#limits();
    if (this.#active < concurrentCalls) {
      this.#active++;
      return undefined;
    }
    if (this.#queue.length >= queuedCalls) {
      this.#onRefused(call);
      throw overloaded(call);
    }
    // A call from the queue takes the place of the call that ended, so the count stays.
    return new QueuedCall(call, this.#queue).turn;
  }

  /** Lets the next call of the queue take the place of a call that is over. */
  leave({ isNested }: Pick<Call, "isNested">): void {
    if (isNested) return;
    const next = this.#queue.shift();
    if (next !== undefined) return next.begin();
    if (--this.#active > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Waits until all calls are over, whether they succeed or fail. */
  async over(): Promise<void> {
    if (this.#active > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }
}

/** A call that waits for its turn. It leaves the queue when it is cancelled. */
class QueuedCall implements CancelListener {
  /** Resolves when the call may begin. */
  readonly turn: Promise<void>;
  readonly #call: Call;
  readonly #queue: QueuedCall[];
  #resolve!: () => void;
  #reject!: (error: PmlError) => void;

  constructor(call: Call, queue: QueuedCall[]) {
    this.#call = call;
    this.#queue = queue;
    this.turn = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    queue.push(this);
    call.cancellation.add(this);
  }

  begin(): void {
    this.#call.cancellation.remove(this);
    this.#resolve();
  }

  onCancel(reason: unknown): void {
    this.#queue.splice(this.#queue.indexOf(this), 1);
    this.#reject(cancelled(this.#call, reason));
  }
}

function overloaded({ id }: Call): PmlError {
  return new PmlError("OVERLOADED", `Cannot run "${id}": too many calls are under way`, {
    hint: "Call again later",
  });
}
