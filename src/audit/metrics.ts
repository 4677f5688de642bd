/**
 * Counts calls, their durations, and the tokens of answers since the start, in memory that does not
 * grow with the number of calls.
 *
 * @module
 */

import type { JsonObject } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";
import { textLengthOf, textSampleOf, tokensOf } from "../core/tokens.ts";
import type { HistogramSample, Labels, MetricFamily, ValueSample } from "./metric_families.ts";
import type { ServedOperation } from "../protocol/connection.ts";
import type { EndRecord, JournalRecord } from "./journal.ts";

/** The number of values, their sum, and their distribution. */
export interface Distribution {
  readonly count: number;
  readonly total: number;
  /** The median. Like `p95`, it is within 5 percent of the exact value. */
  readonly median: number;
  readonly p95: number;
}

/** All counts, as plain JSON. */
export interface MetricsReport {
  /** The time when counting began. */
  readonly since: string;
  readonly calls: {
    readonly count: number;
    /** How many calls ended with an error of any kind. */
    readonly errors: number;
    /** How many calls ended with an approval request. The repeated call counts again. */
    readonly asked: number;
    /** How many calls failed, by error code. */
    readonly failed: Readonly<Record<string, number>>;
    readonly ms: Distribution;
  };
  /** Estimated tokens, by kind of answer: `search`, `call`, `tools/list meta_only` and others. */
  readonly tokens: Readonly<Record<string, Distribution>>;
}

/** The logarithm of the ratio of two neighbouring buckets. */
const STEP = Math.log(1.1);
const BUCKETS = 300;
/** The smallest value of a bucket. Smaller values count as 0. */
const LEAST = 0.001;
/** The first answers of each kind, as many as this number, are samples; then one of this many. */
const SAMPLE_EVERY = 16;
/** The maximum number of tools' names whose labels are cached. */
const LABELS_MAX = 2_000;
/** The labels of the outcomes of calls. */
const LABEL_OF: Readonly<Record<EndRecord["outcome"], string>> = {
  result: "result",
  "tool error": "tool_error",
  ask: "asked",
  failed: "failed",
};

/** The tool of a call, with its name and the name of its server. */
export interface CalledTool {
  readonly id: ToolId;
  readonly names: { readonly server: string; readonly tool: string };
}

/** The maximum number of characters of the samples of each kind of answer. */
const SAMPLES_MAX = 65_536;

/**
 * A distribution of values in constant memory: a histogram with wider buckets for larger values.
 */
export class Histogram {
  readonly #buckets = new Uint32Array(BUCKETS);
  #count = 0;
  #total = 0;
  #maximum = 0;

  /** Adds a value, which must not be negative. */
  add(value: number): void {
    const index = value < LEAST ? 0 : 1 + Math.round(Math.log(value / LEAST) / STEP);
    const bucket = Math.min(index, BUCKETS - 1);
    this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1;
    this.#count++;
    this.#total += value;
    this.#maximum = Math.max(this.#maximum, value);
  }

