/**
 * Checks a plan before any of its calls runs. One error contains all problems, and one approval
 * request contains all calls that require approval.
 *
 * @module
 */

import type { ApprovalAnswer, Call } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { asPmlError } from "../core/errors.ts";
import { mapInTurns } from "../io/map_in_turns.ts";
import { outputKey } from "./_plan_run.ts";
import {
  type Plan,
  planError,
  type PlanProblem,
  type PlanStep,
  type PlanTask,
  type ReferenceValues,
  taskCall,
  taskCalls,
} from "./plan.ts";
import type { StoredRun } from "./results.ts";
import { tooManyTasksError } from "./run.ts";
import type { ToolNames } from "./tool_names.ts";

/** Checks calls before any of them runs. `CallChecker` implements it. */
export interface Preflight {
  /**
   * Throws if a call is invalid or denied. `unknownArguments` are the names of the arguments whose
   * values are unknown. Returns whether the tool could be checked.
   */
  check(call: Call, unknownArguments: ReadonlySet<string>): Promise<boolean>;
  /** Asks once for several calls. Returns the answer for each call, by `callId`. */
  askForAll(calls: readonly Call[]): Promise<ReadonlyMap<string, ApprovalAnswer>>;
}

/** The collaborators of `checkPlan`. */
export interface PlanCheckParts {
  readonly tools: ToolNames;
  readonly preflight: Preflight;
}

/** The run for which a plan is checked. */
export interface CheckedRun {
  readonly values: ReferenceValues;
  /** The outputs of earlier runs of the plan. */
  readonly storedRun: StoredRun;
  /** The fields that all calls share. */
  readonly callFields: Pick<Call, "client" | "via" | "actor" | "run" | "depth"> & {
    readonly signal: AbortSignal;
  };
}

interface CallToCheck {
  readonly step: PlanStep;
  readonly call: Call;
}

/**
 * Checks all calls that are known before the plan runs. Returns the answers to the approval
 * request, by `outputKey`. Throws one error with all problems of the plan.
 */
export async function checkPlan(
  plan: Plan,
  parts: PlanCheckParts,
  checkedRun: CheckedRun,
): Promise<ReadonlyMap<string, ApprovalAnswer>> {
  const { problems } = plan;
  const { preflight } = parts;
  const { values: { maxCalls: most }, callFields: { signal, ...about } } = checkedRun;
  using cancellation = Cancellation.of(signal);
  const from = { ...about, cancellation };
  const all: CallToCheck[] = [];
  for (const task of plan.tasks) {
    all.push(...await callsOf(task, parts, { ...checkedRun, from, problems }));
  }
  const { length: count } = all;
  if (count > most) problems.push({ error: tooManyTasksError(count, most) });
  // A plan that is refused anyway does not need a check of every call.
  if (problems.length > 0 && count > most) throw planError(problems);
  const uncheckedCalls = await checkAll(all, preflight, problems);
  if (problems.length > 0) throw planError(problems);
  const readyCalls = all.filter(({ step: { unknownArguments } }) => unknownArguments.size === 0);
  const answers = await preflight.askForAll(readyCalls.map(({ call }) => call));
  // The approval allows more servers to start, so more tools can be checked. Meanwhile, rules may
  // have changed.
  if (answers.size + uncheckedCalls.length > 0) await checkAll(all, preflight, problems);
  if (problems.length > 0) throw planError(problems);
  return new Map(readyCalls.flatMap(({ step, call: { callId } }) => {
    const answer = answers.get(callId);
    return answer === undefined ? [] : [[outputKey(step), answer] as const];
  }));
}

/** Returns the calls of a task, except calls whose outputs an earlier run kept. */
async function callsOf(
  task: PlanTask,
  { tools }: PlanCheckParts,
  { values, storedRun, from, problems }: Omit<CheckedRun, "from"> & {
    readonly from: Omit<Call, "id" | "arguments" | "callId">;
    readonly problems: PlanProblem[];
  },
): Promise<readonly CallToCheck[]> {
  try {
    const id = tools.idOf(task.tool);
    const isDone = (key: string) => storedRun.outputs.has(key);
    const steps = await taskCalls(task, values) ?? [taskCall(task, values)];
    return steps.filter((step) => !isDone(task.id) && !isDone(outputKey(step))).map((step) => ({
      step,
      call: { ...from, id, arguments: step.arguments, callId: crypto.randomUUID() },
    }));
  } catch (error) {
    problems.push({ task: task.id, error: asPmlError(error) });
    return [];
  }
}

/** Adds the problems of calls to `problems`. Returns the calls whose tools could not be checked. */
async function checkAll(
  calls: readonly CallToCheck[],
  preflight: Preflight,
  problems: PlanProblem[],
): Promise<readonly CallToCheck[]> {
  const checks = await mapInTurns(calls, async ({ step, call }) => {
    try {
      return { isChecked: await preflight.check(call, step.unknownArguments), error: undefined };
    } catch (error) {
      return { isChecked: true, error: asPmlError(error) };
    }
  });
  const results = await Promise.all(checks);
  for (const [at, { error }] of results.entries()) {
    const { task } = calls[at]?.step ?? {};
    // guard: plan-judged
    if (error !== undefined && task !== undefined) problems.push({ task: task.id, error });
  }
  return calls.filter((_, at) => results[at]?.isChecked === false);
}
