/**
 * The deadlines of calls. A call ends at its deadline even if its server still works.
 *
 * @module
 */

import type { Call, ProgressReport } from "../protocol/call.ts";
import { durationText } from "../core/amounts.ts";
import { PmlError } from "../core/errors.ts";
import { ownProgress, showsWork } from "../protocol/progress.ts";
import type { ToolId } from "../core/tool_id.ts";
import { turnTime, yieldTurn } from "../io/waiting.ts";

/** How long a call may take, in milliseconds. */
export interface DeadlineLimits {
  /** The limit without progress. Each progress message resets it. */
  readonly callMs: number;
  /** The limit for the whole call, even with progress. */
  readonly capMs: number;
  /**
   * The total time for which PML stopped reading from servers, because the client read no answers.
   */
  readonly pausedMs?: number;
}

/** How often PML reports that a call without progress still runs, in milliseconds. */
const REPORT_MS = 5_000;

/** The deadlines of all calls. They share one timer. */
export class Deadlines implements Disposable {
  readonly #limits: (id: ToolId) => DeadlineLimits;
  readonly #reportMs: number;
  readonly #deadlines = new Set<CallDeadline>();
  /** Calls that are past their deadline and not cancelled yet. */
  readonly #expired = new Set<CallDeadline>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** When the timer fires; `Infinity` while no timer is set. */
  #timerDue = Infinity;

  /** Takes a function that returns the current limits of a call, and how often PML reports. */
  constructor(limits: (id: ToolId) => DeadlineLimits, reportMs: number = REPORT_MS) {
    this.#limits = limits;
    this.#reportMs = reportMs;
  }

  /**
   * Starts the time of a call, which is cancelled with TIMED_OUT at its deadline. While the server
   * sends nothing, PML sends its own progress to the client, which does not extend the deadline.
   */
  begin(call: TimedCall): CallDeadline {
    const deadline = new CallDeadline(call, this.#limits, this.#reportMs);
    this.#deadlines.add(deadline);
    this.#setTimer(deadline.firstCheckAt);
    return deadline;
  }

  /** Removes the deadline of a call that has ended. Keeps the timer, because other calls need it. */
  end(deadline: CallDeadline): void {
    this.#deadlines.delete(deadline);
    if (this.#expired.size > 0) this.#expired.delete(deadline);
    deadline.release();
  }

  /** Ends the timer. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #setTimer(due: number): void {
    if (this.#timerDue <= due) return;
    clearTimeout(this.#timer);
    this.#timerDue = due;
    this.#timer = setTimeout(() => this.#checkAll(), Math.max(due - performance.now(), 0));
  }

  #checkAll(): void {
    this.#timerDue = Infinity;
    const isExpiring = this.#expired.size > 0;
    // One time for all, so that calls expire in the order of their deadlines.
    const now = performance.now();
    for (const deadline of this.#deadlines) {
      const due = deadline.check(now);
      if (due !== undefined) this.#setTimer(due);
      else if (this.#deadlines.delete(deadline)) this.#expired.add(deadline);
    }
    if (!isExpiring && this.#expired.size > 0) void this.#expire();
  }

  /**
   * Cancels the expired calls, each in its own turn of the event loop. If a cancellation ends a
   * server, the other calls of the server then fail with the error of the server and not with
   * TIMED_OUT.
   */
  async #expire(): Promise<void> {
    for (const deadline of this.#expired) {
      this.#expired.delete(deadline);
      deadline.expire();
      await yieldTurn();
    }
  }
}

/** A call with a deadline. */
export interface TimedCall {
  readonly id: ToolId;
  /** Whether the client wants progress. */
  readonly wantsReports: boolean;
  /** Sends progress to the client. */
  report(progress: ProgressReport): void;
  /** Cancels the call. */
  cancel(error: PmlError): void;
}

/** The deadline of one call, and the times that determine it. */
export class CallDeadline {
  readonly #limits: (id: ToolId) => DeadlineLimits;
  readonly #reportMs: number;
  #call: TimedCall | undefined;
  #startedAt = turnTime();
  #lastSignAt = this.#startedAt;
  /** When the client got the last report. */
  #reportedAt = this.#startedAt;
  /** Whether the server still responds, by PML's own reports. */
  #isResponsive = true;
  /** The `pausedMs` that `#startedAt` already includes. */
  #countedPauseMs: number;
  /** When the first open question began. */
  #askedAt = 0;
  #openQuestions = 0;

  /** When the deadline must be checked first. */
  readonly firstCheckAt: number;

