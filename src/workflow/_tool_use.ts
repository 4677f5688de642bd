/**
 * The record of the use of one tool: the number of calls, their times, the words of searches that
 * found it, and the tools that were called next.
 *
 * @module
 */

import { isObject } from "../core/json.ts";
import { parseToolId } from "../core/tool_id.ts";
import { mergedShapes, parseShape, type Shape } from "./_result_shape.ts";

/** Counts by name. */
export type Counts = Readonly<Record<string, number>>;

/** The use of one tool with one definition. */
export interface ToolUse {
  /** The hash of the definition. */
  readonly hash: string;
  /** The time of the last use, in milliseconds since the epoch. */
  readonly at: number;
  readonly calls: number;
  readonly errors: number;
  /** The number of calls by step of duration. */
  readonly times: Counts;
  /** The tools that were called next. */
  readonly next: Counts;
  /** The words of the queries that found the tool, as hashes. */
  readonly words: Counts;
  readonly shape?: Shape | undefined;
}

/** The number of steps of duration per factor of two. */
const STEPS = 4;
const MOST_TIMES = 1_000;
const MOST_NEXT = 20;
const MOST_WORDS = 60;
const LARGEST = 1e12;

const NOTHING = { calls: 0, errors: 0, times: {}, next: {}, words: {} };

/** Returns the step of a duration. */
export function durationStep(ms: number): number {
  return Math.round(STEPS * Math.log2(Math.max(ms, 0.05)));
}

/** Returns the duration that this share of calls did not exceed, accurate to a tenth. */
export function timeAt({ times }: Pick<ToolUse, "times">, part: number): number {
  const steps = Object.entries(times).sort(([one], [other]) => Number(one) - Number(other));
  const total = sum(times);
  let runningSum = 0;
  const [step = 0] = steps.find(([, count]) => (runningSum += count) >= part * total) ?? [];
  return Number((2 ** (Number(step) / STEPS)).toPrecision(2));
}

/** Returns the sum of all counts. */
export function sum(counts: Counts): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

/** Adds later use. If the definition has changed, only the later use counts. */
export function mergedUse(before: ToolUse | undefined, later: ToolUse): ToolUse {
  if (before?.hash !== later.hash) return mergedUse({ ...later, ...NOTHING }, later);
  const shape = mergedShapes(before.shape, later.shape);
  return {
    hash: later.hash,
    at: Math.max(before.at, later.at),
    calls: before.calls + later.calls,
    errors: before.errors + later.errors,
    times: recent(added(before.times, later.times)),
    next: largest(added(before.next, later.next), MOST_NEXT),
    words: largest(added(before.words, later.words), MOST_WORDS),
    ...(shape && { shape }),
  };
}

/** Parses a stored record. Throws if it is invalid. */
export function parseUse(json: unknown): ToolUse {
  if (!isObject(json) || typeof json.hash !== "string" || !/^sha256-\w{64}$/.test(json.hash)) {
    throw new TypeError("it is not a record of use");
  }
  const { hash, at, calls, errors, times, next, words, shape } = json;
  return {
    hash,
    at: countOf(at, 1e15),
    calls: countOf(calls),
    errors: countOf(errors),
    times: countsOf(times, (name) => /^-?\d{1,3}$/.test(name)),
    next: countsOf(next, (name) => parseToolId(name) === name),
    words: countsOf(words, (name) => /^[0-9a-z]{1,7}$/.test(name)),
    ...(shape !== undefined && { shape: parseShape(shape) }),
  };
}

function countOf(value: unknown, most = LARGEST): number {
  if (Number.isInteger(value) && Number(value) >= 0 && Number(value) <= most) return Number(value);
  throw new TypeError("it has an invalid count");
}

function countsOf(value: unknown, isKnown: (name: string) => boolean): Counts {
  const entries = isObject(value) ? Object.entries(value).slice(0, 200) : [];
  return Object.fromEntries(
    entries.filter(([name]) => isKnown(name)).map(([name, count]) => [name, countOf(count)]),
  );
}

function added(one: Counts, other: Counts): Counts {
  const all = new Map(Object.entries(one));
  for (const [name, count] of Object.entries(other)) all.set(name, (all.get(name) ?? 0) + count);
  return Object.fromEntries(all);
}

/** Halves large counts, so that newer calls have more weight. */
function recent(times: Counts): Counts {
  if (sum(times) <= MOST_TIMES) return times;
  const halved = Object.entries(times).map(([step, count]) => [step, count >> 1] as const);
  return Object.fromEntries(halved.filter(([, count]) => count > 0));
}

function largest(counts: Counts, most: number): Counts {
  const entries = Object.entries(counts);
  if (entries.length <= most) return counts;
  return Object.fromEntries(entries.sort(([, one], [, other]) => other - one).slice(0, most));
}
