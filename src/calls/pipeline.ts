/**
 * The one way of every call: capacity, resolve, start record, checks, server, fit, end record.
 *
 * @module
 */

import type { Records } from "../audit/records.ts";
import type { Redactor } from "../audit/redact.ts";
import type { Call, CallTool, Outcome } from "../protocol/call.ts";
import { asPmlError, type PmlError } from "../core/errors.ts";
import type { Maybe } from "../core/maybe.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { keepsChanging, MAX_PASSES } from "./restart.ts";
import type { Capacity } from "./capacity.ts";
import type { Check, CheckResult } from "./checks/check.ts";
import { withoutCompletionQuestion } from "./checks/completion.ts";
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

/** Finds the server of a call and the decision of the rules. */
export interface CallResolver {
  /** Sets the server, the fixed arguments and the decision of a call. */
  resolve(call: CallContext): Promise<void> | undefined;
}

/** A call that its server got. */
export interface CallUse {
  readonly call: CallContext;
  /** The definition of its tool; undefined if it is not for a tool. */
  readonly definition: ToolDefinition | undefined;
  /** When the server got it and when its answer came, in `performance.now()`. */
  readonly since: number;
  readonly ended: number;
  /** Undefined if it failed. */
  readonly outcome: Outcome | undefined;
}

/** Takes notes of calls. */
export interface UseNotes {
  note(use: CallUse): void;
}

/** Runs checked calls. */
export interface CallRunner {
  /** Passes a call to its server, or a request of a server to the client. */
  run(call: CallContext): Promise<Outcome>;
  /** Signs the user in after an error that asks for it. Returns whether the call can be repeated. */
  signIn(call: CallContext, error: unknown): Promise<boolean>;
  /** Returns a result as clients can use it. Throws OUTPUT_INVALID for one that is not valid. */
  fit(call: CallContext, outcome: Outcome): Outcome;
  /** Notes a call that its server got, after the answer. */
  noteUse?(use: CallUse): void;
}

/** The collaborators of the pipeline. */
export interface PipelineOptions {
  readonly capacity: Capacity;
  readonly resolver: CallResolver;
  readonly records: Records;
  /** The checks, in their order, which is part of the security model. */
  readonly checks: readonly Check[];
  readonly deadlines: Deadlines;
  readonly runner: CallRunner;
  readonly services: CallServices;
  readonly redactor: Pick<Redactor, "cleaned">;
  /** Returns whether a call may run although its start could not be recorded. */
  readonly mayRunUnrecorded: (call: CallContext) => Promise<boolean>;
  /** Returns the error that the caller gets. */
  readonly errorFor: (call: Call, error: unknown) => unknown;
}

/** Runs calls. Nothing else passes calls to servers. */
export class CallPipeline {
  readonly #options: PipelineOptions;

