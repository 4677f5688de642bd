/**
 * The innermost gate: a call ends by its deadline, whatever runs behind it.
 *
 * @module
 */

import {
  type Asking,
  type Call,
  type Gate,
  heldAsking,
  type ProgressReport,
} from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { ownProgress, type ProgressListener, showsWork } from "../core/progress.ts";
import type { ToolId } from "../core/tool_id.ts";
import { onAbort } from "../io/waiting.ts";

/** How long a call may take, in milliseconds. */
export interface Deadline {
  /** Without progress. Each progress message starts it again. */
  readonly callMs: number;
  /** At the most, progress or not. */
  readonly capMs: number;
  /** For how long no server was read so far, because the client has to read first. */
  readonly heldMs?: number;
}

/** How often PML reports that a call without progress still runs, in milliseconds. */
const REPORT_MS = 5_000;

/** The deadlines of calls. One timer looks at all of them. */
export class Deadlines implements Disposable {
  readonly #limits: (id: ToolId) => Deadline;
  readonly #reportMs: number;
  readonly #running = new Set<Running>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** When the timer goes off; never if it is not set. */
  #at = Infinity;

  /** Takes the limits of calls, which are asked for at each look, and how often PML reports. */
  constructor(limits: (id: ToolId) => Deadline, reportMs: number = REPORT_MS) {
    this.#limits = limits;
    this.#reportMs = reportMs;
  }

