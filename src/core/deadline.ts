/**
 * The innermost gate: a call ends by its deadline, whatever runs behind it.
 *
 * @module
 */

import type { Call, CallTool, Gate, Outcome } from "./call.ts";
import { PmlError } from "./errors.ts";

/** How long a call may take, in milliseconds. */
export interface Deadline {
  /** Without progress. Each progress message starts it again. */
  readonly callMs: number;
  /** At the most, progress or not. */
  readonly capMs: number;
}

/** Aborts a call's signal with TIMED_OUT when its deadline passes; progress extends it. */
export function deadlineGate(limits: () => Deadline): Gate {
  return (next) => async (call) => {
    const { callMs, capMs } = limits();
    const abort = new AbortController();
    const cancel = () => abort.abort(call.signal.reason);
    if (call.signal.aborted) cancel();
    call.signal.addEventListener("abort", cancel, { once: true });
    const clock = new Clock({ callMs, capMs }, (ms) => abort.abort(timedOut(call, ms)));
    const onProgress: Call["onProgress"] = (progress) => {
      clock.start();
      call.onProgress?.(progress);
    };
    const { onAsk: ask } = call;
    // A person takes the time that they take.
    const onAsk: Call["onAsk"] = ask && ((asked) => clock.paused(() => ask(asked)));
    try {
      return await settled(next, { ...call, signal: abort.signal, onProgress, onAsk });
    } finally {
      clock.stop();
      call.signal.removeEventListener("abort", cancel);
    }
  };
}

/** The two times that a call has: without progress, and at the most. */
class Clock {
  readonly #deadline: Deadline;
  readonly #expire: (ms: number) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #cap: ReturnType<typeof setTimeout>;
  #capLeft: number;
  #since = performance.now();
  #pauses = 0;

  constructor(deadline: Deadline, expire: (ms: number) => void) {
    this.#deadline = deadline;
    this.#expire = expire;
    this.#capLeft = deadline.capMs;
    this.#cap = this.#startCap();
    this.start();
  }

  /** Starts the time without progress, again where it ran. */
  start(): void {
    if (this.#pauses > 0) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#expire, this.#deadline.callMs, this.#deadline.callMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#cap);
    this.#pauses = Infinity;
  }

  /** Counts nothing while something else is waited for. */
  async paused<T>(work: () => Promise<T>): Promise<T> {
    if (this.#pauses++ === 0) {
      this.#capLeft -= performance.now() - this.#since;
      clearTimeout(this.#timer);
      clearTimeout(this.#cap);
    }
    try {
      return await work();
    } finally {
      if (--this.#pauses === 0) {
        this.#cap = this.#startCap();
        this.start();
      }
    }
  }

  #startCap(): ReturnType<typeof setTimeout> {
    this.#since = performance.now();
    return setTimeout(this.#expire, Math.max(this.#capLeft, 0), this.#deadline.capMs);
  }
}

/** Waits for the call or the abort, so that a callee which ignores its signal cannot hold us. */
function settled(next: CallTool, call: Call): Promise<Outcome> {
  const { promise, reject } = Promise.withResolvers<never>();
  const refuse = () => reject(reasonOf(call));
  if (call.signal.aborted) refuse();
  call.signal.addEventListener("abort", refuse, { once: true });
  const aborted = promise.finally(() => call.signal.removeEventListener("abort", refuse));
  // Nobody listens to the loser of the race.
  aborted.catch(() => {});
  if (call.signal.aborted) return aborted;
  return Promise.race([next(call), aborted]);
}

function reasonOf(call: Call): PmlError {
  const { reason } = call.signal;
  if (reason instanceof PmlError) return reason;
  return new PmlError("CANCELLED", `Cannot finish "${call.id}": the client cancelled it`);
}

function timedOut(call: Call, ms: number): PmlError {
  return new PmlError("TIMED_OUT", `Cannot finish "${call.id}": it took longer than ${ms} ms`, {
    hint: "Ask for less at once, or raise limits.call_ms in config.yaml of the PML home",
  });
}
