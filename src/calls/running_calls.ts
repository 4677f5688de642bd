/**
 * The calls that run now, so that the user can see and cancel them.
 *
 * @module
 */

import type { CallContext } from "./context.ts";

/** The calls in the pipeline. Adding and removing a call allocates nothing. */
export class RunningCalls {
  readonly #calls: CallContext[] = [];

  /** Adds a call. */
  add(call: CallContext): void {
    call.runningIndex = this.#calls.push(call) - 1;
  }

  /** Removes a call. */
  remove(call: CallContext): void {
    const last = this.#calls.pop();
    if (last === undefined || last === call) return;
    this.#calls[call.runningIndex] = last;
    last.runningIndex = call.runningIndex;
  }

  /** Returns the calls, the oldest first. */
  all(): readonly CallContext[] {
    return this.#calls.toSorted((one, other) => one.startedAt - other.startedAt);
  }

  /** Returns the call with an id; undefined if no running call has it. */
  find(callId: string): CallContext | undefined {
    return this.#calls.find((call) => call.callId === callId);
  }
}