  /** Returns the distribution of all values, each multiplied by a factor. */
  distribution(factor = 1): Distribution {
    return {
      count: this.#count,
      total: roundValue(this.#total * factor),
      median: roundValue(this.#quantile(0.5) * factor),
      p95: roundValue(this.#quantile(0.95) * factor),
    };
  }

  /** Returns a quantile: this share of all values, from 0 to 1, is not above it. */
  #quantile(share: number): number {
    let remaining = Math.ceil(share * this.#count);
    const bucket = this.#buckets.findIndex((count) => (remaining -= count) <= 0);
    return bucket <= 0 ? 0 : Math.min(LEAST * Math.exp((bucket - 1) * STEP), this.#maximum);
  }
}

/**
 * The answers of one kind. Only their lengths are counted when they are sent, because counting the
 * tokens of each answer took longer than recording its call.
 */
class AnswerCounts {
  readonly #lengths = new Histogram();
  /** The texts of the last samples. */
  readonly #samples: string[] = [];
  #count = 0;
  #size = 0;

  add(answer: JsonObject, length: number): void {
    this.#lengths.add(length);
    const index = this.#count++;
    if (index >= SAMPLE_EVERY && index % SAMPLE_EVERY !== 0) return;
    const sample = textSampleOf(answer);
    this.#samples.push(sample);
    this.#size += sample.length;
    while (this.#size > SAMPLES_MAX && this.#samples.length > 1) {
      this.#size -= this.#samples.shift()?.length ?? 0;
    }
  }

  /** Returns the tokens of all answers, estimated from the samples. */
  tokens(): Distribution {
    const { length } = this.#samples.join("");
    const tokens = this.#samples.reduce((sum, sample) => sum + tokensOf(sample), 0);
    const { total, ...all } = this.#lengths.distribution(length === 0 ? 0 : tokens / length);
    return { ...all, total: Math.round(total) };
  }
}

/** The label that replaces an unknown value, or a value beyond the maximum number. */
export const OTHER = "_OTHER";
/** The labels of a call of a tool that no server lists: a model chose its name. */
const UNLISTED = { server: OTHER, tool: OTHER };
/** The maximum number of label combinations of one metric. */
const COUNTS_MAX = 2_000;
/** The maximum number of codes of JSON-RPC errors that are labels. Servers choose them. */
const ERROR_CODES_MAX = 50;

/** The bounds of durations in seconds, as the conventions for MCP advise. */
export const DURATION_BOUNDS: readonly number[] = [
  ...[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5],
  ...[10, 30, 60, 120, 300],
];

/** A tree of the values of labels. Its leaves are counts. */
type Tree<T> = Map<string, Tree<T> | T>;

/** Finds the count of three values of labels. */
class LabelTree<T extends object> {
  readonly #names: readonly [string, string, string];
  readonly #make: () => T;
  readonly #root: Tree<T> = new Map();
  #size = 0;

  constructor(names: readonly [string, string, string], make: () => T) {
    this.#names = names;
    this.#make = make;
  }

  /** Returns the count of these values. Beyond the maximum, returns the count of `OTHER`. */
  countOf(first: string, second: string, third: string): T {
    const existing = this.#find(first, second, third);
    if (existing !== undefined) return existing;
    const isFull = this.#size >= COUNTS_MAX;
    const [one, two, three] = isFull ? [OTHER, OTHER, OTHER] : [first, second, third];
    const shared = this.#find(one, two, three);
    if (shared !== undefined) return shared;
    this.#size++;
    const count = this.#make();
    branch(branch(this.#root, one), two).set(three, count);
    return count;
  }

  /** Returns all counts with their labels. An empty value of a label is left out. */
  all(): readonly (readonly [Labels, T])[] {
    const [one, two, three] = this.#names;
    const counts: [Labels, T][] = [];
    for (const [first, seconds] of this.#root as Map<string, Tree<T>>) {
      for (const [second, thirds] of seconds as Map<string, Tree<T>>) {
        for (const [third, count] of thirds as Map<string, T>) {
          const pairs = [[one, first], [two, second], [three, third]] as const;
          counts.push([Object.fromEntries(pairs.filter(([, value]) => value !== "")), count]);
        }
      }
    }
    return counts;
  }

  #find(first: string, second: string, third: string): T | undefined {
    const seconds = this.#root.get(first) as Tree<T> | undefined;
    const thirds = seconds?.get(second) as Map<string, T> | undefined;
    return thirds?.get(third);
  }
}

function branch<T>(tree: Tree<T>, key: string): Tree<T> {
  let next = tree.get(key) as Tree<T> | undefined;
  if (next === undefined) tree.set(key, next = new Map());
  return next;
}

/** Counts with three labels. */
export class LabelledCounts {
  readonly #tree: LabelTree<{ value: number }>;

  /** Takes the names of the labels. */
  constructor(names: readonly [string, string, string]) {
    this.#tree = new LabelTree(names, () => ({ value: 0 }));
  }

  /** Adds one. */
  add(first: string, second: string, third: string): void {
    this.#tree.countOf(first, second, third).value++;
  }

  /** Returns the counts. */
  samples(): readonly ValueSample[] {
    return this.#tree.all().map(([labels, { value }]) => ({ labels, value }));
  }
}

/** The durations of one kind of operation. */
export class Durations {
  readonly #counts = new Uint32Array(DURATION_BOUNDS.length + 1);
  #sum = 0;

  /** Adds a duration in milliseconds. */
  add(ms: number): void {
    const seconds = ms / 1_000;
    this.#sum += seconds;
    let bucket = 0;
    while (bucket < DURATION_BOUNDS.length && seconds > (DURATION_BOUNDS[bucket] ?? 0)) bucket++;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
  }

  /** Returns the distribution. */
  sample(labels: Labels): HistogramSample {
    return { labels, counts: [...this.#counts], sum: this.#sum };
  }
}

/** Durations with three labels. */
export class LabelledDurations {
  readonly #tree: LabelTree<Durations>;

  /** Takes the names of the labels. */
  constructor(names: readonly [string, string, string]) {
    this.#tree = new LabelTree(names, () => new Durations());
  }

  /** Returns the durations of these values of the labels. */
  of(first: string, second: string, third: string): Durations {
    return this.#tree.countOf(first, second, third);
  }

  /** Returns the distributions. */
  samples(): readonly HistogramSample[] {
    return this.#tree.all().map(([labels, durations]) => durations.sample(labels));
  }
}

/** A request to a server that has ended. */
export interface SentOperation {
  readonly server: string;
  readonly method: string;
  readonly ms: number;
  /** The `error.type`; empty if it succeeded. */
  readonly error: string;
}

/** The names that may be values of labels. Clients choose the names that they send. */
export interface KnownNames {
  /** Returns whether MCP defines a method. */
  hasMethod(method: string): boolean;
  /** Returns whether clients may call a tool by this name. */
  hasName(name: string): boolean;
  /** Returns whether a tool is listed. */
  hasTool(id: ToolId): boolean;
}

/** Counts calls and answers. */
export class Metrics {
  /** The names that may be values of labels; none before the gateway sets them. */
  names: KnownNames | undefined;
  readonly #served = new LabelledDurations(["mcp_method_name", "gen_ai_tool_name", "error_type"]);
  readonly #sent = new LabelledDurations(["mcp_method_name", "pml_server", "error_type"]);
  readonly #calls = new LabelledCounts(["server", "tool", "outcome"]);
  /** The codes of JSON-RPC errors that are labels. */
  readonly #errorCodes = new Set<string>();
  /** The labels of names that were looked up. */
  readonly #labels = new Map<string, string>();
  readonly #since = new Date().toISOString();
  readonly #callMs = new Histogram();
  readonly #ended: Record<EndRecord["outcome"], number> = {
    result: 0,
    "tool error": 0,
    ask: 0,
    failed: 0,
  };
  readonly #failed = new Map<string, number>();
  readonly #answers = new Map<string, AnswerCounts>();

  /** Counts a request of a client. */
  countServed({ method, tool, ms, error }: ServedOperation): void {
    const methodLabel = this.names?.hasMethod(method) === true ? method : OTHER;
    const toolLabel = tool === "" ? tool : this.#labelOf(tool);
    this.#served.of(methodLabel, toolLabel, this.#errorLabel(error)).add(ms);
  }

  /** Counts a request to a server. */
  countSent({ server, method, ms, error }: SentOperation): void {
    const methodLabel = this.names?.hasMethod(method) === true ? method : OTHER;
    this.#sent.of(methodLabel, server, this.#errorLabel(error)).add(ms);
  }

  /** Returns the label of an error. The number of codes is limited, because servers choose them. */
  #errorLabel(error: string): string {
    if (!/^-?\d/.test(error) || this.#errorCodes.has(error)) return error;
    // guard: metrics-numbers
    if (this.#errorCodes.size >= ERROR_CODES_MAX) return OTHER;
    this.#errorCodes.add(error);
    return error;
  }

  /** Returns the label of a tool's name. Caches known names, because each call looks one up. */
  #labelOf(name: string): string {
    const label = this.#labels.get(name);
    if (label !== undefined) return label;
    if (this.names?.hasName(name) !== true) return OTHER;
    if (this.#labels.size < LABELS_MAX) this.#labels.set(name, name);
    return name;
  }

  /** Counts the end of a call. Other records are ignored. */
  countRecord(record: JournalRecord, call?: CalledTool): void {
    if (record.kind !== "end") return;
    const { outcome, code, ms } = record;
    if (call !== undefined) {
      const isListed = this.names?.hasTool(call.id) === true;
      const { server, tool } = isListed ? call.names : UNLISTED;
      this.#calls.add(server, tool, LABEL_OF[outcome]);
    }
    this.#ended[outcome]++;
    this.#callMs.add(ms);
    if (code !== undefined) this.#failed.set(code, (this.#failed.get(code) ?? 0) + 1);
  }

  /** Counts an answer that a model reads. Its tokens are counted when they are reported. */
  countAnswer(what: string, answer: JsonObject): void {
    const length = textLengthOf(answer);
    if (length === undefined) return;
    const answers = this.#answers.get(what) ?? new AnswerCounts();
    this.#answers.set(what, answers);
    answers.add(answer, length);
  }

  /** Returns the counts with labels. */
  families(): readonly MetricFamily[] {
    const bounds = DURATION_BOUNDS;
    const tokens = [...this.#answers].map(([what, answers]) => ({
      what,
      tokens: answers.tokens(),
    }));
    const byAnswer = (valueOf: (distribution: Distribution) => number): readonly ValueSample[] =>
      tokens.map(({ what, tokens }) => ({ labels: answerLabels(what), value: valueOf(tokens) }));
    const errors = [...this.#failed].map(([code, value]) => ({ labels: { code }, value }));
    return [
      {
        ...{ name: "mcp_server_operation_duration_seconds", type: "histogram", bounds },
        help: "Duration of requests of clients",
        samples: this.#served.samples(),
      },
      {
        ...{ name: "mcp_client_operation_duration_seconds", type: "histogram", bounds },
        help: "Duration of requests to servers",
        samples: this.#sent.samples(),
      },
      {
        ...{ name: "pml_calls_total", type: "counter" },
        help: "Calls by server, listed tool and outcome",
        samples: this.#calls.samples(),
      },
      {
        ...{ name: "pml_call_errors_total", type: "counter" },
        help: "Calls that failed, by error code",
        samples: errors,
      },
      {
        ...{ name: "pml_answers_total", type: "counter" },
        help: "Answers that a model reads, by method and exposure",
        samples: byAnswer(({ count }) => count),
      },
      {
        ...{ name: "pml_answer_tokens_total", type: "counter" },
        help: "Estimated tokens of the answers that a model reads",
        samples: byAnswer(({ total }) => total),
      },
    ];
  }

  /** Returns all counts. */
  report(): MetricsReport {
    const { result, ask, failed } = this.#ended;
    const errors = this.#ended["tool error"] + failed;
    return {
      since: this.#since,
      calls: {
        count: result + ask + errors,
        errors,
        asked: ask,
        failed: Object.fromEntries(this.#failed),
        ms: this.#callMs.distribution(),
      },
      tokens: Object.fromEntries(
        [...this.#answers].map(([what, answers]) => [what, answers.tokens()] as const)
          .sort(([one], [other]) => one < other ? -1 : 1),
      ),
    };
  }
}

/** Returns the labels of a kind of answers: `tools/list hybrid`, or a meta-tool. */
function answerLabels(what: string): Readonly<Record<string, string>> {
  const [method = "", mode] = what.split(" ", 2);
  return mode === undefined ? { method } : { method, mode };
}

function roundValue(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
