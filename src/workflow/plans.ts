/**
 * Runs plans: parses them, checks them, runs them and reports the state of each task.
 *
 * @module
 */

import { type CallClient, changedClient } from "../protocol/call.ts";
import { durationText } from "../core/amounts.ts";
import { PmlError } from "../core/errors.ts";
import { type Json, type JsonObject, quoted } from "../core/json.ts";
import type { ConfigOwner } from "../config/current_config.ts";
import type { Limits } from "../config/limits.ts";
import { type JudgeParts, judgePlan, type Preflight } from "./_judging.ts";
import { answerOf, type PlanOutcome } from "./_plan_answer.ts";
import { PlanRun } from "./_plan_run.ts";
import { parsePlan, type Plan, type ReferenceValues } from "./plan.ts";
import type { KeptRun, Results } from "./results.ts";
import { Run, type RunOptions } from "./run.ts";
import { type RunParts, withTimeLimit } from "./run_scope.ts";

export type { Preflight };

/** The collaborators of `Plans`. */
export interface PlansParts extends RunParts, JudgeParts {
  readonly results: Results;
  readonly policy: ConfigOwner<"limits">;
}

/** A request to run a plan. */
export interface PlanRequest {
  /** The plan; undefined to continue with the plan of the resumed run. */
  readonly plan: JsonObject | undefined;
  /** The id of the run whose unfinished tasks run. */
  readonly resume?: string | undefined;
  /** The values of the parameters of a saved plan. */
  readonly params?: JsonObject | undefined;
  readonly via?: RunOptions["via"];
  /** The number of capabilities that wait for this run. */
  readonly depth?: number;
  readonly actor: string;
  readonly signal: AbortSignal;
  /** The client that waits for the run. */
  readonly client: CallClient;
}

/** Runs plans. */
export class Plans {
  readonly #parts: PlansParts;

  /** Creates an instance. Runs nothing. */
  constructor(parts: PlansParts) {
    this.#parts = parts;
  }

  /** Runs a plan, or the unfinished tasks of one. Throws if it is refused; then nothing ran. */
  async run(request: PlanRequest): Promise<PlanOutcome> {
    const { results, policy } = this.#parts;
    const { actor, resume, params } = request;
    const { planTasks: most } = policy.config.limits;
    const before = resume === undefined ? undefined : results.resume(resume, actor);
    let run = before;
    try {
      const planJson = request.plan ?? before?.plan;
      if (planJson === undefined) throw nothing();
      const plan = parsePlan(planJson, { most, params, isJudged: true });
      // guard: plan-same
      if (before !== undefined) assertSame(plan, before);
      run ??= results.begin(actor, plan.json);
      return await this.#judged(plan, { request, storedRun: run });
    } finally {
      if (run !== undefined) results.end(run);
    }
  }

  async #judged(
    plan: Plan,
    { request, storedRun }: { readonly request: PlanRequest; readonly storedRun: KeptRun },
  ): Promise<PlanOutcome> {
    const { results, policy, tools, callTool, journal, waiting } = this.#parts;
    const { actor, via = "plan", depth = 0 } = request;
    const { limits } = policy.config;
    const { planTasks: most, concurrentCalls, callMaxMs: ms, inlineBytes } = limits;
    const runOutputs = new RunOutputs(storedRun, results, { params: plan.params, limits });
    const questions = { waiting, run: storedRun.id };
    return await withTimeLimit(
      { ...request, ms, questions },
      () => timedOut(ms),
      async (within) => {
        // Tasks report progress to the plan, and the plan reports to the client.
        const { signal } = within;
        const client = changedClient(within.client, { onProgress: undefined });
        const from = { client, signal, via, actor, run: storedRun.id, depth };
        const answers = await judgePlan(plan, this.#parts, { values: runOutputs, storedRun, from });
        const run = new Run({ ...from, id: storedRun.id, calls: most, callTool });
        const atOnce = Math.max(LEAST_AT_ONCE, concurrentCalls >> 2);
        const running = new PlanRun({
          ...{
            plan,
            run,
            storedRun,
            results,
            values: runOutputs,
            tools,
            answers,
            atOnce,
            client: request.client,
          },
        });
        const about = { run: storedRun.id, tasks: plan.tasks.length };
        storedRun.hasBegun = true;
        storedRun.plan = plan.json;
        journal.record("plan began", { actor, about });
        await running.all();
        const counts = Map.groupBy(running.states.values(), ({ state }) => state);
        const states = Object.fromEntries(
          [...counts].map(([state, { length }]) => [state, length]),
        );
        journal.record("plan ended", { actor, about: { ...about, ...states } });
        return answerOf(running, inlineBytes);
      },
    );
  }
}

/** The outputs that the tasks of a run use. */
class RunOutputs implements ReferenceValues {
  readonly most: number;
  readonly mostTaken: number;
  readonly params: JsonObject;
  readonly #run: KeptRun;
  readonly #results: Results;

  constructor(
    run: KeptRun,
    results: Results,
    { params, limits }: { readonly params: JsonObject; readonly limits: Limits },
  ) {
    this.most = limits.planTasks;
    this.mostTaken = limits.inputBytes;
    this.params = params;
    this.#run = run;
    this.#results = results;
  }

  output(task: string): Json | undefined {
    return this.#run.outputs.get(task);
  }

  kept(source: string): Json {
    return this.#results.output(source, this.#run.actor);
  }
}

/** The least limit of concurrent calls of a plan. Servers have their own limits. */
const LEAST_AT_ONCE = 8;

/** Throws if the plan that resumes a run changes a task that is already done. */
function assertSame(plan: Plan, { id, hashes }: KeptRun): void {
  const changed = plan.tasks.filter((task) => (hashes.get(task.id) ?? task.hash) !== task.hash);
  if (changed.length === 0) return;
  const names = changed.slice(0, 10).map((task) => quoted(task.id)).join(", ");
  throw new PmlError(
    "BAD_ARGUMENTS",
    `Cannot resume the run ${quoted(id)}: ${names} changed after the run kept their outputs`,
    { hint: "Restore these tasks, or give them other ids" },
  );
}

function nothing(): PmlError {
  return new PmlError("BAD_ARGUMENTS", "Cannot run the request: it has no `plan`", {
    hint: 'Send {"plan": {"tasks": [{"id", "tool", "arguments"}]}}',
  });
}

function timedOut(ms: number): PmlError {
  return new PmlError(
    "TIMED_OUT",
    `Cannot finish the plan: it took longer than ${durationText(ms)}`,
    {
      hint: "Resume it, or raise limits.call_max_ms in config.yaml",
    },
  );
}
