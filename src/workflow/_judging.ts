/**
 * Judges a plan before anything of it runs: every call as far as it is known, all problems at once,
 * and one question for all calls that the person must be asked about.
 *
 * @module
 */

import type { Answer, Call } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { asPmlError } from "../core/errors.ts";
import type { ToolId } from "../core/tool_id.ts";
import { paced } from "../io/paced.ts";
import { keyOf } from "./_plan_run.ts";
import {
  type Known,
  type Plan,
  type Problem,
  refused,
  type Step,
  stepOf,
  stepsOf,
  type Task,
} from "./plan.ts";
import { tooManyTasks } from "./run.ts";

/** The options of `judgePlan`. */
export interface JudgeOptions {
  readonly known: Known;
  /** Whether a call was made in an earlier run of the plan, by `keyOf`. */
  readonly isDone: (key: string) => boolean;
  /** Finds a tool. Throws UNKNOWN_TOOL. */
  readonly idOf: (name: string) => ToolId;
  /**
   * Throws what is wrong with a call, some of whose arguments may be open. Returns whether the tool
   * could be looked at.
   */
  readonly check: (call: Call, open: ReadonlySet<string>) => Promise<boolean>;
  /** Asks once for several calls. Returns what lets each pass, by its `callId`. */
  readonly ask: (calls: readonly Call[]) => Promise<ReadonlyMap<string, Answer>>;
  /** What is the same for all calls. */
  readonly from: Pick<Call, "client" | "via" | "actor" | "run" | "depth"> & {
    readonly signal: AbortSignal;
  };
}

interface Judged {
  readonly step: Step;
  readonly call: Call;
}

/**
 * Returns the answers of the one question, by `keyOf`. Throws an error that names everything wrong
 * with the plan. Nothing runs before it returns.
 */
export async function judgePlan(
  plan: Plan,
  options: JudgeOptions,
): Promise<ReadonlyMap<string, Answer>> {
  const { problems } = plan;
  const { signal, ...about } = options.from;
  using cancellation = Cancellation.of(signal);
  const from = { ...about, cancellation };
  const all: Judged[] = [];
  for (const task of plan.tasks) all.push(...await callsOf(task, { ...options, from, problems }));
  const { length: count } = all;
  if (count > options.known.most) problems.push({ error: tooManyTasks(count, options.known.most) });
  // Many calls of a plan that does not run need no look.
  if (problems.length > 0 && count > options.known.most) throw refused(problems);
  const unseen = await checkAll(all, { ...options, problems });
  if (problems.length > 0) throw refused(problems);
  const known = all.filter(({ step: { open } }) => open.size === 0);
  const answers = await options.ask(known.map(({ call }) => call));
  // After a yes all tools can be looked at, rules may have changed, and still nothing has run.
  if (answers.size + unseen.length > 0) await checkAll(all, { ...options, problems });
  if (problems.length > 0) throw refused(problems);
  return new Map(known.flatMap(({ step, call: { callId } }) => {
    const answer = answers.get(callId);
    return answer === undefined ? [] : [[keyOf(step), answer] as const];
  }));
}

/** Returns the calls of a task, as far as they are known and not made yet. */
async function callsOf(
  task: Task,
  { known, idOf, isDone, from, problems }: Omit<JudgeOptions, "from"> & {
    readonly from: Omit<Call, "id" | "arguments" | "callId">;
    readonly problems: Problem[];
  },
): Promise<readonly Judged[]> {
  try {
    const id = idOf(task.tool);
    const steps = await stepsOf(task, known) ?? [stepOf(task, known)];
    return steps.filter((step) => !isDone(task.id) && !isDone(keyOf(step))).map((step) => ({
      step,
      call: { ...from, id, arguments: step.arguments, callId: crypto.randomUUID() },
    }));
  } catch (error) {
    problems.push({ task: task.id, error: asPmlError(error) });
    return [];
  }
}

/** Notes what is wrong with calls. Returns those whose tools cannot be looked at yet. */
async function checkAll(
  calls: readonly Judged[],
  { check, problems }: JudgeOptions & { readonly problems: Problem[] },
): Promise<readonly Judged[]> {
  const begun = await paced(calls, async ({ step, call }) => {
    try {
      return { isSeen: await check(call, step.open), error: undefined };
    } catch (error) {
      return { isSeen: true, error: asPmlError(error) };
    }
  });
  const found = await Promise.all(begun);
  for (const [at, { error }] of found.entries()) {
    const { task } = calls[at]?.step ?? {};
    // guard: plan-judged
    if (error !== undefined && task !== undefined) problems.push({ task: task.id, error });
  }
  return calls.filter((_, at) => found[at]?.isSeen === false);
}
