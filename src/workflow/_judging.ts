/**
 * Checks a plan before any part of it runs: all calls that are known, with all problems in one
 * error, and one approval request for all calls that require approval.
 *
 * @module
 */

import type { ApprovalAnswer, Call } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { asPmlError } from "../core/errors.ts";
import { paced } from "../io/paced.ts";
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
import type { KeptRun } from "./results.ts";
import { tooManyTasks } from "./run.ts";
import type { ToolNames } from "./tool_names.ts";

/** Checks calls before any of them runs. `Ahead` implements it. */
export interface Preflight {
  /**
   * Throws if a call is invalid or denied. Some of its arguments may be open. Returns whether the
   * tool could be checked.
   */
  check(call: Call, open: ReadonlySet<string>): Promise<boolean>;
  /** Asks once for several calls. Returns the answer for each call, by `callId`. */
  askForAll(calls: readonly Call[]): Promise<ReadonlyMap<string, ApprovalAnswer>>;
}

/** The collaborators of `judgePlan`. */
export interface JudgeParts {
  readonly tools: ToolNames;
  readonly preflight: Preflight;
}

/** The run for which a plan is checked. */
export interface JudgedRun {
  readonly values: ReferenceValues;
  /** The outputs of earlier runs of the plan. */
  readonly storedRun: KeptRun;
  /** The fields that all calls share. */
  readonly from: Pick<Call, "client" | "via" | "actor" | "run" | "depth"> & {
    readonly signal: AbortSignal;
  };
}

interface Judged {
  readonly step: PlanStep;
  readonly call: Call;
}

/**
 * Returns the answers to the approval request, by `outputKey`. Throws one error with all problems of
 * the plan. No call runs before it returns.
 */
export async function judgePlan(
  plan: Plan,
  parts: JudgeParts,
  judged: JudgedRun,
): Promise<ReadonlyMap<string, ApprovalAnswer>> {
  const { problems } = plan;
  const { preflight } = parts;
  const { values: { most }, from: { signal, ...about } } = judged;
  using cancellation = Cancellation.of(signal);
  const from = { ...about, cancellation };
  const all: Judged[] = [];
  for (const task of plan.tasks) {
    all.push(...await callsOf(task, parts, { ...judged, from, problems }));
  }
  const { length: count } = all;
  if (count > most) problems.push({ error: tooManyTasks(count, most) });
  // A plan that is refused anyway does not need a check of every call.
  if (problems.length > 0 && count > most) throw planError(problems);
  const unseen = await checkAll(all, preflight, problems);
  if (problems.length > 0) throw planError(problems);
  const readyCalls = all.filter(({ step: { open } }) => open.size === 0);
  const answers = await preflight.askForAll(readyCalls.map(({ call }) => call));
  // After the approval, all tools can be checked. Rules may have changed; nothing has run yet.
  if (answers.size + unseen.length > 0) await checkAll(all, preflight, problems);
  if (problems.length > 0) throw planError(problems);
  return new Map(readyCalls.flatMap(({ step, call: { callId } }) => {
    const answer = answers.get(callId);
    return answer === undefined ? [] : [[outputKey(step), answer] as const];
  }));
}

/** Returns the known calls of a task that have not been made yet. */
async function callsOf(
  task: PlanTask,
  { tools }: JudgeParts,
  { values, storedRun, from, problems }: Omit<JudgedRun, "from"> & {
    readonly from: Omit<Call, "id" | "arguments" | "callId">;
    readonly problems: PlanProblem[];
  },
): Promise<readonly Judged[]> {
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

/** Adds the problems of calls to `problems`. Returns the calls whose tools are unavailable yet. */
async function checkAll(
  calls: readonly Judged[],
  preflight: Preflight,
  problems: PlanProblem[],
): Promise<readonly Judged[]> {
  const begun = await paced(calls, async ({ step, call }) => {
    try {
      return { isSeen: await preflight.check(call, step.open), error: undefined };
    } catch (error) {
      return { isSeen: true, error: asPmlError(error) };
    }
  });
  const results = await Promise.all(begun);
  for (const [at, { error }] of results.entries()) {
    const { task } = calls[at]?.step ?? {};
    // guard: plan-judged
    if (error !== undefined && task !== undefined) problems.push({ task: task.id, error });
  }
  return calls.filter((_, at) => results[at]?.isSeen === false);
}
