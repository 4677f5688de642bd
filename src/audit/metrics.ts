/**
 * Counts calls, their durations, and the tokens of answers since the start, in memory that does not
 * grow with the number of calls.
 *
 * @module
 */

import type { JsonObject } from "../core/json.ts";
import { textLengthOf, textSampleOf, tokensOf } from "../core/tokens.ts";
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
/** Smaller values count as 0. */
const LEAST = 0.001;
/** One in so many answers is a sample. The first answers are all samples. */
const SAMPLE_EVERY = 16;
/** How many characters of samples are kept of each kind of answer. */
const SAMPLES_MAX = 65_536;

/** A distribution of values in constant memory: a histogram whose buckets grow with the values. */
export class Histogram {
  readonly #buckets = new Uint32Array(BUCKETS);
  #count = 0;
  #total = 0;
  #most = 0;

  /** Adds a value, which must not be negative. */
  add(value: number): void {
    const at = value < LEAST ? 0 : 1 + Math.round(Math.log(value / LEAST) / STEP);
    const bucket = Math.min(at, BUCKETS - 1);
    this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1;
    this.#count++;
    this.#total += value;
    this.#most = Math.max(this.#most, value);
  }

  /** Returns the distribution of all values, each multiplied by a factor. */
  spread(factor = 1): Distribution {
    return {
      count: this.#count,
      total: rounded(this.#total * factor),
      median: rounded(this.#part(0.5) * factor),
      p95: rounded(this.#part(0.95) * factor),
    };
  }

  /** Returns the value below which this part of all values lies. */
  #part(part: number): number {
    let remaining = Math.ceil(part * this.#count);
    const at = this.#buckets.findIndex((count) => (remaining -= count) <= 0);
    return at <= 0 ? 0 : Math.min(LEAST * Math.exp((at - 1) * STEP), this.#most);
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
    const at = this.#count++;
    if (at >= SAMPLE_EVERY && at % SAMPLE_EVERY !== 0) return;
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
    const { total, ...all } = this.#lengths.spread(length === 0 ? 0 : tokens / length);
    return { ...all, total: Math.round(total) };
  }
}

/** Counts calls and answers. */
export class Metrics {
  readonly #since = new Date().toISOString();
  readonly #ms = new Histogram();
  readonly #ended: Record<EndRecord["outcome"], number> = {
    result: 0,
    "tool error": 0,
    ask: 0,
    failed: 0,
  };
  readonly #failed = new Map<string, number>();
  readonly #answers = new Map<string, AnswerCounts>();

  /** Counts the end of a call. Other records are ignored. */
  recorded(record: JournalRecord): void {
    if (record.kind !== "end") return;
    const { outcome, code, ms } = record;
    this.#ended[outcome]++;
    this.#ms.add(ms);
    if (code !== undefined) this.#failed.set(code, (this.#failed.get(code) ?? 0) + 1);
  }

  /** Counts an answer that a model reads. Its tokens are counted when they are reported. */
  answered(what: string, answer: JsonObject): void {
    const length = textLengthOf(answer);
    if (length === undefined) return;
    const answers = this.#answers.get(what) ?? new AnswerCounts();
    this.#answers.set(what, answers);
    answers.add(answer, length);
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
        ms: this.#ms.spread(),
      },
      tokens: Object.fromEntries(
        [...this.#answers].map(([what, answers]) => [what, answers.tokens()] as const)
          .sort(([one], [other]) => one < other ? -1 : 1),
      ),
    };
  }
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
