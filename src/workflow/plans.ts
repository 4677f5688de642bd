/**
 * Runs plans: parses them, checks them, runs them and reports the state of each task.
 *
 * @module
 */

import { type CallClient, changeClient } from "../protocol/call.ts";
import { durationText } from "../core/amounts.ts";
import { PmlError } from "../core/errors.ts";
import { type Json, type JsonObject, quoted } from "../core/json.ts";
import type { ConfigOwner } from "../config/current_config.ts";
import type { Limits } from "../config/limits.ts";
import { checkPlan, type PlanCheckParts, type Preflight } from "./_plan_check.ts";
import { type PlanOutcome, toPlanOutcome } from "./_plan_answer.ts";
import { PlanRun } from "./_plan_run.ts";
import { parsePlan, type Plan, type ReferenceValues } from "./plan.ts";
import type { Results, StoredRun } from "./results.ts";
import { Run, type RunOptions } from "./run.ts";
import { type RunParts, withTimeLimit } from "./run_scope.ts";

export type { Preflight };

/** The collaborators of `Plans`. */
export interface PlansParts extends RunParts, PlanCheckParts {
  readonly results: Results;
  readonly policy: ConfigOwner<"limits">;
}

/** A request to run a plan. */
export interface PlanRequest {
  /** The plan; undefined to continue with the plan of the resumed run. */
  readonly plan: JsonObject | undefined;
  /** The id of the run to resume. Only its unfinished tasks run. */
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

  /** Runs a plan, or its unfinished tasks. If the plan is refused, throws before any call. */
  async run(request: PlanRequest): Promise<PlanOutcome> {
    const { results, policy } = this.#parts;
    const { actor, resume, params } = request;
    const { planTasks: most } = policy.config.limits;
    const resumedRun = resume === undefined ? undefined : results.resume(resume, actor);
    let run = resumedRun;
    try {
      const planJson = request.plan ?? resumedRun?.plan;
      if (planJson === undefined) throw noPlanError();
      const plan = parsePlan(planJson, { maxTasks: most, params, isCheckedLater: true });
      // guard: plan-same
      if (resumedRun !== undefined) assertSame(plan, resumedRun);
      run ??= results.begin(actor, plan.json);
      return await this.#checkAndRun(plan, { request, storedRun: run });
    } finally {
      if (run !== undefined) results.end(run);
    }
  }

  async #checkAndRun(
    plan: Plan,
    { request, storedRun }: { readonly request: PlanRequest; readonly storedRun: StoredRun },
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
      async (timed) => {
        // Calls do not report their progress to the client: the plan reports after each task.
        const { signal } = timed;
        const client = changeClient(timed.client, { onProgress: undefined });
        const callFields = { client, signal, via, actor, run: storedRun.id, depth };
        const answers = await checkPlan(plan, this.#parts, {
          values: runOutputs,
          storedRun,
          callFields,
        });
        const run = new Run({ ...callFields, id: storedRun.id, maxCalls: most, callTool });
        const concurrency = Math.max(CONCURRENT_MIN, concurrentCalls >> 2);
        const planRun = new PlanRun({
          ...{
            plan,
            run,
            storedRun,
            results,
            values: runOutputs,
            tools,
            answers,
            concurrency,
            client: request.client,
          },
        });
        const about = { run: storedRun.id, tasks: plan.tasks.length };
        storedRun.hasBegun = true;
        storedRun.plan = plan.json;
        journal.record("plan began", { actor, about });
        await planRun.runAll();
        const byState = Map.groupBy(planRun.states.values(), ({ state }) => state);
        const countByState = Object.fromEntries(
          [...byState].map(([state, { length }]) => [state, length]),
        );
        journal.record("plan ended", { actor, about: { ...about, ...countByState } });
        return toPlanOutcome(planRun, inlineBytes);
      },
    );
  }
}

/** The outputs that the tasks of a run use. */
class RunOutputs implements ReferenceValues {
  readonly maxCalls: number;
  readonly maxOutputLength: number;
  readonly params: JsonObject;
  readonly #run: StoredRun;
  readonly #results: Results;

  constructor(
    run: StoredRun,
    results: Results,
    { params, limits }: { readonly params: JsonObject; readonly limits: Limits },
  ) {
    this.maxCalls = limits.planTasks;
    this.maxOutputLength = limits.inputBytes;
    this.params = params;
    this.#run = run;
    this.#results = results;
  }

  output(task: string): Json | undefined {
    return this.#run.outputs.get(task);
  }

  earlierOutput(source: string): Json {
    return this.#results.output(source, this.#run.actor);
  }
}

/** A plan may always make this many concurrent calls. Servers have their own limits, too. */
const CONCURRENT_MIN = 8;

/** Throws if the plan that resumes a run changes a task that is already done. */
function assertSame(plan: Plan, { id, hashes }: StoredRun): void {
  const changed = plan.tasks.filter((task) => (hashes.get(task.id) ?? task.hash) !== task.hash);
  if (changed.length === 0) return;
  const names = changed.slice(0, 10).map((task) => quoted(task.id)).join(", ");
  throw new PmlError(
    "BAD_ARGUMENTS",
    `Cannot resume the run ${quoted(id)}: ${names} changed after the run kept their outputs`,
    { hint: "Restore these tasks, or give them other ids" },
  );
}

function noPlanError(): PmlError {
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
