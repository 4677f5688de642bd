/**
 * The record of how one tool was used: the number of calls and errors, their durations, the words of
 * searches that led to a call, the types of the results, and the tools that were called next.
 *
 * @module
 */

import { isObject } from "../core/json.ts";
import { parseToolId } from "../core/tool_id.ts";
import { mergeLimited, parseShape, type Shape } from "./_result_shape.ts";

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
  /** The number of calls by the step of their duration; see `durationStep`. */
  readonly times: Counts;
  /** The tools that were called next. */
  readonly next: Counts;
  /** The words of queries that found the tool, if it was then called with success, as hashes. */
  readonly words: Counts;
  /** The types of its results. */
  readonly shape?: Shape | undefined;
}

/** Durations are counted in logarithmic steps: four steps per factor of two. */
const STEPS = 4;
/** The limits of the record: measured durations, next tools, words of queries, and each number. */
const MOST_TIMES = 1_000;
const MOST_NEXT = 20;
const MOST_WORDS = 60;
const COUNT_MAX = 1e12;

const EMPTY_COUNTS = { calls: 0, errors: 0, times: {}, next: {}, words: {} };

/** Returns the logarithmic step of a duration. */
export function durationStep(ms: number): number {
  return Math.round(STEPS * Math.log2(Math.max(ms, 0.05)));
}

/** Returns the duration that a share of the calls did not exceed, accurate to 15%. */
export function percentileMs({ times }: Pick<ToolUse, "times">, share: number): number {
  const steps = Object.entries(times).sort(([one], [other]) => Number(one) - Number(other));
  const total = sum(times);
  let runningSum = 0;
  const [step = 0] = steps.find(([, count]) => (runningSum += count) >= share * total) ?? [];
  return Number((2 ** (Number(step) / STEPS)).toPrecision(2));
}

/** Returns the sum of all counts. */
export function sum(counts: Counts): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

/** Adds later use to earlier use. If the definition has changed, only the later use counts. */
export function mergeUse(before: ToolUse | undefined, later: ToolUse): ToolUse {
  // Merges with an empty record, so that the limits of the counts apply to the later use, too.
  if (before?.hash !== later.hash) return mergeUse({ ...later, ...EMPTY_COUNTS }, later);
  const shape = mergeLimited(before.shape, later.shape);
  return {
    hash: later.hash,
    at: Math.max(before.at, later.at),
    calls: before.calls + later.calls,
    errors: before.errors + later.errors,
    times: halveIfMany(addCounts(before.times, later.times)),
    next: keepLargest(addCounts(before.next, later.next), MOST_NEXT),
    words: keepLargest(addCounts(before.words, later.words), MOST_WORDS),
    ...(shape && { shape }),
  };
}

/**
 * Parses a stored record. Throws if its hash, a number or the shape is invalid. Leaves out invalid
 * names of steps, tools and words.
 */
export function parseUse(json: unknown): ToolUse {
  if (!isObject(json) || typeof json.hash !== "string" || !/^sha256-\w{64}$/.test(json.hash)) {
    throw new TypeError("it is not a record of use");
  }
  const { hash, at, calls, errors, times, next, words, shape } = json;
  return {
    hash,
    at: parseCount(at, 1e15),
    calls: parseCount(calls),
    errors: parseCount(errors),
    times: parseCounts(times, (name) => /^-?\d{1,3}$/.test(name)),
    next: parseCounts(next, (name) => parseToolId(name) === name),
    words: parseCounts(words, (name) => /^[0-9a-z]{1,7}$/.test(name)),
    ...(shape !== undefined && { shape: parseShape(shape) }),
  };
}

function parseCount(value: unknown, most = COUNT_MAX): number {
  if (Number.isInteger(value) && Number(value) >= 0 && Number(value) <= most) return Number(value);
  throw new TypeError("it has an invalid count");
}

function parseCounts(value: unknown, isName: (name: string) => boolean): Counts {
  const entries = isObject(value) ? Object.entries(value).slice(0, 200) : [];
  return Object.fromEntries(
    entries.filter(([name]) => isName(name)).map(([name, count]) => [name, parseCount(count)]),
  );
}

function addCounts(one: Counts, other: Counts): Counts {
  const all = new Map(Object.entries(one));
  for (const [name, count] of Object.entries(other)) all.set(name, (all.get(name) ?? 0) + count);
  return Object.fromEntries(all);
}

/** Halves all counts if their sum is large, so that newer calls have more weight. */
function halveIfMany(times: Counts): Counts {
  if (sum(times) <= MOST_TIMES) return times;
  const halved = Object.entries(times).map(([step, count]) => [step, count >> 1] as const);
  return Object.fromEntries(halved.filter(([, count]) => count > 0));
}

function keepLargest(counts: Counts, most: number): Counts {
  const entries = Object.entries(counts);
  if (entries.length <= most) return counts;
  return Object.fromEntries(entries.sort(([, one], [, other]) => other - one).slice(0, most));
}
