/**
 * Runs every call, in these steps: capacity, resolve, start record, checks, server, result
 * check, end record.
 *
 * @module
 */

import type { Records } from "../audit/records.ts";
import type { Redactor } from "../audit/redact.ts";
import type { Call, CallTool, Outcome } from "../protocol/call.ts";
import { asPmlError, type PmlError } from "../core/errors.ts";
import type { Maybe } from "../core/maybe.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { configChangesError, MAX_PASSES } from "./restart.ts";
import { RunningCalls } from "./running_calls.ts";
import type { Capacity } from "./capacity.ts";
import type { Check, CheckResult } from "./checks/check.ts";
import { withoutCompletionQuestion } from "./checks/unasked.ts";
import { notDenied } from "./checks/rules.ts";
import { CallContext, type CallServices } from "./context.ts";
import type { Deadlines } from "./deadline.ts";
import {
  endOfError,
  endOfOutcome,
  startOf,
  withRecordError,
  withUnrecordedNote,
} from "./record.ts";
import { turnTime } from "../io/waiting.ts";

/** Finds the server of a call and the decision of the rules. */
export interface CallResolver {
  /** Sets the server, the fixed arguments and the decision of a call. */
  resolve(call: CallContext): Promise<void> | undefined;
}

/** A call that PML sent to its server. */
export interface CallUse {
  readonly call: CallContext;
  /** The definition of the tool; undefined if the call is not for a tool. */
  readonly definition: ToolDefinition | undefined;
  /** When the server got the call, by `performance.now()`. */
  readonly since: number;
  /** When the server answered or failed, by `performance.now()`. */
  readonly ended: number;
  /** Undefined if the call failed. */
  readonly outcome: Outcome | undefined;
}

/** Records facts about calls that PML sent to servers. */
export interface UseNotes {
  note(use: CallUse): void;
}

/** Runs checked calls. */
export interface CallRunner {
  /** Passes a call to its server, or a request of a server to the client. */
  run(call: CallContext): Promise<Outcome>;
  /**
   * Signs the user in if the error requires it. Returns whether the call can be repeated.
   */
  signIn(call: CallContext, error: unknown): Promise<boolean>;
  /** Returns a result that clients can use. Throws OUTPUT_INVALID if the result is not valid. */
  checkResult(call: CallContext, outcome: Outcome): Outcome;
  /** Records a call that PML sent to its server. Runs after the answer. */
  noteUse?(use: CallUse): void;
}

/** The collaborators of the pipeline. `CallPath` implements it. */
export interface PipelineHost extends CallServices {
  readonly capacity: Capacity;
  readonly resolver: CallResolver;
  readonly records: Records;
  readonly deadlines: Deadlines;
  readonly runner: CallRunner;
  readonly redactor: Pick<Redactor, "clean" | "cleanError">;
  /** Returns whether a call may run although its start could not be recorded. */
  mayRunUnrecorded(call: CallContext): Promise<boolean>;
  /** Returns the error that the caller gets. */
  errorFor(call: Call, error: unknown): unknown;
}

/** Runs calls. All calls to servers go through this class. */
export class CallPipeline {
  /** The calls that run now. */
  readonly running: RunningCalls = new RunningCalls();
  readonly #host: PipelineHost;
  readonly #checks: readonly Check[];

  /** Takes the checks in their order, which is part of the security model. */
  constructor(host: PipelineHost, checks: readonly Check[]) {
    this.#host = host;
    this.#checks = checks;
  }

  /**
   * Runs a call. Few functions below are `async`, because each asynchronous function that waits
   * costs more than 500 bytes per call.
   */
  readonly call: CallTool = async (request) => {
    const { capacity, records } = this.#host;
    const turn = capacity.enter(request);
    if (turn !== undefined) await turn;
    const call = new CallContext(request, this.#host);
    this.running.add(call);
    let recordError: PmlError | undefined;
    try {
      const resolving = this.#host.resolver.resolve(call);
      if (resolving !== undefined) await resolving;
      recordError = await records.start(startOf(call));
      // guard: audit-first
      if (recordError !== undefined && !await this.#host.mayRunUnrecorded(call)) {
        throw recordError;
      }
      call.isUnrecorded = recordError !== undefined;
      call.startedAt = turnTime();
      for (let pass = 0; pass < MAX_PASSES; pass++) {
        if (pass > 0) await this.#restart(call);
        const checking = this.#check(call, 0);
        const result = checking instanceof Promise ? await checking : checking;
        if (result === "restart") continue;
        if (result !== undefined) {
          return this.#end(call, withoutCompletionQuestion(call, result), recordError);
        }
        const outcome = await this.#run(call);
        if (outcome !== undefined) {
          return this.#end(call, this.#checkResult(call, outcome), recordError);
        }
        call.answer = call.approval?.() ?? call.answer;
        call.approval = undefined;
      }
      throw configChangesError(call);
    } catch (error) {
      throw this.#toCallerError(call, error, recordError);
    } finally {
      call.end();
      this.running.remove(call);
      capacity.leave(request);
    }
  };

  /** Resolves a request without running it. Throws if a rule denies it. */
  async preflight(request: Call): Promise<CallContext> {
    const call = new CallContext(request, this.#host, request.cancellation);
    try {
      await this.#host.resolver.resolve(call);
      notDenied(call);
      return call;
    } catch (error) {
      throw this.#host.errorFor(request, error);
    }
  }

  /**
   * Sends a checked call to its server. Returns undefined if the checks must run again, because the
   * configuration changed or the user signed in.
   */
  #run(call: CallContext): Promise<Outcome | undefined> {
    const { deadlines, runner } = this.#host;
    try {
      // guard: run-version
      call.assertCurrent();
      call.cancellation.throwIfCancelled();
      call.deadline = deadlines.begin(call);
      return call.unlessCancelled(() => runner.run(call)).then(
        (outcome) => this.#takeAnswer(call, outcome),
        (error) => this.#handleFailure(call, error),
      );
    } catch (error) {
      return this.#handleFailure(call, error);
    }
  }

  #takeAnswer(call: CallContext, outcome: Outcome): Outcome {
    this.#noteAnswer(call, outcome);
    this.#endDeadline(call);
    return outcome;
  }

