/**
 * Builds the answer for a plan that ran. Large outputs are replaced by their size and shape.
 *
 * @module
 */

import { textResult, type ToolResult } from "../protocol/call.ts";
import type { Json, JsonObject } from "../core/json.ts";
import { RESULTS, shapeLine } from "./_page.ts";
import type { PlanRun } from "./_plan_run.ts";
import type { Plan } from "./plan.ts";
import { jsonSize, type StoredRun } from "./results.ts";

/** The maximum length of an output that the answer includes, in characters. */
const INLINE_MAX = 8_000;
/** The maximum length if another task uses the output. The model rarely needs to read it then. */
const INLINE_USED_MAX = 1_000;
/** The maximum length of all outputs in one answer, in characters. */
const INLINE_TOTAL_MAX = 32_000;

/** Returns the outcome of a plan that ran. `inlineBytes` can lower `INLINE_MAX`; 0 does not. */
export function toPlanOutcome(
  { plan, storedRun, states, uncertainTasks }: Pick<
    PlanRun,
    "plan" | "storedRun" | "states" | "uncertainTasks"
  >,
  inlineBytes: number,
): PlanOutcome {
  const usedTasks = new Set(plan.tasks.flatMap(({ usedOutputs }) => usedOutputs));
  const inlineMax = Math.min(inlineBytes || INLINE_MAX, INLINE_MAX);
  let remaining = INLINE_TOTAL_MAX;
  const omitted: string[] = [];
  const shownOutput = (id: string): JsonObject => {
    const output = storedRun.outputs.get(id);
    if (output === undefined) {
      return { why: "its output was too large to keep (limits.kept_bytes)" };
    }
    const size = jsonSize(output);
    if (
      size <= (usedTasks.has(id) ? Math.min(INLINE_USED_MAX, inlineMax) : inlineMax) &&
      size <= remaining
    ) {
      remaining -= size;
      return { output };
    }
    omitted.push(id);
    return omittedOutput(`${storedRun.id}.${id}`, output);
  };
  const groups: Record<string, Record<string, Json>> = {};
  for (const { id } of plan.tasks) {
    const { state, isEarlier, ...more } = states.get(id) ?? { state: "not run" };
    // An earlier answer already contains this output.
    const details = isEarlier
      ? "earlier"
      : state === "done"
      ? { ...more, ...shownOutput(id) }
      : more;
    const { why } = more;
    const group = groups[state.replace(" ", "_")] ??= {};
    group[id] = why !== undefined && state !== "done" ? why : details as Json;
  }
  const isDone = [...states.values()].every(({ state }) => state === "done" || state === "skipped");
  const summary = {
    run: storedRun.id,
    ...groups,
    ...(omitted.length > 0 && { read: readHint(storedRun.id) }),
    ...(!isDone && {
      retry:
        `execute_workflow {"resume":"${storedRun.id}"} runs only the tasks that failed or did not run`,
    }),
    ...(uncertainTasks.size > 0 && { may_have_run: [...uncertainTasks] }),
  };
  return {
    result: { ...textResult(JSON.stringify(summary)), ...(!isDone && { isError: true }) },
    run: storedRun.id,
    isDone,
    output: outputOf(plan, storedRun),
    plan,
  };
}

/** Describes an output that the answer does not include. */
export function omittedOutput(name: string, output: Json): JsonObject {
  return { kept: `${RESULTS}${name}`, size: jsonSize(output), shape: shapeLine(output) };
}

/** Explains how to read the outputs of a run that the answer does not include. */
export function readHint(run: string): string {
  return `execute_workflow {"read":"${RESULTS}${run}.TASK?offset=0&limit=20#/json/pointer"}, ` +
    `or {"$ref":"${run}.TASK#/json/pointer"} in a plan`;
}

/** Returns the outputs of the tasks that no other task needs. */
function outputOf({ tasks }: Plan, { outputs }: StoredRun): Json {
  const needed = new Set(tasks.flatMap(({ needs }) => needs));
  const finalTasks = tasks.filter(({ id }) => !needed.has(id));
  const [only] = finalTasks;
  if (only !== undefined && finalTasks.length === 1) return outputs.get(only.id) ?? null;
  return Object.fromEntries(finalTasks.map(({ id }) => [id, outputs.get(id) ?? null]));
}

/** The outcome of a plan. */
export interface PlanOutcome {
  /** The answer for the model: the state of each task. */
  readonly result: ToolResult;
  readonly run: string;
  /** Whether all tasks are done or were skipped. */
  readonly isDone: boolean;
  /**
   * The output of the only task that no other task needs, or an object with the outputs of all such
   * tasks.
   */
  readonly output: Json;
  readonly plan: Plan;
}
