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
  runsNow,
  taskCalls,
} from "./plan.ts";

/** The tools as functions by server and tool, like `tools` of an open gateway of PML. */
export type Tools = Readonly<Record<string, Readonly<Record<string, Tool>>>>;
type Tool = (args?: JsonObject) => Promise<Json>;

/** The maximum number of tasks of a plan, and of calls of a task. */
const MOST = 1_000;
/** The maximum number of characters that one call may use from outputs. */
const MOST_TAKEN = 10_000_000;

/** Returns the function of a capability. */
export function imported(
  { plan }: { readonly plan: JsonObject },
  name: string,
): (args?: JsonObject, tools?: Tools) => Promise<Json> {
  return async (params = {}, tools) => {
    if (tools === undefined) {
      throw new TypeError(`Cannot run "${name}": its second argument, the tools, is missing`);
    }
    const read = parsePlan(plan, { most: MOST, params });
    const outputs = await outputsOf(read, tools);
    const needed = new Set(read.tasks.flatMap(({ needs }) => needs));
    const last = read.tasks.filter(({ id }) => !needed.has(id));
    const [only, ...more] = last.map(({ id }) => outputs.get(id) ?? null);
    return more.length === 0
      ? only ?? null
      : Object.fromEntries(last.map(({ id }) => [id, outputs.get(id) ?? null]));
  };
}

/** The outputs of a plan without access to other runs. */
class OwnOutputs implements ReferenceValues {
  readonly most = MOST;
  readonly mostTaken = MOST_TAKEN;
  readonly params: JsonObject;
  readonly #outputs: ReadonlyMap<string, Json>;

  constructor(outputs: ReadonlyMap<string, Json>, params: JsonObject) {
    this.params = params;
    this.#outputs = outputs;
  }

  output(task: string): Json | undefined {
    return this.#outputs.get(task);
  }

  kept(source: string): Json {
    throw new TypeError(`Cannot take "${source}": it is an output of another run`);
  }
}

/** Runs the tasks in order and returns their outputs. A skipped task has no output. */
async function outputsOf(
  { tasks, params }: Plan,
  tools: Tools,
): Promise<ReadonlyMap<string, Json>> {
  const outputs = new Map<string, Json>();
  const ownOutputs = new OwnOutputs(outputs, params);
  for (const task of tasks) {
    const isSkipped = task.needs.some((need) => !outputs.has(need)) || !runsNow(task, ownOutputs);
    if (isSkipped) continue;
    const results: Json[] = [];
    for (const step of await taskCalls(task, ownOutputs) ?? []) {
      results.push(await called(step, tools));
    }
    outputs.set(task.id, task.forEach === undefined ? results[0] ?? null : results);
  }
  return outputs;
}

async function called({ task, arguments: args }: PlanStep, tools: Tools): Promise<Json> {
  const [server = "", tool = ""] = task.tool.split(/:(.*)/s);
  const call = tools[server]?.[tool];
  if (call === undefined) throw new TypeError(`Cannot call "${task.tool}": there is no such tool`);
  return await call(args) ?? null;
}