  async #handleFailure(call: CallContext, error: unknown): Promise<undefined> {
    try {
      if (call.hasChanged) return;
      this.#noteAnswer(call, undefined);
      const isFinal = call.cancellation.isCancelled ||
        !await this.#host.runner.signIn(call, error);
      if (isFinal) throw error;
    } finally {
      this.#endDeadline(call);
    }
  }

  #endDeadline({ deadline }: CallContext): void {
    if (deadline !== undefined) this.#host.deadlines.end(deadline);
  }

  async #restart(call: CallContext): Promise<void> {
    // A call without a start record may use only the decision of its first pass.
    if (call.isUnrecorded) throw configChangesError(call);
    await this.#host.resolver.resolve(call);
  }

  /** Runs the checks from an index on. Returns a promise only if a check does. */
  #check(call: CallContext, from: number): Maybe<CheckResult> {
    const checks = this.#checks;
    for (let index = from; index < checks.length; index++) {
      const result = checks[index]?.(call);
      if (result instanceof Promise) return this.#checkLater(call, index + 1, result);
      if (result !== undefined) return result;
    }
    return undefined;
  }

  /**
   * Waits for the result of a check, and runs the further checks. A closure in the loop of `#check()`
   * would cost memory for each call.
   */
  async #checkLater(
    call: CallContext,
    from: number,
    checking: Promise<CheckResult>,
  ): Promise<CheckResult> {
    // A check may install a package for minutes. The installation goes on for other calls.
    const result = await call.unlessCancelled(() => checking);
    return result === undefined ? await this.#check(call, from) : result;
  }

  #checkResult(call: CallContext, outcome: Outcome): Outcome {
    return call.method === undefined ? this.#host.runner.checkResult(call, outcome) : outcome;
  }

  /** Records the end of a call. Returns the outcome that the caller gets. */
  #end(call: CallContext, outcome: Outcome, recordError: PmlError | undefined): Outcome {
    this.#recordEnd(call, outcome);
    return recordError === undefined ? outcome : withUnrecordedNote(outcome, recordError);
  }

  /** Records the end of a failed call. Returns the error that the caller gets. */
  #toCallerError(call: CallContext, error: unknown, recordError: PmlError | undefined): unknown {
    const host = this.#host;
    if (call.startedAt > 0) this.#recordEnd(call, undefined, error);
    // The error of a server may repeat its secrets.
    const cleaned = call.deadline === undefined ? error : host.redactor.cleanError(error);
    const isMarked = call.isUnrecorded && recordError !== undefined;
    return host.errorFor(
      call,
      isMarked ? withRecordError(asPmlError(cleaned), recordError) : cleaned,
    );
  }

  /** Records when the server answered, and its outcome; undefined if the server failed. */
  #noteAnswer(call: CallContext, outcome: Outcome | undefined): void {
    call.answeredAt = turnTime();
    call.outcome = outcome;
  }

  /**
   * Writes the end record after the answer: with the outcome, or with the error if there is none.
   */
  #recordEnd(call: CallContext, outcome: Outcome | undefined, error?: unknown): void {
    const { records } = this.#host;
    const isOfServer = outcome !== undefined && call.outcome === outcome;
    const ms = (isOfServer ? call.answeredAt : turnTime()) - call.startedAt;
    const record = () =>
      outcome === undefined ? endOfError(call, ms, error) : endOfOutcome(call, ms, outcome);
    if (call.isUnrecorded) records.note(record(), true, call);
    records.runAfterAnswer(() => {
      if (!call.isUnrecorded) records.end(record(), call);
      this.#reportUse(call);
    });
  }

  #reportUse(call: CallContext): void {
    const { sentAt: since, answeredAt: ended, loadedDefinition: definition, outcome } = call;
    if (since > 0) {
      this.#host.runner.noteUse?.({ call, definition, since, ended, outcome });
    }
  }
}
