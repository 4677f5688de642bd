/**
 * The deadlines of calls: a call ends at its deadline, whatever its server does.
 *
 * @module
 */

import type { Call, ProgressReport } from "../protocol/call.ts";
import { durationText } from "../core/amounts.ts";
import { PmlError } from "../core/errors.ts";
import { ownProgress, showsWork } from "../protocol/progress.ts";
import type { ToolId } from "../core/tool_id.ts";
import { yieldTurn } from "../io/waiting.ts";

/** How long a call may take, in milliseconds. */
export interface Deadline {
  /** The limit without progress. Each progress message starts it again. */
  readonly callMs: number;
  /** The limit in total, with or without progress. */
  readonly capMs: number;
  /** The total time in which PML read from no server, because the client did not read its answers. */
  readonly pausedMs?: number;
}

/** How often PML reports that a call without progress still runs, in milliseconds. */
const REPORT_MS = 5_000;

/** The deadlines of calls. One timer looks at all of them. */
export class Deadlines implements Disposable {
  readonly #limits: (id: ToolId) => Deadline;
  readonly #reportMs: number;
  readonly #running = new Set<RunningCall>();
  /** Calls whose time is over and that are not cancelled yet. */
  readonly #expired = new Set<RunningCall>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** When the timer goes off; never if it is not set. */
  #at = Infinity;

  /** Takes a function that returns the present limits of a call, and how often PML reports. */
  constructor(limits: (id: ToolId) => Deadline, reportMs: number = REPORT_MS) {
    this.#limits = limits;
    this.#reportMs = reportMs;
  }

  /**
   * Begins the time of a call, which is cancelled with TIMED_OUT when it is over. While the server
   * sends nothing, the client of the call gets reports of PML, which do not extend the deadline.
   */
  begin(call: TimedCall): RunningCall {
    const running = new RunningCall(call, this.#limits, this.#reportMs);
    this.#running.add(running);
    this.#wake(running.firstLook);
    return running;
  }

  /** Ends the time of a call. Does not clear the timer, because it serves all calls. */
  end(running: RunningCall): void {
    this.#running.delete(running);
    if (this.#expired.size > 0) this.#expired.delete(running);
    running.release();
  }

  /** Ends the timer. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #wake(due: number): void {
    if (this.#at <= due) return;
    clearTimeout(this.#timer);
    this.#at = due;
    this.#timer = setTimeout(() => this.#look(), Math.max(due - performance.now(), 0));
  }

  #look(): void {
    this.#at = Infinity;
    const isExpiring = this.#expired.size > 0;
    for (const running of this.#running) {
      const due = running.look();
      if (due !== undefined) this.#wake(due);
      else if (this.#running.delete(running)) this.#expired.add(running);
    }
    if (!isExpiring && this.#expired.size > 0) void this.#expire();
  }

  /**
   * Cancels the expired calls, each in its own turn of the event loop: if a cancelled call ends its
   * server, the other calls of this server end before they expire.
   */
  async #expire(): Promise<void> {
    for (const running of this.#expired) {
      this.#expired.delete(running);
      running.expire();
      await yieldTurn();
    }
  }
}

/** A call with a deadline. */
export interface TimedCall {
  readonly id: ToolId;
  /** Whether the client gets reports of PML. */
  readonly wantsReports: boolean;
  /** Receives them. */
  report(progress: ProgressReport): void;
  /** Cancels the call. */
  cancel(error: PmlError): void;
}

/** A call that runs, and the times from which its deadline is calculated. */
export class RunningCall {
  readonly #limits: (id: ToolId) => Deadline;
  readonly #reportMs: number;
  #call: TimedCall | undefined;
  #started = performance.now();
  #heardAt = this.#started;
  /** When the client got the last report. */
  #reported = this.#started;
  #isResponsive = true;
  /** The `pausedMs` that `#started` already includes. */
  #countedPauseMs: number;
  /** When the first open question began. */
  #askedAt = 0;
  #openQuestions = 0;

  /** When the call is to be looked at first. */
  readonly firstLook: number;

