/**
 * Counts calls and their durations, and the tokens that answers cost a client, since the start. The
 * memory that it needs does not grow with the number of calls.
 *
 * @module
 */

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
    /** How many calls led to a question. After a yes they came again. */
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
/** Smaller values count as nothing. */
const LEAST = 0.001;
/** How long answers wait to be counted, in milliseconds: so few at once that no call waits for many. */
const SOON_MS = 2;

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

  /** Returns the distribution of all values. */
  spread(): Distribution {
    return {
      count: this.#count,
      total: rounded(this.#total),
      median: this.#part(0.5),
      p95: this.#part(0.95),
    };
  }

  /** Returns the value below which this part of all values lies. */
  #part(part: number): number {
    let left = Math.ceil(part * this.#count);
    const at = this.#buckets.findIndex((count) => (left -= count) <= 0);
    return at <= 0 ? 0 : rounded(Math.min(LEAST * Math.exp((at - 1) * STEP), this.#most));
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
  readonly #tokens = new Map<string, Histogram>();
  #waiting: (() => void)[] = [];

  /** Counts the end of a call. Other records are ignored. */
  recorded(record: JournalRecord): void {
    if (record.kind !== "end") return;
    const { outcome, code, ms } = record;
    this.#ended[outcome]++;
    this.#ms.add(ms);
    if (code !== undefined) this.#failed.set(code, (this.#failed.get(code) ?? 0) + 1);
  }

  /** Counts an answer that a model reads. Its tokens are counted later, when it was sent. */
  answered(what: string, tokens: (() => number) | undefined): void {
    if (tokens === undefined) return;
    const tally = this.#tokens.get(what) ?? new Histogram();
    this.#tokens.set(what, tally);
    const isFirst = this.#waiting.push(() => tally.add(tokens())) === 1;
    if (isFirst) Deno.unrefTimer(setTimeout(() => this.#countAll(), SOON_MS));
  }

  /** Returns all counts. */
  report(): MetricsReport {
    this.#countAll();
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
        [...this.#tokens].map(([what, tally]) => [what, tally.spread()] as const)
          .sort(([one], [other]) => one < other ? -1 : 1),
      ),
    };
  }

  #countAll(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const work of waiting) work();
  }
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