  /**
   * Begins the time of a call. `end` is called with TIMED_OUT when it is over. While nothing is
   * heard of the call, its `onProgress` receives reports of PML, which do not extend the deadline.
   */
  begin(call: Pick<Call, "id" | "onProgress">, end: (error: PmlError) => void): Running {
    const limits = () => this.#limits(call.id);
    const running = new Running(call, { limits, reportMs: this.#reportMs, end });
    this.#running.add(running);
    this.#wake(running.next());
    return running;
  }

  /** Ends the time of a call. The timer stays, because it goes off once for many calls. */
  end(running: Running): void {
    this.#running.delete(running);
    running.leave();
  }

  /** Ends the timer. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #wake(due: number): void {
    if (this.#at <= due) return;
    clearTimeout(this.#timer);
    this.#at = due;
    this.#timer = setTimeout(() => this.#look(), due - performance.now());
  }

  #look(): void {
    this.#at = Infinity;
    for (const running of this.#running) {
      const due = running.look();
      if (due === undefined) this.#running.delete(running);
      else this.#wake(due);
    }
  }
}

/** The time of a call that runs. */
export class Running {
  readonly #id: ToolId;
  readonly #limits: () => Deadline;
  readonly #reportMs: number;
  #end: ((error: PmlError) => void) | undefined;
  #listener: ProgressListener | undefined;
  #started = performance.now();
  #heard = this.#started;
  /** When the client got the last report. */
  #reported = this.#started;
  #isResponsive = true;
  #known: number;
  #since = 0;
  #asking = 0;

  constructor(
    { id, onProgress }: Pick<Call, "id" | "onProgress">,
    { limits, reportMs, end }: {
      readonly limits: () => Deadline;
      readonly reportMs: number;
      readonly end: (error: PmlError) => void;
    },
  ) {
    this.#id = id;
    this.#listener = onProgress;
    this.#limits = limits;
    this.#reportMs = reportMs;
    this.#end = end;
    this.#known = limits().heldMs ?? 0;
  }

  /** Whether somebody is asked. A person takes the time that they take. */
  get isAsking(): boolean {
    return this.#asking > 0;
  }

  /**
   * Notes a report: progress starts the time without progress again. Returns whether the client
   * gets it.
   */
  notes(progress: ProgressReport): boolean {
    const { own } = progress;
    this.#reported = performance.now();
    if (showsWork(progress)) this.#heard = this.#reported;
    if (own !== "waiting") this.#isResponsive = own !== "unresponsive";
    return own !== "responsive";
  }

  /** Returns the ways to ask, with which the time of a question is no time of the call. */
  held(asking: Asking): Asking {
    return heldAsking(asking, async (work) => {
      if (this.#asking++ === 0) this.#since = performance.now();
      try {
        return await work();
      } finally {
        const waited = performance.now() - this.#since;
        if (--this.#asking === 0) {
          this.#started += waited;
          this.#heard += waited;
        }
      }
    });
  }

  /** Returns when the time is over, as far as is known now. */
  due(): number {
    const { callMs, capMs } = this.#limits();
    return this.isAsking
      ? performance.now() + callMs
      : Math.min(this.#heard + callMs, this.#started + capMs);
  }

  /** Returns when the call is to be looked at. */
  next(): number {
    const due = this.due();
    return this.#listener === undefined ? due : Math.min(due, this.#reported + this.#reportMs);
  }

  /** Ends the call if its time is over; otherwise returns when that is to be looked at again. */
  look(): number | undefined {
    const { callMs, capMs, heldMs = 0 } = this.#limits();
    // What the client had to read first is no time of the call, and its answer may wait unread.
    if (heldMs > this.#known) {
      this.#started += heldMs - this.#known;
      this.#heard = performance.now();
    }
    this.#known = heldMs;
    const due = this.due();
    if (due > performance.now()) {
      this.#report();
      return this.next();
    }
    const ms = this.#heard + callMs < this.#started + capMs ? callMs : capMs;
    this.#end?.(timedOut(this.#id, ms));
    return undefined;
  }

  /** Forgets the call. The engine keeps old tables of a Set, with what was in them, for long. */
  leave(): void {
    this.#end = this.#listener = undefined;
  }

  /** Reports that the call runs, if the client got no report for some time. */
  #report(): void {
    const now = performance.now();
    if (now < this.#reported + this.#reportMs) return;
    this.#reported = now;
    // A client that hears nothing of a server that hangs can give the call up.
    if (this.isAsking || !this.#isResponsive) return;
    const seconds = Math.round((now - this.#started) / 1_000);
    const report = ownProgress("waiting", `${this.#id} has been running for ${seconds} s`);
    // Whatever the listener throws must not keep other calls from ending.
    queueMicrotask(() => this.#listener?.(report));
  }
}

/** Aborts a call's signal with TIMED_OUT when its deadline passes; progress extends it. */
export function deadlineGate<C extends Call, O>(deadlines: Deadlines): Gate<C, O> {
  return (next) => async (call) => {
    const { signal } = call;
    if (signal.aborted) throw cancelled(call, signal.reason);
    const abort = new AbortController();
    // A callee that ignores its signal cannot hold us.
    const over = Promise.withResolvers<O>();
    const end = (error: PmlError) => {
      over.reject(error);
      abort.abort(error);
    };
    using _ = onAbort(signal, () => end(cancelled(call, signal.reason)));
    const running = deadlines.begin(call, end);
    const onProgress: ProgressListener = (progress) => {
      if (running.notes(progress)) call.onProgress?.(progress);
    };
    try {
      next({ ...call, signal: abort.signal, onProgress, ...running.held(call) })
        .then(over.resolve, over.reject);
      return await over.promise;
    } finally {
      // What is still asked is asked in vain.
      if (running.isAsking) abort.abort(inVain());
      deadlines.end(running);
    }
  };
}

/** Makes the error of a call that was cancelled. */
export function cancelled({ id }: Pick<Call, "id">, reason: unknown): PmlError {
  if (reason instanceof PmlError) return reason;
  return new PmlError("CANCELLED", `Cannot finish "${id}": the client cancelled it`);
}

/** Makes the error of a question whose call is over. */
export function inVain(): PmlError {
  return new PmlError("CANCELLED", "Cannot answer: the call is over");
}

function timedOut(id: ToolId, ms: number): PmlError {
  return new PmlError("TIMED_OUT", `Cannot finish "${id}": it took longer than ${ms} ms`, {
    hint: "Ask for less at once, or raise limits.call_ms in config.yaml",
  });
}