  /** Begins the time. */
  constructor(call: TimedCall, limits: (id: ToolId) => Deadline, reportMs: number) {
    this.#call = call;
    this.#limits = limits;
    this.#reportMs = reportMs;
    const { callMs, capMs, pausedMs = 0 } = limits(call.id);
    this.#countedPauseMs = pausedMs;
    const ms = Math.min(callMs, capMs, call.wantsReports ? reportMs : Infinity);
    this.firstLook = this.#started + ms;
  }

  /** Whether a user is being asked, who may take any time. */
  get isAsking(): boolean {
    return this.#openQuestions > 0;
  }

  /**
   * Handles a progress report: progress starts `callMs` again. Returns whether the client gets the
   * report.
   */
  handleProgress(progress: ProgressReport): boolean {
    const { own } = progress;
    this.#reported = performance.now();
    if (showsWork(progress)) this.#heardAt = this.#reported;
    if (own !== "waiting") this.#isResponsive = own !== "unresponsive";
    return own !== "responsive";
  }

  /** Asks the user. The time until the answer does not count. */
  async whileAsking<T>(ask: () => Promise<T>): Promise<T> {
    if (this.#openQuestions++ === 0) this.#askedAt = performance.now();
    try {
      return await ask();
    } finally {
      const waited = performance.now() - this.#askedAt;
      if (--this.#openQuestions === 0) {
        this.#started += waited;
        this.#heardAt += waited;
      }
    }
  }

  /** Returns when the call is to be looked at again; undefined if its time is over. */
  look(): number | undefined {
    const call = this.#call;
    if (call === undefined) return undefined;
    const { pausedMs = 0 } = this.#limits(call.id);
    // A pause does not count, and the answer of the server may not have been read since.
    if (pausedMs > this.#countedPauseMs) {
      this.#started += pausedMs - this.#countedPauseMs;
      this.#heardAt = performance.now();
    }
    this.#countedPauseMs = pausedMs;
    if (this.#dueOf(call) > performance.now()) {
      this.#report(call);
      return this.#nextOf(call);
    }
    return undefined;
  }

  /** Cancels the call. */
  expire(): void {
    const call = this.#call;
    if (call === undefined) return;
    const { callMs, capMs } = this.#limits(call.id);
    const ms = this.#heardAt + callMs < this.#started + capMs ? callMs : capMs;
    call.cancel(timedOut(call.id, ms));
  }

  /** Drops the reference to the call: V8 can keep deleted elements of a Set in memory for long. */
  release(): void {
    this.#call = undefined;
  }

  #nextOf(call: TimedCall): number {
    const due = this.#dueOf(call);
    return call.wantsReports ? Math.min(due, this.#reported + this.#reportMs) : due;
  }

  /** Returns when the time is over, as far as is known now. */
  #dueOf({ id }: TimedCall): number {
    const { callMs, capMs } = this.#limits(id);
    return this.isAsking
      ? performance.now() + callMs
      : Math.min(this.#heardAt + callMs, this.#started + capMs);
  }

  /** Reports that the call runs, if the client got no report for some time. */
  #report(call: TimedCall): void {
    const now = performance.now();
    if (!call.wantsReports || now < this.#reported + this.#reportMs) return;
    this.#reported = now;
    // While a server hangs, PML sends no reports, so that the client can cancel the silent call.
    if (this.isAsking || !this.#isResponsive) return;
    const seconds = Math.round((now - this.#started) / 1_000);
    const report = ownProgress("waiting", `${call.id} has been running for ${seconds} s`);
    // In a microtask, because an error of the listener must not stop this loop over all calls.
    queueMicrotask(() => {
      if (this.#call !== undefined) call.report(report);
    });
  }
}

/** Returns the error of a call that was cancelled. */
export function cancelled({ id }: Pick<Call, "id">, reason: unknown): PmlError {
  if (reason instanceof PmlError) return reason;
  const text = `Cannot finish "${id}": the client cancelled it`;
  return new PmlError("CANCELLED", text, { cause: reason });
}

/** Returns the error of a question whose call is over. */
export function finished(): PmlError {
  return new PmlError("CANCELLED", "Cannot answer: the call is over");
}

function timedOut(id: ToolId, ms: number): PmlError {
  return new PmlError("TIMED_OUT", `Cannot finish "${id}": no answer within ${durationText(ms)}`, {
    hint: "Ask for less at once, or raise the limit: `timeout` of the server if it has one, " +
      "else limits.call_ms in config.yaml",
  });
}