  /** Takes the collaborators. */
  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  /**
   * Runs a call. Few functions of its way are `async`: each that waits costs more than 500 bytes for
   * each call.
   */
  readonly call: CallTool = async (request) => {
    const { capacity, records, services } = this.#options;
    const turn = capacity.enter(request);
    if (turn !== undefined) await turn;
    const call = new CallContext(request, services);
    let recordError: PmlError | undefined;
    try {
      const resolving = this.#options.resolver.resolve(call);
      if (resolving !== undefined) await resolving;
      recordError = await records.start(startOf(call));
      // guard: audit-first
      if (recordError !== undefined && !await this.#options.mayRunUnrecorded(call)) {
        throw recordError;
      }
      call.isUnrecorded = recordError !== undefined;
      call.startedAt = performance.now();
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
          return this.#end(call, this.#fit(call, outcome), recordError);
        }
        call.answer = call.approval?.() ?? call.answer;
        call.approval = undefined;
      }
      throw keepsChanging(call);
    } catch (error) {
      throw this.#failed(call, error, recordError);
    } finally {
      call.end();
      capacity.leave(request);
    }
  };

  /** Resolves a request without running it. Throws if a rule denies it. */
  async preflight(request: Call): Promise<CallContext> {
    const call = new CallContext(request, this.#options.services, request.cancellation);
    try {
      await this.#options.resolver.resolve(call);
      notDenied(call);
      return call;
    } catch (error) {
      throw this.#options.errorFor(request, error);
    }
  }

  /**
   * Passes a call that passed the checks to its server. Returns undefined if the checks have to begin
   * again: the configuration changed, or the user signed in.
   */
  async #run(call: CallContext): Promise<Outcome | undefined> {
    const { deadlines, runner } = this.#options;
    try {
      // guard: run-version
      call.assertCurrent();
      call.cancellation.throwIfCancelled();
      call.running = deadlines.begin(call);
      const outcome = await call.unlessCancelled(() => runner.run(call));
      this.#noteAnswer(call, outcome);
      return outcome;
    } catch (error) {
      if (call.hasChanged) return undefined;
      this.#noteAnswer(call, undefined);
      const isOver = call.cancellation.isCancelled || !await runner.signIn(call, error);
      if (isOver) throw error;
      return undefined;
    } finally {
      if (call.running !== undefined) deadlines.end(call.running);
    }
  }

  async #restart(call: CallContext): Promise<void> {
    // A call without a record runs as it was decided in its first pass, or not at all.
    if (call.isUnrecorded) throw keepsChanging(call);
    await this.#options.resolver.resolve(call);
  }

  /** Runs the checks from one on, without a promise as long as they need none. */
  #check(call: CallContext, from: number): Maybe<CheckResult> {
    const { checks } = this.#options;
    for (let index = from; index < checks.length; index++) {
      const result = checks[index]?.(call);
      if (result instanceof Promise) return this.#checkLater(call, index + 1, result);
      if (result !== undefined) return result;
    }
    return undefined;
  }

  /** Waits for the result of a check. A closure in the loop above would cost memory each time. */
  async #checkLater(
    call: CallContext,
    from: number,
    checking: Promise<CheckResult>,
  ): Promise<CheckResult> {
    // An installation may take minutes, and goes on for others that wait for it.
    const result = await call.unlessCancelled(() => checking);
    return result === undefined ? await this.#check(call, from) : result;
  }

  #fit(call: CallContext, outcome: Outcome): Outcome {
    return call.method === undefined ? this.#options.runner.fit(call, outcome) : outcome;
  }

  #end(call: CallContext, outcome: Outcome, recordError: PmlError | undefined): Outcome {
    this.#record(call, outcome);
    return recordError === undefined ? outcome : withUnrecordedNote(outcome, recordError);
  }

  #failed(call: CallContext, error: unknown, recordError: PmlError | undefined): unknown {
    const { redactor, errorFor } = this.#options;
    if (call.startedAt > 0) this.#record(call, undefined, error);
    // The error of a server may repeat its secrets.
    const cleaned = call.running === undefined ? error : redactor.cleaned(error);
    const isMarked = call.isUnrecorded && recordError !== undefined;
    return errorFor(call, isMarked ? withRecordError(asPmlError(cleaned), recordError) : cleaned);
  }

  /** Notes that the server of a call answered, or that it failed. */
  #noteAnswer(call: CallContext, outcome: Outcome | undefined): void {
    call.answeredAt = performance.now();
    call.outcome = outcome;
  }

  /** Writes the end of a call, after its answer: with its outcome, or the error if it has none. */
  #record(call: CallContext, outcome: Outcome | undefined, error?: unknown): void {
    const { records } = this.#options;
    const isOfServer = outcome !== undefined && call.outcome === outcome;
    const ms = (isOfServer ? call.answeredAt : performance.now()) - call.startedAt;
    const record = () =>
      outcome === undefined ? endOfError(call, ms, error) : endOfOutcome(call, ms, outcome);
    if (call.isUnrecorded) records.note(record(), true);
    records.later(() => {
      if (!call.isUnrecorded) records.end(record());
      this.#reportUse(call);
    });
  }

  #reportUse(call: CallContext): void {
    const { sentAt: since, answeredAt: ended, loadedDefinition: definition, outcome } = call;
    if (since > 0) {
      this.#options.runner.noteUse?.({ call, definition, since, ended, outcome });
    }
  }
}