  /** Starts the time. */
  constructor(call: TimedCall, limits: (id: ToolId) => DeadlineLimits, reportMs: number) {
    this.#call = call;
    this.#limits = limits;
    this.#reportMs = reportMs;
    const { callMs, capMs, pausedMs = 0 } = limits(call.id);
    this.#countedPauseMs = pausedMs;
    const ms = Math.min(callMs, capMs, call.wantsReports ? reportMs : Infinity);
    this.firstCheckAt = this.#startedAt + ms;
  }

  /** Whether a question to the user is open. Its time does not count. */
  get isAsking(): boolean {
    return this.#openQuestions > 0;
  }

  /**
   * Handles progress of the server, which resets `callMs`. Returns whether to send the report to
   * the client.
   */
  handleProgress(progress: ProgressReport): boolean {
    const { ownReport } = progress;
    this.#reportedAt = performance.now();
    if (showsWork(progress)) this.#lastSignAt = this.#reportedAt;
    if (ownReport !== "waiting") this.#isResponsive = ownReport !== "unresponsive";
    return ownReport !== "responsive";
  }

  /** Asks the user. The time until the answer does not count. */
  async whileAsking<T>(ask: () => Promise<T>): Promise<T> {
    if (this.#openQuestions++ === 0) this.#askedAt = performance.now();
    try {
      return await ask();
    } finally {
      const waited = performance.now() - this.#askedAt;
      if (--this.#openQuestions === 0) {
        this.#startedAt += waited;
        this.#lastSignAt += waited;
      }
    }
  }

  /** Returns when the deadline must be checked again; undefined if the time is over at `now`. */
  check(now: number): number | undefined {
    const call = this.#call;
    if (call === undefined) return undefined;
    const { pausedMs = 0 } = this.#limits(call.id);
    // The time of a pause does not count. PML may not have read the server's answer since the
    // pause.
    if (pausedMs > this.#countedPauseMs) {
      this.#startedAt += pausedMs - this.#countedPauseMs;
      this.#lastSignAt = now;
    }
    this.#countedPauseMs = pausedMs;
    if (this.#dueAt(call, now) > now) {
      this.#report(call, now);
      return this.#nextCheckAt(call, now);
    }
    return undefined;
  }

  /** Cancels the call. */
  expire(): void {
    const call = this.#call;
    if (call === undefined) return;
    const { callMs, capMs } = this.#limits(call.id);
    const ms = this.#lastSignAt + callMs < this.#startedAt + capMs ? callMs : capMs;
    call.cancel(timedOut(call.id, ms));
  }

  /** Drops the reference to the call: V8 can keep deleted elements of a Set in memory for long. */
  release(): void {
    this.#call = undefined;
  }

  #nextCheckAt(call: TimedCall, now: number): number {
    const due = this.#dueAt(call, now);
    return call.wantsReports ? Math.min(due, this.#reportedAt + this.#reportMs) : due;
  }

  /** Returns the current deadline, which progress and questions move. */
  #dueAt({ id }: TimedCall, now: number): number {
    const { callMs, capMs } = this.#limits(id);
    return this.isAsking
      ? now + callMs
      : Math.min(this.#lastSignAt + callMs, this.#startedAt + capMs);
  }

  /** Reports that the call runs, if the client got no progress for `reportMs`. */
  #report(call: TimedCall, now: number): void {
    if (!call.wantsReports || now < this.#reportedAt + this.#reportMs) return;
    this.#reportedAt = now;
    // PML does not report for a server that hangs, so that the client notices it and can cancel.
    if (this.isAsking || !this.#isResponsive) return;
    const seconds = Math.round((now - this.#startedAt) / 1_000);
    const report = ownProgress("waiting", `${call.id} has been running for ${seconds} s`);
    // In a microtask, because an error of the listener must not stop the loop over all calls.
    queueMicrotask(() => {
      if (this.#call !== undefined) call.report(report);
    });
  }
}

/** Returns the error of a call that was cancelled. */
export function cancelledError({ id }: Pick<Call, "id">, reason: unknown): PmlError {
  if (reason instanceof PmlError) return reason;
  const text = `Cannot finish "${id}": the client cancelled it`;
  return new PmlError("CANCELLED", text, { cause: reason });
}

/** Returns the error of a question whose call is over. */
export function callOverError(): PmlError {
  return new PmlError("CANCELLED", "Cannot answer: the call is over");
}

function timedOut(id: ToolId, ms: number): PmlError {
  return new PmlError("TIMED_OUT", `Cannot finish "${id}": no answer within ${durationText(ms)}`, {
    hint: "Ask for less at once, or raise the limit: `timeout` of the server if it has one, " +
      "else limits.call_ms in config.yaml",
  });
}
