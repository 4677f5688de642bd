/**
 * Runs a checked plan. Each task starts when the tasks that it needs are done. A failed task stops
 * only the tasks that need it.
 *
 * @module
 */

import type { ApprovalAnswer, CallClient, ToolResult } from "../protocol/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined, type JsonObject, quoted } from "../core/json.ts";
import { outputOf } from "../protocol/output.ts";
import { ownOnly } from "../protocol/progress.ts";
import { bad } from "./_refs.ts";
import {
  type Plan,
  type PlanStep,
  type PlanTask,
  type ReferenceValues,
  runsNow,
  taskCalls,
} from "./plan.ts";
import type { KeptRun, Results } from "./results.ts";
import { type Run, tooManyTasks } from "./run.ts";
import type { ToolNames } from "./tool_names.ts";

/** A checked plan, and the collaborators of its run. */
export interface PlanRunParts {
  readonly plan: Plan;
  readonly run: Run;
  /** The kept outputs, including those of tasks from earlier runs. */
  readonly storedRun: KeptRun;
  readonly results: Results;
  readonly values: ReferenceValues;
  readonly tools: ToolNames;
  /** The answers to the approval request before the run, by `outputKey`. */
  readonly answers: ReadonlyMap<string, ApprovalAnswer>;
  /** The maximum number of concurrent calls. */
  readonly atOnce: number;
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
  /** The number of calls, and how many are done, if the task has `for_each`. */
  readonly of?: number;
  readonly done?: number;
  /** The errors of failed calls, by element. */
  readonly errors?: JsonObject;
  /** Whether an earlier run of the plan completed the task. */
  readonly isEarlier?: boolean;
}

const TEXT_MAX = 2_000;
const ERRORS_MAX = 10;
/** Codes of errors after which a call may have run, unless the error states it. */
const UNSURE = /^(TIMED_OUT|CANCELLED|SANDBOX_CRASHED|UPSTREAM_.+|OUTPUT_.+|RESULT_.+|BUG)$/;

/** Returns the key of a call's output: the task and the index of its element. */
export function outputKey({ task, index }: Pick<PlanStep, "task" | "index">): string {
  return index === undefined ? task.id : `${task.id}/${index}`;
}

/** One run of a plan. */
export class PlanRun {
  /** The state of each finished task. */
  readonly states = new Map<string, TaskState>();
  /** The tasks with failed calls that may have run. */
  readonly unsure = new Set<string>();
  /** The plan that runs. */
  readonly plan: Plan;
  /** The kept outputs of the run. */
  readonly storedRun: KeptRun;
  readonly #parts: PlanRunParts;
  readonly #onProgress: CallClient["onProgress"];
  readonly #waiting: (() => void)[] = [];
  #free: number;
  #total: number;
  #ended = 0;

  /** Creates a run of a plan. Runs nothing yet. */
  constructor(parts: PlanRunParts) {
    this.plan = parts.plan;
    this.storedRun = parts.storedRun;
    this.#parts = parts;
    this.#onProgress = parts.client.onProgress;
    this.#free = parts.atOnce;
    this.#total = parts.plan.tasks.length;
  }

  /** Runs all tasks that are not done. Resolves when no task can run. */
  async all(): Promise<void> {
    const over = new Map<string, Promise<void>>();
    for (const task of this.plan.tasks) {
      const before = task.needs.map((need) => over.get(need));
      over.set(task.id, this.#task(task, before));
    }
    await Promise.all(over.values());
  }

  async #task(task: PlanTask, before: readonly (Promise<void> | undefined)[]): Promise<void> {
    await Promise.all(before);
    const since = performance.now();
    const state = await this.#ran(task).catch((error) => failedBy(error));
    const ms = Math.round(performance.now() - since);
    const isTimed = state.state !== "not run" && state.isEarlier !== true;
    this.states.set(task.id, isTimed ? { ...state, ms } : state);
    if (state.of === undefined) this.#tell(task, state);
  }

  async #ran(task: PlanTask): Promise<TaskState> {
    const { storedRun, run, values } = this.#parts;
    // guard: plan-done
    if (storedRun.outputs.has(task.id)) return { state: "done", isEarlier: true };
    const stop = this.#stopOf(task);
    if (stop !== undefined) return stop;
    const { signal } = run.options;
    if (signal.aborted) return { state: "not run", why: reasonOf(signal) };
    if (!runsNow(task, values)) return { state: "skipped", why: "`when` is false" };
    const steps = await taskCalls(task, values);
    if (steps === undefined || steps.some(({ open }) => open.size > 0)) {
      throw bad("an output that it takes was too large to keep (limits.kept_bytes)");
    }
    if (task.forEach !== undefined) return await this.#each(task, steps);
    const [step] = steps;
    if (step === undefined) throw bad("it has no call");
    const failure = await this.#step(step);
    return failure === undefined ? { state: "done" } : { state: "failed", error: failure };
  }

  /** Returns why a task cannot run: a task that it needs is not done. */
  #stopOf({ needs }: PlanTask): TaskState | undefined {
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

  async #each(task: PlanTask, steps: readonly PlanStep[]): Promise<TaskState> {
    const { storedRun, results, values } = this.#parts;
    this.#total += steps.length - 1;
    // guard: plan-elements
    if (this.#total > values.most) throw tooManyTasks(this.#total, values.most);
    const failures = await Promise.all(steps.map(async (step) => {
      const failure = await this.#step(step);
      this.#tell(task, { state: failure === undefined ? "done" : "failed" });
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
  async #step(step: PlanStep): Promise<JsonObject | undefined> {
    const { storedRun, results, run, answers, tools } = this.#parts;
    const key = outputKey(step);
    // guard: plan-step-done
    if (storedRun.outputs.has(key)) return undefined;
    await this.#place();
    let isBegun = false;
    try {
      run.options.signal.throwIfAborted();
      isBegun = true;
      const result = await run.call({
        id: tools.idOf(step.task.tool),
        arguments: step.arguments,
        answer: answers.get(key),
        onProgress: ownOnly(this.#onProgress),
      });
      if (result.isError === true) return saidBy(result);
      results.keep(storedRun, key, outputOf(result));
      storedRun.hashes.set(step.task.id, step.task.hash);
      return undefined;
    } catch (error) {
      const pmlError = asPmlError(error);
      const { code, detail } = pmlError;
      if (isBegun && (detail?.may_have_run ?? UNSURE.test(code))) this.unsure.add(step.task.id);
      return bodyOf(pmlError);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }

  /** Waits until another call may run. */
  async #place(): Promise<void> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #tell({ id }: PlanTask, { state }: TaskState): void {
    const [progress, total] = [++this.#ended, this.#total];
    this.#onProgress?.({
      progress,
      total,
      message: `${id}: ${state} (${progress} of ${total})`,
    });
  }
}

/** Returns the fields of an error that the answer includes. */
function bodyOf({ code, message, hint, detail }: PmlError): JsonObject {
  return defined({ code, message, hint, detail }) as JsonObject; // a detail is JSON
}

function failedBy(error: unknown): TaskState {
  return { state: "failed", error: bodyOf(asPmlError(error)) };
}

function saidBy({ content }: ToolResult): JsonObject {
  const text = content.map(({ type, text }) => typeof text === "string" ? text : `(${type})`)
    .join("\n");
  return { message: text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text };
}

function reasonOf({ reason }: AbortSignal): string {
  return reason instanceof PmlError ? reason.message : "the client cancelled it";
}
