/**
 * Runs a checked plan. Each task starts when the tasks that it needs are done. A failed task stops
 * only the tasks that need it.
 *
 * @module
 */

import type { ApprovalAnswer, CallClient, ToolResult } from "../protocol/call.ts";
import { asPmlError, mayHaveRun, PmlError } from "../core/errors.ts";
import { type JsonObject, quoted, withoutUndefined } from "../core/json.ts";
import { outputOf } from "../protocol/output.ts";
import { keepOwnReports } from "../protocol/progress.ts";
import { badRequestError } from "./_refs.ts";
import {
  type Plan,
  type PlanStep,
  type PlanTask,
  type ReferenceValues,
  shouldRun,
  taskCalls,
} from "./plan.ts";
import type { Results, StoredRun } from "./results.ts";
import { type Run, tooManyTasksError } from "./run.ts";
import type { ToolNames } from "./tool_names.ts";

/** A checked plan, and the collaborators of its run. */
export interface PlanRunParts {
  readonly plan: Plan;
  readonly run: Run;
  /** The kept outputs. They include the outputs of earlier runs of the plan. */
  readonly storedRun: StoredRun;
  readonly results: Results;
  readonly values: ReferenceValues;
  readonly tools: ToolNames;
  /** The answers of the user to the approval request before the run, by `outputKey`. */
  readonly answers: ReadonlyMap<string, ApprovalAnswer>;
  /** The maximum number of concurrent calls. */
  readonly concurrency: number;
  /** The client that receives the progress of the plan. */
  readonly client: CallClient;
}

/** The outcome of a task. */
export interface TaskState {
  readonly state: "done" | "failed" | "skipped" | "not run";
  /** The reason why the task was skipped or not run. */
  readonly why?: string;
  readonly ms?: number;
  /** The result of the failed call as JSON, or its error. */
  readonly error?: JsonObject;
  /** The number of calls if the task has `for_each`; `done` counts the successful calls. */
  readonly of?: number;
  readonly done?: number;
  /** The errors of failed calls, by the index of the element. */
  readonly errors?: JsonObject;
  /** Whether an earlier run of the plan completed the task. */
  readonly isEarlier?: boolean;
}

/** The maximum length of the text of a failed call, and the maximum number of errors of a task. */
const TEXT_MAX = 2_000;
const ERRORS_MAX = 10;

/** Returns the key of a call's output: the task and the index of its element. */
export function outputKey({ task, index }: Pick<PlanStep, "task" | "index">): string {
  return index === undefined ? task.id : `${task.id}/${index}`;
}

/** One run of a plan. */
export class PlanRun {
  /** The state of each finished task. */
  readonly states = new Map<string, TaskState>();
  /** The tasks with failed calls that may have run. */
  readonly uncertainTasks = new Set<string>();
  /** The plan that runs. */
  readonly plan: Plan;
  /** The kept outputs of the run. */
  readonly storedRun: StoredRun;
  readonly #parts: PlanRunParts;
  readonly #onProgress: CallClient["onProgress"];
  readonly #waiters: (() => void)[] = [];
  #freeSlots: number;
  /** The number of tasks; a task with `for_each` counts once for each element. */
  #total: number;
  #endedCount = 0;

  /** Creates a run of a plan. Runs nothing yet. */
  constructor(parts: PlanRunParts) {
    this.plan = parts.plan;
    this.storedRun = parts.storedRun;
    this.#parts = parts;
    this.#onProgress = parts.client.onProgress;
    this.#freeSlots = parts.concurrency;
    this.#total = parts.plan.tasks.length;
  }

  /** Runs all tasks that are not done. Resolves when no task can run. */
  async runAll(): Promise<void> {
    const ends = new Map<string, Promise<void>>();
    for (const task of this.plan.tasks) {
      const neededEnds = task.needs.map((need) => ends.get(need));
      ends.set(task.id, this.#runWhenReady(task, neededEnds));
    }
    await Promise.all(ends.values());
  }

  async #runWhenReady(
    task: PlanTask,
    neededEnds: readonly (Promise<void> | undefined)[],
  ): Promise<void> {
    await Promise.all(neededEnds);
    const since = performance.now();
    const state = await this.#runTask(task).catch((error) => failedState(error));
    const ms = Math.round(performance.now() - since);
    const isTimed = state.state !== "not run" && state.isEarlier !== true;
    this.states.set(task.id, isTimed ? { ...state, ms } : state);
    if (state.of === undefined) this.#reportProgress(task, state);
  }

