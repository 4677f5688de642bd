/**
 * Runs the plan of a capability in the program that imports it: this is part of the module that a
 * registry serves to `import()`. PML itself runs plans through its own checks.
 *
 * @module
 */

import type { Json, JsonObject } from "../core/json.ts";
import { type Known, parsePlan, type Plan, runsNow, type Step, stepsOf } from "./plan.ts";

/** The tools as functions, by server and tool, as `tools` of an open gateway of PML has them. */
export type Tools = Readonly<Record<string, Readonly<Record<string, Tool>>>>;
type Tool = (args?: JsonObject) => Promise<Json>;

/** How many tasks a plan may have, and how many calls a task may make. */
const MOST = 1_000;
/** How much one call may take from outputs, in characters. */
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

/** The outputs of a plan that knows no other runs. */
class OwnOutputs implements Known {
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

/** Runs the tasks one after another, and returns their outputs; a skipped task has none. */
async function outputsOf(
  { tasks, params }: Plan,
  tools: Tools,
): Promise<ReadonlyMap<string, Json>> {
  const outputs = new Map<string, Json>();
  const known = new OwnOutputs(outputs, params);
  for (const task of tasks) {
    const isSkipped = task.needs.some((need) => !outputs.has(need)) || !runsNow(task, known);
    if (isSkipped) continue;
    const results: Json[] = [];
    for (const step of await stepsOf(task, known) ?? []) results.push(await called(step, tools));
    outputs.set(task.id, task.forEach === undefined ? results[0] ?? null : results);
  }
  return outputs;
}

async function called({ task, arguments: args }: Step, tools: Tools): Promise<Json> {
  const [server = "", tool = ""] = task.tool.split(/:(.*)/s);
  const call = tools[server]?.[tool];
  if (call === undefined) throw new TypeError(`Cannot call "${task.tool}": there is no such tool`);
  return await call(args) ?? null;
}
