/**
 * Runs the plan of a capability in the program that imports it. A registry serves this code as part
 * of a module for `import()`. PML itself runs plans with its own checks.
 *
 * @module
 */

import type { Json, JsonObject } from "../core/json.ts";
import {
  parsePlan,
  type Plan,
  type PlanStep,
  type ReferenceValues,
  shouldRun,
  taskCalls,
} from "./plan.ts";

/** The tools as functions by server and tool, like `tools` of an open gateway of PML. */
export type Tools = Readonly<Record<string, Readonly<Record<string, Tool>>>>;
type Tool = (args?: JsonObject) => Promise<Json>;

/** The maximum number of tasks of a plan, and of calls of a task. */
const TASKS_MAX = 1_000;
/** The maximum number of characters that one call may use from outputs. */
const OUTPUT_LENGTH_MAX = 10_000_000;

/** Returns the function of a capability. */
export function imported(
  { plan }: { readonly plan: JsonObject },
  name: string,
): (args?: JsonObject, tools?: Tools) => Promise<Json> {
  return async (params = {}, tools) => {
    if (tools === undefined) {
      throw new TypeError(`Cannot run "${name}": its second argument, the tools, is missing`);
    }
    const parsed = parsePlan(plan, { maxTasks: TASKS_MAX, params });
    const outputs = await runTasks(parsed, tools);
    const needed = new Set(parsed.tasks.flatMap(({ needs }) => needs));
    const finalTasks = parsed.tasks.filter(({ id }) => !needed.has(id));
    const [only, ...others] = finalTasks.map(({ id }) => outputs.get(id) ?? null);
    return others.length === 0
      ? only ?? null
      : Object.fromEntries(finalTasks.map(({ id }) => [id, outputs.get(id) ?? null]));
  };
}

/** The outputs of a plan without access to other runs. */
class PlanOutputs implements ReferenceValues {
  readonly maxCalls = TASKS_MAX;
  readonly maxOutputLength = OUTPUT_LENGTH_MAX;
  readonly params: JsonObject;
  readonly #outputs: ReadonlyMap<string, Json>;

  constructor(outputs: ReadonlyMap<string, Json>, params: JsonObject) {
    this.params = params;
    this.#outputs = outputs;
  }

  output(task: string): Json | undefined {
    return this.#outputs.get(task);
  }

  earlierOutput(source: string): Json {
    throw new TypeError(`Cannot use "${source}": it is an output of another run`);
  }
}

/** Runs the tasks in order and returns their outputs. A skipped task has no output. */
async function runTasks(
  { tasks, params }: Plan,
  tools: Tools,
): Promise<ReadonlyMap<string, Json>> {
  const outputs = new Map<string, Json>();
  const values = new PlanOutputs(outputs, params);
  for (const task of tasks) {
    const isSkipped = task.needs.some((need) => !outputs.has(need)) || !shouldRun(task, values);
    if (isSkipped) continue;
    const results: Json[] = [];
    for (const step of await taskCalls(task, values) ?? []) {
      results.push(await callTool(step, tools));
    }
    outputs.set(task.id, task.forEach === undefined ? results[0] ?? null : results);
  }
  return outputs;
}

async function callTool({ task, arguments: args }: PlanStep, tools: Tools): Promise<Json> {
  const [server = "", tool = ""] = task.tool.split(/:(.*)/s);
  const call = tools[server]?.[tool];
  if (call === undefined) throw new TypeError(`Cannot call "${task.tool}": there is no such tool`);
  return await call(args) ?? null;
}