  async #runTask(task: PlanTask): Promise<TaskState> {
    const { storedRun, run, values } = this.#parts;
    // guard: plan-done
    if (storedRun.outputs.has(task.id)) return { state: "done", isEarlier: true };
    const blockedState = this.#findBlockedState(task);
    if (blockedState !== undefined) return blockedState;
    const { signal } = run.options;
    if (signal.aborted) return { state: "not run", why: reasonOf(signal) };
    if (!shouldRun(task, values)) return { state: "skipped", why: "`when` is false" };
    const steps = await taskCalls(task, values);
    if (steps === undefined || steps.some(({ unknownArguments }) => unknownArguments.size > 0)) {
      throw badRequestError(
        "an output that the task uses was too large to keep (limits.kept_bytes)",
      );
    }
    if (task.forEach !== undefined) return await this.#runEach(task, steps);
    const [step] = steps;
    if (step === undefined) throw badRequestError("the task has no call");
    const failure = await this.#runStep(step);
    return failure === undefined ? { state: "done" } : { state: "failed", error: failure };
  }

  /** Returns the state of a task if it cannot run because a task that it needs is not done. */
  #findBlockedState({ needs }: PlanTask): TaskState | undefined {
    for (const need of needs) {
      const { state } = this.states.get(need) ?? { state: "not run" };
      if (state === "skipped") {
        return { state: "skipped", why: `it needs ${quoted(need)}, which was skipped` };
      }
      if (state !== "done") {
        const was = state === "failed" ? "failed" : "did not run";
        return { state: "not run", why: `it needs ${quoted(need)}, which ${was}` };
      }
    }
    return undefined;
  }

  async #runEach(task: PlanTask, steps: readonly PlanStep[]): Promise<TaskState> {
    const { storedRun, results, values } = this.#parts;
    this.#total += steps.length - 1;
    // guard: plan-elements
    if (this.#total > values.maxCalls) throw tooManyTasksError(this.#total, values.maxCalls);
    const failures = await Promise.all(steps.map(async (step) => {
      const failure = await this.#runStep(step);
      this.#reportProgress(task, { state: failure === undefined ? "done" : "failed" });
      return failure;
    }));
    const errors = failures.flatMap((failure, at) =>
      failure === undefined ? [] : [[String(at), failure] as const]
    );
    const of = steps.length;
    if (errors.length === 0) {
      storedRun.hashes.set(task.id, task.hash);
      results.gather(storedRun, task.id, steps.map(outputKey));
      return { state: "done", of };
    }
    const firstErrors = Object.fromEntries(errors.slice(0, ERRORS_MAX));
    return { state: "failed", of, done: of - errors.length, errors: firstErrors };
  }

  /** Makes one call and keeps its output. Returns the error if the call failed. */
  async #runStep(step: PlanStep): Promise<JsonObject | undefined> {
    const { storedRun, results, run, answers, tools } = this.#parts;
    const key = outputKey(step);
    // guard: plan-step-done
    if (storedRun.outputs.has(key)) return undefined;
    await this.#acquireSlot();
    let hasStarted = false;
    try {
      run.options.signal.throwIfAborted();
      hasStarted = true;
      const result = await run.call({
        id: tools.idOf(step.task.tool),
        arguments: step.arguments,
        answer: answers.get(key),
        onProgress: keepOwnReports(this.#onProgress),
      });
      if (result.isError === true) return resultError(result);
      results.keep(storedRun, key, outputOf(result));
      storedRun.hashes.set(step.task.id, step.task.hash);
      return undefined;
    } catch (error) {
      const pmlError = asPmlError(error);
      if (hasStarted && mayHaveRun(pmlError)) this.uncertainTasks.add(step.task.id);
      return errorFields(pmlError);
    } finally {
      const next = this.#waiters.shift();
      if (next === undefined) this.#freeSlots++;
      else next();
    }
  }

  /** Waits until another call may run. */
  async #acquireSlot(): Promise<void> {
    if (this.#freeSlots > 0) this.#freeSlots--;
    else await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  #reportProgress({ id }: PlanTask, { state }: TaskState): void {
    const [progress, total] = [++this.#endedCount, this.#total];
    this.#onProgress?.({
      progress,
      total,
      message: `${id}: ${state} (${progress} of ${total})`,
    });
  }
}

/** Returns the fields of an error that the answer includes. */
function errorFields({ code, message, hint, detail }: PmlError): JsonObject {
  return withoutUndefined({ code, message, hint, detail }) as JsonObject; // a detail is JSON
}

function failedState(error: unknown): TaskState {
  return { state: "failed", error: errorFields(asPmlError(error)) };
}

function resultError({ content }: ToolResult): JsonObject {
  const text = content.map(({ type, text }) => typeof text === "string" ? text : `(${type})`)
    .join("\n");
  return { message: text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text };
}

function reasonOf({ reason }: AbortSignal): string {
  return reason instanceof PmlError ? reason.message : "the client cancelled it";
}
