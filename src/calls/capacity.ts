/**
 * Limits how many calls run at once. Further calls wait in a queue, in their order.
 *
 * @module
 */

import type { Call } from "../protocol/call.ts";
import type { CancelListener } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
import { cancelledError } from "./deadline.ts";

/** The limits on calls that run at the same time. */
export interface CapacityLimits {
  /** How many calls may run at once. */
  readonly concurrentCalls: number;
  /** How many further calls may wait for their turn. */
  readonly queuedCalls: number;
}

/** Counts the calls that run, and queues the calls above the limit. */
export class Capacity {
  readonly #limits: () => CapacityLimits;
  readonly #onRefused: (call: Call) => void;
  readonly #queue: QueuedCall[] = [];
  readonly #idle: (() => void)[] = [];
  #active = 0;

  /** Takes a function that returns the limits, which is called for each call. */
  constructor(limits: () => CapacityLimits, onRefused: (call: Call) => void) {
    this.#limits = limits;
    this.#onRefused = onRefused;
  }

  /**
   * Counts a call, which must `leave()` at its end. Returns a promise if the call has to wait for
   * its turn. The promise rejects if the call is cancelled first. Throws OVERLOADED if the queue is
   * full. Nested calls are not counted: an outer call that waits for a queued nested call could
   * deadlock.
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
    // When a call ends, `leave()` starts a queued call in its place and does not change the count.
    return new QueuedCall(call, this.#queue).turn;
  }

  /** Ends a call. The first call in the queue begins. */
  leave({ isNested }: Pick<Call, "isNested">): void {
    if (isNested) return;
    const next = this.#queue.shift();
    if (next !== undefined) return next.begin();
    if (--this.#active > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** The number of calls that run, and of those that wait for their turn. */
  get load(): { readonly running: number; readonly queued: number } {
    return { running: this.#active, queued: this.#queue.length };
  }

  /** Waits until all calls are over, whether they succeed or fail. */
  async whenIdle(): Promise<void> {
    if (this.#active > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }
}

/**
 * A call that waits for its turn. The constructor adds it to the queue, and a cancellation removes
 * it.
 */
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
    this.#reject(cancelledError(this.#call, reason));
  }
}

function overloaded({ id }: Call): PmlError {
  return new PmlError("OVERLOADED", `Cannot run "${id}": too many calls are under way`, {
    hint: "Call again later",
  });
}
