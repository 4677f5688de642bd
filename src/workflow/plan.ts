/**
 * Parses plans: tasks that call tools and use each other's outputs. It runs nothing.
 *
 * @module
 */

import { asPmlError, PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import {
  canonicalJson,
  type Json,
  type JsonObject,
  quoted,
  withoutUndefined,
} from "../core/json.ts";
import { mapInTurns } from "../io/map_in_turns.ts";
import {
  badRequestError,
  isList,
  partAt,
  type Ref,
  refsIn,
  type ResolveRef,
  withReferences,
} from "./_refs.ts";
import { isConditionTrue } from "./_when.ts";
import { jsonSize } from "./results.ts";
import { tooManyTasksError } from "./run.ts";

/** One task of a plan. */
export interface PlanTask {
  readonly id: string;
  /** The tool name that the caller sent. */
  readonly tool: string;
  /** The arguments with unresolved references. */
  readonly arguments: JsonObject;
  /** The ids of the tasks that must be done first: the tasks in `depends_on` and in references. */
  readonly needs: readonly string[];
  /** The ids of the tasks whose outputs the task uses. */
  readonly usedOutputs: readonly string[];
  readonly when?: Json;
  /** The array, or a reference to it. The tool is called once for each element. */
  readonly forEach?: Json;
  /** The hash of the task without its id. */
  readonly hash: string;
}

/** A parsed plan. Each task comes after the tasks that it needs. */
export interface Plan {
  readonly tasks: readonly PlanTask[];
  /** The plan that the caller sent. */
  readonly json: JsonObject;
  readonly params: JsonObject;
  /** The problems of the plan. `tasks` contains only the valid tasks. `checkPlan` adds problems. */
  readonly problems: PlanProblem[];
}

/** One call that a task makes. */
export interface PlanStep {
  readonly task: PlanTask;
  /** The index of the element, if the task has `for_each`. */
  readonly index?: number;
  /** The arguments with resolved references. Unknown values are null. */
  readonly arguments: JsonObject;
  /** The names of the arguments whose values depend on unfinished tasks, or on the element. */
  readonly unknownArguments: ReadonlySet<string>;
}

/** A problem of one task, or of the whole plan. */
export interface PlanProblem {
  readonly task?: string;
  readonly error: PmlError;
}

/** The values of references. Undefined means that a value is not known yet. */
export interface ReferenceValues {
  /** The maximum number of calls of one task. */
  readonly maxCalls: number;
  /** The maximum number of characters that one call may use from outputs. */
  readonly maxOutputLength: number;
  readonly params: JsonObject;
  /** Returns the output of a task of this plan. */
  output(task: string): Json | undefined;
  /** Returns an output of an earlier run. Throws if there is none. */
  earlierOutput(source: string): Json;
}

const ID = /^[A-Za-z0-9_-]{1,64}$/;
/** A plan with this many references is refused. A text `"$ref"` in a `$literal` counts, too. */
const REFS_MAX = 10_000;
const PROBLEMS_SHOWN = 20;
const IDS_SHOWN = 10;
const RUN_OUTPUT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

interface TaskJson {
  readonly id: string;
  readonly tool: string;
  readonly arguments?: JsonObject;
  readonly depends_on?: readonly string[];
  readonly when?: Json;
  readonly for_each?: Json;
}

/** Parses a plan that matches its schema. Throws BAD_ARGUMENTS with all problems. */
export function parsePlan(json: JsonObject, { maxTasks: most, params, isCheckedLater }: {
  /** The maximum number of tasks of a plan. */
  readonly maxTasks: number;
  /** The values of `$params` in a saved plan. */
  readonly params?: JsonObject | undefined;
  /** Whether `checkPlan` reports the problems later, together with the problems of calls. */
  readonly isCheckedLater?: boolean;
}): Plan {
  // The schema was checked.
  const { tasks } = json as unknown as { readonly tasks: readonly TaskJson[] };
  if (tasks.length > most) throw planError([{ error: tooManyTasksError(tasks.length, most) }]);
  // Parsing more references would block all clients.
  if (JSON.stringify(tasks).split('"$ref"').length > REFS_MAX) {
    throw planError([{ error: badRequestError(`the plan has ${REFS_MAX} references or more`) }]);
  }
  const ids = new Set(tasks.map(({ id }) => id));
  const problems: PlanProblem[] = [];
  const earlierIds = new Set<string>();
  const parsed = tasks.flatMap((task) => {
    try {
      if (!ID.test(task.id)) {
        throw badRequestError("its id is not 1 to 64 characters of A-Z, a-z, 0-9, '_' and '-'");
      }
      if (earlierIds.has(task.id)) throw badRequestError("another task has the same id");
      earlierIds.add(task.id);
      return [parseTask(task, { ids, hasParams: params !== undefined })];
    } catch (error) {
      problems.push({ task: task.id, error: asPmlError(error) });
      return [];
    }
  });
  const ordered = problems.length === 0 ? sortByNeeds(parsed, problems) : parsed;
  if (!isCheckedLater && problems.length > 0) throw planError(problems);
  return { tasks: ordered, json, params: params ?? {}, problems };
}

/** Returns the error of a plan that does not run, with all its problems. */
export function planError(problems: readonly PlanProblem[]): PmlError {
  const lines = problems.slice(0, PROBLEMS_SHOWN).map(({ task, error }) =>
    task === undefined ? error.message : `task ${quoted(task)}: ${error.message}`
  );
  const more = problems.length > PROBLEMS_SHOWN
    ? [`and ${problems.length - PROBLEMS_SHOWN} more problems`]
    : [];
  const [first] = problems;
  const code = problems.length === 1 && first !== undefined ? first.error.code : "BAD_ARGUMENTS";
  return new PmlError(code, `Cannot run the plan:\n${[...lines, ...more].join("\n")}`, {
    hint: "Nothing ran. Correct the plan and send it again",
  });
}

/**
 * Returns the known calls of a task; undefined if the elements of its `for_each` are not known yet.
 * Throws if `for_each` is not an array or is too long, or if a referenced value is missing.
 */
export async function taskCalls(
  task: PlanTask,
  values: ReferenceValues,
): Promise<readonly PlanStep[] | undefined> {
  const { forEach } = task;
  if (forEach === undefined) return [taskCall(task, values)];
  if (hasUnknownSource(forEach, values)) return undefined;
  const items = withReferences(forEach, createResolver(values));
  if (!isList(items)) throw badRequestError("`for_each` is not an array");
  if (items.length > values.maxCalls) throw tooManyTasksError(items.length, values.maxCalls);
  return await mapInTurns(items, (item, index) => taskCall(task, values, { item, index }));
}

/** Returns whether the `when` of a task is true, or absent. */
export function shouldRun({ when }: PlanTask, values: ReferenceValues): boolean {
  return when === undefined || isConditionTrue(when, createResolver(values));
}

/**
 * Returns the call of a task for one element of `for_each`. Without an element, the arguments that
 * depend on the element are unknown.
 */
export function taskCall(
  task: PlanTask,
  values: ReferenceValues,
  element?: { item: Json; index: number },
): PlanStep {
  const open = new Set<string>();
  const resolve = createResolver(values, element);
  const args = Object.entries(task.arguments).map(([name, value]) => {
    const isUnknown = hasUnknownSource(value, values) ||
      element === undefined && refsIn(value).some(refersToElement);
    if (isUnknown) open.add(name);
    return [name, isUnknown ? null : withReferences(value, resolve)] as const;
  });
  return {
    task,
    arguments: Object.fromEntries(args),
    unknownArguments: open,
    ...withoutUndefined({ index: element?.index }),
  };
}

/** Returns whether a value refers to the output of a task that is not done. */
function hasUnknownSource(value: Json, values: ReferenceValues): boolean {
  return refsIn(value).some(({ source }) => ID.test(source) && values.output(source) === undefined);
}

function refersToElement({ source }: Ref): boolean {
  return source === "$item" || source === "$index";
}

function createResolver(
  values: ReferenceValues,
  element?: { item: Json; index: number },
): ResolveRef {
  const { params, maxOutputLength } = values;
  let usedLength = 0;
  return (ref) => {
    const { source } = ref;
    const whole = source === "$params"
      ? params
      : source === "$item"
      ? element?.item
      : source === "$index"
      ? element?.index
      : RUN_OUTPUT.test(source)
      ? values.earlierOutput(source)
      : values.output(source);
    // References to unfinished tasks are not resolved here, so the output was too large to keep.
    if (whole === undefined) throw notKeptError(source);
    const part = partAt(whole, ref);
    // Calls share values here, but each server receives its own copy, so every use counts.
    usedLength += jsonSize(part);
    // guard: plan-taken
    if (usedLength > maxOutputLength) throw outputsTooLarge(maxOutputLength);
    return part;
  };
}

function notKeptError(source: string): PmlError {
  const why = `Cannot use the output of ${quoted(source)}: it was too large to keep`;
  return new PmlError("INPUT_TOO_LARGE", why, { hint: "Raise limits.kept_bytes" });
}

function outputsTooLarge(most: number): PmlError {
  return new PmlError(
    "INPUT_TOO_LARGE",
    `Cannot use more than ${most} characters of outputs in one call`,
    {
      hint: "Refer to its parts, or raise limits.input_bytes",
    },
  );
}

function parseTask(
  json: TaskJson,
  context: { readonly ids: ReadonlySet<string>; readonly hasParams: boolean },
): PlanTask {
  const { id, tool, arguments: args = {}, depends_on: dependsOn = [], when, for_each: forEach } =
    json;
  const refs = refsIn(args);
  const controlRefs = [...refsIn(when ?? null), ...refsIn(forEach ?? null)];
  if (when !== undefined) isConditionTrue(when, () => null);
  if (forEach !== undefined && !isList(forEach) && refsIn(forEach).length === 0) {
    throw badRequestError('`for_each` is neither an array nor {"$ref": "task#/pointer"}');
  }
  for (const ref of refs) assertSource(ref, { ...context, hasElement: forEach !== undefined });
  for (const ref of controlRefs) assertSource(ref, { ...context, hasElement: false });
  for (const name of dependsOn) {
    if (!context.ids.has(name)) throw unknownTask(name, context.ids);
  }
  const sources = [...refs, ...controlRefs].map(({ source }) => source).filter((source) =>
    ID.test(source)
  );
  return {
    id,
    tool,
    arguments: args,
    needs: [...new Set([...dependsOn, ...sources])],
    usedOutputs: sources,
    hash: sha256(canonicalJson([tool, args, [...dependsOn], when ?? null, forEach ?? null])),
    ...withoutUndefined({ when, forEach }),
  };
}

function assertSource({ source }: Ref, { ids, hasParams, hasElement }: {
  readonly ids: ReadonlySet<string>;
  readonly hasParams: boolean;
  readonly hasElement: boolean;
}): void {
  if (ids.has(source) && ID.test(source)) return;
  const [task = "", ...path] = source.split(".");
  if (ids.has(task) && path.length > 0) {
    const ref = JSON.stringify({ $ref: `${task}#/${path.join("/")}` });
    throw badRequestError(
      `${quoted(source)} is no task; for a part of the output of ${quoted(task)}, write ${ref}`,
    );
  }
  if (RUN_OUTPUT.test(source)) return;
  if (source === "$params" && hasParams) return;
  if (source === "$item" || source === "$index") {
    if (hasElement) return;
    throw badRequestError(`"${source}" is only valid in the arguments of a task with \`for_each\``);
  }
  throw unknownTask(source, ids);
}

function unknownTask(name: string, ids: ReadonlySet<string>): PmlError {
  const list = [...ids].slice(0, IDS_SHOWN).map((id) => quoted(id)).join(", ");
  return badRequestError(
    `there is no task ${quoted(name)}; there are ${list}. ` +
      'Put data into {"$literal": …}',
  );
}

/** Orders tasks so that each comes after the tasks that it needs. Adds a problem for a cycle. */
function sortByNeeds(tasks: readonly PlanTask[], problems: PlanProblem[]): readonly PlanTask[] {
  const remainingNeeds = new Map(tasks.map(({ id, needs }) => [id, needs.length]));
  const dependents = new Map<string, PlanTask[]>();
  for (const task of tasks) {
    for (const need of task.needs) {
      const list = dependents.get(need) ?? [];
      list.push(task);
      dependents.set(need, list);
    }
  }
  const ordered = tasks.filter(({ needs }) => needs.length === 0);
  // The loop appends to the list that it iterates.
  for (const { id } of ordered) {
    for (const task of dependents.get(id) ?? []) {
      const count = (remainingNeeds.get(task.id) ?? 0) - 1;
      remainingNeeds.set(task.id, count);
      if (count === 0) ordered.push(task);
    }
  }
  if (ordered.length === tasks.length) return ordered;
  problems.push({
    error: badRequestError(`tasks need each other: ${describeCycle(tasks, remainingNeeds)}`),
  });
  return tasks;
}

/** Describes one cycle: the ids of its tasks, each before a task that it needs. */
function describeCycle(
  tasks: readonly PlanTask[],
  remainingNeeds: ReadonlyMap<string, number>,
): string {
  const blockedTasks = tasks.filter(({ id }) => remainingNeeds.get(id) !== 0);
  const byId = new Map(blockedTasks.map((task) => [task.id, task.needs]));
  const next = (id: string) => byId.get(id)?.find((need) => byId.has(need)) ?? "";
  // After as many steps as there are tasks, the search is inside a cycle.
  const start = blockedTasks.reduce((id) => next(id), blockedTasks[0]?.id ?? "");
  const cycle = [start];
  for (let id = next(start); id !== start; id = next(id)) cycle.push(id);
  const path = cycle.length > PROBLEMS_SHOWN
    ? [...cycle.slice(0, PROBLEMS_SHOWN), "…"]
    : [...cycle, start];
  return path.map((id) => quoted(id)).join(" needs ");
}
