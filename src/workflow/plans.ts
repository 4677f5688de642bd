/**
 * Runs plans: reads them, has them judged, runs them, and says what became of each task.
 *
 * @module
 */

import { type CallClient, changedClient, type ToolResult } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";
import { type Json, type JsonObject, quoted } from "../core/json.ts";
import type { Limits } from "../config/limits.ts";
import { type JudgeOptions, judgePlan } from "./_judging.ts";
import { answerOf } from "./_plan_answer.ts";
import { PlanRun } from "./_plan_run.ts";
import { type Known, parsePlan, type Plan } from "./plan.ts";
import type { KeptRun, Results } from "./results.ts";
import { Run, type RunOptions } from "./run.ts";
import { inTime, type RunHouse } from "./run_scope.ts";

/** The options of `Plans`. */
export interface PlansOptions extends RunHouse, Pick<JudgeOptions, "idOf" | "check" | "ask"> {
  readonly results: Results;
  readonly limits: () => Pick<
    Limits,
    "planTasks" | "concurrentCalls" | "callMaxMs" | "inlineBytes" | "inputBytes"
  >;
}

/** A request to run a plan. */
export interface PlanRequest {
  /** The plan; undefined to go on with the plan of the run that is resumed. */
  readonly plan: JsonObject | undefined;
  /** The run whose tasks that are not done are to be run. */
  readonly resume?: string | undefined;
  /** The values of the parameters of a plan that was saved. */
  readonly params?: JsonObject | undefined;
  readonly via?: RunOptions["via"];
  /** How many capabilities wait for this run. */
  readonly depth?: number;
  readonly actor: string;
  readonly signal: AbortSignal;
  /** The client that waits for it. */
  readonly client: CallClient;
}

/** What came of a plan. */
export interface PlanOutcome {
  /** What a model is told: the state of each task. */
  readonly result: ToolResult;
  readonly run: string;
  /** Whether all tasks are done or were skipped. */
  readonly isDone: boolean;
  /**
   * The output of the plan: that of the only task which no other needs, or an object of the outputs
   * of all such tasks.
   */
  readonly output: Json;
  readonly plan: Plan;
}

/** Runs plans. */
export class Plans {
  readonly #options: PlansOptions;

  /** Takes the options; runs nothing. */
  constructor(options: PlansOptions) {
    this.#options = options;
  }

  /** Runs a plan, or what is left of one. Throws if it is refused as a whole: then nothing ran. */
  async run(request: PlanRequest): Promise<PlanOutcome> {
    const { results, limits } = this.#options;
    const { actor, resume, params } = request;
    const { planTasks: most } = limits();
    const before = resume === undefined ? undefined : results.resume(resume, actor);
    let kept = before;
    try {
      const given = request.plan ?? before?.plan;
      if (given === undefined) throw nothing();
      const plan = parsePlan(given, { most, params, isJudged: true });
      // guard: plan-same
      if (before !== undefined) assertSame(plan, before);
      kept ??= results.begin(actor, plan.given);
      return await this.#judged(plan, { request, kept });
    } finally {
      if (kept !== undefined) results.end(kept);
    }
  }

  async #judged(
    plan: Plan,
    { request, kept }: { readonly request: PlanRequest; readonly kept: KeptRun },
  ): Promise<PlanOutcome> {
    const { results, limits, idOf, callTool, record, waiting, ...options } = this.#options;
    const { actor, via = "plan", depth = 0, client: { onProgress } } = request;
    const { planTasks: most, inputBytes: mostTaken, concurrentCalls, callMaxMs: ms, inlineBytes } =
      limits();
    const known: Known = {
      most,
      mostTaken,
      params: plan.params,
      output: (task) => kept.outputs.get(task),
      kept: (name) => results.output(name, actor),
    };
    const isDone = (key: string) => kept.outputs.has(key);
    const during = <A>(ask: () => Promise<A>) => waiting.during(kept.id, ask);
    return await inTime({ ...request, ms, during }, () => timedOut(ms), async (within) => {
      // Tasks report to the plan, and the plan to the client.
      const { signal } = within;
      const client = changedClient(within.client, { onProgress: undefined });
      const from = { client, signal, via, actor, run: kept.id, depth };
      const answers = await judgePlan(plan, { ...options, idOf, known, isDone, from });
      const run = new Run({ ...from, id: kept.id, calls: most, callTool });
      const atOnce = Math.max(LEAST_AT_ONCE, concurrentCalls >> 2);
      const running = new PlanRun({
        ...{ plan, run, kept, results, known, idOf, answers, atOnce, onProgress },
      });
      const about = { run: kept.id, tasks: plan.tasks.length };
      kept.hasBegun = true;
      kept.plan = plan.given;
      record("plan began", { actor, about });
      await running.all();
      const counts = Map.groupBy(running.states.values(), ({ state }) => state);
      const states = Object.fromEntries([...counts].map(([state, { length }]) => [state, length]));
      record("plan ended", { actor, about: { ...about, ...states } });
      return answerOf(plan, { kept, running, inlineBytes });
    });
  }
}

/** A plan may always have so many calls under way: more of them wait for their turn anyway. */
const LEAST_AT_ONCE = 8;

/** Throws if what is done of a run is not the same in the plan that goes on with it. */
function assertSame(plan: Plan, { id, hashes }: KeptRun): void {
  const changed = plan.tasks.filter((task) => (hashes.get(task.id) ?? task.hash) !== task.hash);
  if (changed.length === 0) return;
  const names = changed.slice(0, 10).map((task) => quoted(task.id)).join(", ");
  throw new PmlError(
    "BAD_ARGUMENTS",
    `Cannot resume the run ${quoted(id)}: it has outputs of ${names} from before the change`,
    { hint: "Leave tasks that have outputs as they were, or rename them" },
  );
}

function nothing(): PmlError {
  return new PmlError("BAD_ARGUMENTS", "Cannot run nothing: there is no `plan`", {
    hint: 'Send {"plan": {"tasks": [{"id", "tool", "arguments"}]}}',
  });
}

function timedOut(ms: number): PmlError {
  return new PmlError("TIMED_OUT", `Cannot finish the plan: it took longer than ${ms} ms`, {
    hint: "Resume it, or raise limits.call_max_ms in config.yaml",
  });
}
