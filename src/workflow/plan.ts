/**
 * Parses plans: tasks that call tools and use each other's outputs. It runs nothing.
 *
 * @module
 */

import { asPmlError, PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { canonical, defined, type Json, type JsonObject, quoted } from "../core/json.ts";
import { paced } from "../io/paced.ts";
import { bad, isList, partAt, type Ref, refsIn, type Take, withReferences } from "./_refs.ts";
import { isConditionTrue } from "./_when.ts";
import { jsonSize } from "./results.ts";
import { tooManyTasks } from "./run.ts";

/** One task of a plan. */
export interface PlanTask {
  readonly id: string;
  /** The tool name that the caller sent. */
  readonly tool: string;
  /** The arguments with unresolved references. */
  readonly arguments: JsonObject;
  /** The tasks that must be done before: those in `depends_on`, and those in references. */
  readonly needs: readonly string[];
  /** The tasks whose outputs it uses. */
  readonly takes: readonly string[];
  readonly when?: Json;
  /** The array, or a reference to it, for whose elements the tool is called once each. */
  readonly forEach?: Json;
  /** The hash of the whole task. */
  readonly hash: string;
}

/** A parsed plan. Each task comes after those that it needs. */
export interface Plan {
  readonly tasks: readonly PlanTask[];
  /** The plan that the caller sent. */
  readonly json: JsonObject;
  readonly params: JsonObject;
  /** The problems of the plan. `tasks` contains only the valid tasks. */
  readonly problems: PlanProblem[];
}

/** One call that a task makes. */
export interface PlanStep {
  readonly task: PlanTask;
  /** The index of its element, if the task has `for_each`. */
  readonly index?: number;
  /** The known arguments. */
  readonly arguments: JsonObject;
  /** The names of the arguments that depend on unfinished tasks. */
  readonly open: ReadonlySet<string>;
}

/** A problem of one task, or of the whole plan. */
export interface PlanProblem {
  readonly task?: string;
  readonly error: PmlError;
}

/** The values of references. Undefined means that a value is not known yet. */
export interface ReferenceValues {
  /** The maximum number of calls of one task. */
  readonly most: number;
  /** The maximum number of characters that one call may use from outputs. */
  readonly mostTaken: number;
  readonly params: JsonObject;
  /** Returns the output of a task of this plan. */
  output(task: string): Json | undefined;
  /** Returns an output of an earlier run. Throws if there is none. */
  kept(source: string): Json;
}

const ID = /^[A-Za-z0-9_-]{1,64}$/;
/** The limit of references in a plan, including texts like `"$ref"` within `$literal`. */
const REFS_MAX = 10_000;
const SHOWN = 20;
const IDS_SHOWN = 10;
const RUN_OUTPUT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

interface GivenTask {
  readonly id: string;
  readonly tool: string;
  readonly arguments?: JsonObject;
  readonly depends_on?: readonly string[];
  readonly when?: Json;
  readonly for_each?: Json;
}

/** Parses a plan that matches its schema. Throws BAD_ARGUMENTS with all problems. */
export function parsePlan(json: JsonObject, { most, params, isJudged }: {
  /** The maximum number of tasks of a plan. */
  readonly most: number;
  /** The values of `$params` in a saved plan. */
  readonly params?: JsonObject | undefined;
  /** Whether `judgePlan` reports the problems, together with those that it finds. */
  readonly isJudged?: boolean;
}): Plan {
  // The schema was checked.
  const { tasks } = json as unknown as { readonly tasks: readonly GivenTask[] };
  if (tasks.length > most) throw planError([{ error: tooManyTasks(tasks.length, most) }]);
  // Parsing more references would block all clients.
  if (JSON.stringify(tasks).split('"$ref"').length > REFS_MAX) {
    throw planError([{ error: bad(`it has ${REFS_MAX} references or more`) }]);
  }
  const ids = new Set(tasks.map(({ id }) => id));
  const problems: PlanProblem[] = [];
  const earlierIds = new Set<string>();
  const read = tasks.flatMap((task) => {
    try {
      if (!ID.test(task.id)) {
        throw bad("its id is not 1 to 64 characters of A-Z, a-z, 0-9, '_' and '-'");
      }
      if (earlierIds.has(task.id)) throw bad("another task has the same id");
      earlierIds.add(task.id);
      return [taskOf(task, { ids, hasParams: params !== undefined })];
    } catch (error) {
      problems.push({ task: task.id, error: asPmlError(error) });
      return [];
    }
  });
  const ordered = problems.length === 0 ? inOrder(read, problems) : read;
  if (!isJudged && problems.length > 0) throw planError(problems);
  return { tasks: ordered, json, params: params ?? {}, problems };
}

/** Returns the error of a plan that does not run, with all its problems. */
export function planError(problems: readonly PlanProblem[]): PmlError {
  const lines = problems.slice(0, SHOWN).map(({ task, error }) =>
    task === undefined ? error.message : `task ${quoted(task)}: ${error.message}`
  );
  const more = problems.length > SHOWN ? [`and ${problems.length - SHOWN} more problems`] : [];
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
  if (isOpen(forEach, values)) return undefined;
  const items = withReferences(forEach, takeFrom(values));
  if (!isList(items)) throw bad("`for_each` is not an array");
  if (items.length > values.most) throw tooManyTasks(items.length, values.most);
  return await paced(items, (item, index) => taskCall(task, values, { item, index }));
}

/** Returns whether the `when` of a task is true, or absent. */
export function runsNow({ when }: PlanTask, values: ReferenceValues): boolean {
  return when === undefined || isConditionTrue(when, takeFrom(values));
}

/** Returns the call for one element, or the arguments that all calls of a task share. */
export function taskCall(
  task: PlanTask,
  values: ReferenceValues,
  at?: { item: Json; index: number },
): PlanStep {
  const open = new Set<string>();
  const take = takeFrom(values, at);
  const args = Object.entries(task.arguments).map(([name, value]) => {
    const isUnknown = isOpen(value, values) || at === undefined && refsIn(value).some(isOfElement);
    if (isUnknown) open.add(name);
    return [name, isUnknown ? null : withReferences(value, take)] as const;
  });
  return {
    task,
    arguments: Object.fromEntries(args),
    open,
    ...defined({ index: at?.index }),
  };
}

function isOpen(value: Json, values: ReferenceValues): boolean {
  return refsIn(value).some(({ source }) => ID.test(source) && values.output(source) === undefined);
}

function isOfElement({ source }: Ref): boolean {
  return source === "$item" || source === "$index";
}

function takeFrom(values: ReferenceValues, at?: { item: Json; index: number }): Take {
  const { params, mostTaken } = values;
  let taken = 0;
  return (ref) => {
    const { source } = ref;
    const whole = source === "$params"
      ? params
      : source === "$item"
      ? at?.item
      : source === "$index"
      ? at?.index
      : RUN_OUTPUT.test(source)
      ? values.kept(source)
      : values.output(source);
    // Open references are not read, so the output existed but was too large to keep.
    if (whole === undefined) throw notKept(source);
    const part = partAt(whole, ref);
    // Calls share values here, but each server receives its own copy, so every use counts.
    taken += jsonSize(part);
    // guard: plan-taken
    if (taken > mostTaken) throw tooLarge(mostTaken);
    return part;
  };
}

function notKept(source: string): PmlError {
  const why = `Cannot use the output of ${quoted(source)}: it was too large to keep`;
  return new PmlError("INPUT_TOO_LARGE", why, { hint: "Raise limits.kept_bytes" });
}

function tooLarge(most: number): PmlError {
  return new PmlError(
    "INPUT_TOO_LARGE",
    `Cannot use so much of the outputs: more than ${most} characters`,
    {
      hint: "Refer to its parts, or raise limits.input_bytes",
    },
  );
}

function taskOf(
  json: GivenTask,
  from: { readonly ids: ReadonlySet<string>; readonly hasParams: boolean },
): PlanTask {
  const { id, tool, arguments: args = {}, depends_on: named = [], when, for_each: forEach } = json;
  const refs = refsIn(args);
  const others = [...refsIn(when ?? null), ...refsIn(forEach ?? null)];
  if (when !== undefined) isConditionTrue(when, () => null);
  if (forEach !== undefined && !isList(forEach) && refsIn(forEach).length === 0) {
    throw bad('`for_each` is neither an array nor {"$ref": "task#/pointer"}');
  }
  for (const ref of refs) assertSource(ref, { ...from, hasElement: forEach !== undefined });
  for (const ref of others) assertSource(ref, { ...from, hasElement: false });
  for (const name of named) {
    if (!from.ids.has(name)) throw unknownTask(name, from.ids);
  }
  const sources = [...refs, ...others].map(({ source }) => source).filter((one) => ID.test(one));
  return {
    id,
    tool,
    arguments: args,
    needs: [...new Set([...named, ...sources])],
    takes: sources,
    hash: sha256(canonical([tool, args, [...named], when ?? null, forEach ?? null])),
    ...defined({ when, forEach }),
  };
}

function assertSource({ source }: Ref, { ids, hasParams, hasElement }: {
  readonly ids: ReadonlySet<string>;
  readonly hasParams: boolean;
  readonly hasElement: boolean;
}): void {
  if (ids.has(source) && ID.test(source) || RUN_OUTPUT.test(source)) return;
  if (source === "$params" && hasParams) return;
  if (source === "$item" || source === "$index") {
    if (hasElement) return;
    throw bad(`"${source}" is only valid in the arguments of a task with \`for_each\``);
  }
  throw unknownTask(source, ids);
}

function unknownTask(name: string, ids: ReadonlySet<string>): PmlError {
  const list = [...ids].slice(0, IDS_SHOWN).map((id) => quoted(id)).join(", ");
  return bad(
    `there is no task ${quoted(name)}; there are ${list}. ` +
      'Put data into {"$literal": …}',
  );
}

/** Orders tasks so that each comes after those that it needs, or adds a problem for a cycle. */
function inOrder(tasks: readonly PlanTask[], problems: PlanProblem[]): readonly PlanTask[] {
  const waits = new Map(tasks.map(({ id, needs }) => [id, needs.length]));
  const needed = new Map<string, PlanTask[]>();
  for (const task of tasks) {
    for (const need of task.needs) {
      const list = needed.get(need) ?? [];
      list.push(task);
      needed.set(need, list);
    }
  }
  const ordered = tasks.filter(({ needs }) => needs.length === 0);
  // The loop appends to the list that it iterates.
  for (const { id } of ordered) {
    for (const task of needed.get(id) ?? []) {
      const count = (waits.get(task.id) ?? 0) - 1;
      waits.set(task.id, count);
      if (count === 0) ordered.push(task);
    }
  }
  if (ordered.length === tasks.length) return ordered;
  problems.push({ error: bad(`tasks need each other: ${cycleIn(tasks, waits)}`) });
  return tasks;
}

/** Returns the tasks of one cycle, in order. */
function cycleIn(tasks: readonly PlanTask[], waits: ReadonlyMap<string, number>): string {
  const blockedTasks = tasks.filter(({ id }) => waits.get(id) !== 0);
  const byId = new Map(blockedTasks.map((task) => [task.id, task.needs]));
  const next = (id: string) => byId.get(id)?.find((need) => byId.has(need)) ?? "";
  // After as many steps as there are tasks, the search is inside a cycle.
  const from = blockedTasks.reduce((at) => next(at), blockedTasks[0]?.id ?? "");
  const cycle = [from];
  for (let at = next(from); at !== from; at = next(at)) cycle.push(at);
  const path = cycle.length > SHOWN ? [...cycle.slice(0, SHOWN), "…"] : [...cycle, from];
  return path.map((id) => quoted(id)).join(" needs ");
}
