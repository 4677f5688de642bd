/**
 * Builds the answer for a plan that ran: short, without large outputs.
 *
 * @module
 */

import { textResult, type ToolResult } from "../protocol/call.ts";
import type { Json, JsonObject } from "../core/json.ts";
import { RESULTS, shapeLine } from "./_page.ts";
import type { PlanRun } from "./_plan_run.ts";
import type { Plan } from "./plan.ts";
import { jsonSize, type KeptRun } from "./results.ts";

/** The maximum length of an output that the answer includes, in characters. */
const INLINE = 8_000;
/** The same for an output that another task uses, so the model rarely needs it. */
const INLINE_TAKEN = 1_000;
/** The maximum length of all outputs in one answer, in characters. */
const INLINE_ALL = 32_000;

/** Returns the answer for a plan that ran. A smaller `inlineBytes` replaces `INLINE`, but not 0. */
export function answerOf(
  { plan, storedRun, states, unsure }: Pick<PlanRun, "plan" | "storedRun" | "states" | "unsure">,
  inlineBytes: number,
): PlanOutcome {
  const taken = new Set(plan.tasks.flatMap(({ takes }) => takes));
  const most = Math.min(inlineBytes || INLINE, INLINE);
  let remaining = INLINE_ALL;
  const outside: string[] = [];
  const shownOutput = (id: string): JsonObject => {
    const output = storedRun.outputs.get(id);
    if (output === undefined) {
      return { why: "its output was too large to keep (limits.kept_bytes)" };
    }
    const size = jsonSize(output);
    if (size <= (taken.has(id) ? Math.min(INLINE_TAKEN, most) : most) && size <= remaining) {
      remaining -= size;
      return { output };
    }
    outside.push(id);
    return keptOutput(`${storedRun.id}.${id}`, output);
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
    ...(outside.length > 0 && { read: readHint(storedRun.id) }),
    ...(!isDone && {
      retry:
        `execute_workflow {"resume":"${storedRun.id}"} runs only the tasks that failed or did not run`,
    }),
    ...(unsure.size > 0 && { may_have_run: [...unsure] }),
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
export function keptOutput(name: string, output: Json): JsonObject {
  return { kept: `${RESULTS}${name}`, size: jsonSize(output), shape: shapeLine(output) };
}

/** Explains how to read the outputs of a run that the answer does not include. */
export function readHint(run: string): string {
  return `execute_workflow {"read":"${RESULTS}${run}.TASK?offset=0&limit=20#/json/pointer"}, ` +
    `or {"$ref":"${run}.TASK#/json/pointer"} in a plan`;
}

/** Returns the outputs of the tasks that no other task needs. */
function outputOf({ tasks }: Plan, { outputs }: KeptRun): Json {
  const needed = new Set(tasks.flatMap(({ needs }) => needs));
  const last = tasks.filter(({ id }) => !needed.has(id));
  const [only] = last;
  if (only !== undefined && last.length === 1) return outputs.get(only.id) ?? null;
  return Object.fromEntries(last.map(({ id }) => [id, outputs.get(id) ?? null]));
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
