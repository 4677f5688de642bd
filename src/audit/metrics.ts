/**
 * Counts what happened since the start: calls and how long they took, and what answers cost a
 * client in tokens. It takes the same memory after a million calls as after one.
 *
 * @module
 */

import { type Json, type JsonObject, objectOf, textOf } from "../core/json.ts";
import { tokensOf } from "../core/tokens.ts";
import type { EndRecord, JournalRecord } from "./journal.ts";

/** How many there were, what they come to, and how they are spread. */
export interface Spread {
  readonly count: number;
  readonly total: number;
  /** The middle one; like `p95` within 5 of a hundred of what it was. */
  readonly median: number;
  readonly p95: number;
}

/** What was counted, as plain JSON. */
export interface MetricsReport {
  /** Since when. */
  readonly since: string;
  readonly calls: {
    readonly count: number;
    /** How many ended in an error, whoever made it. */
    readonly errors: number;
    /** How many had to ask first, and came again if the answer was yes. */
    readonly asked: number;
    /** How many failed with each code. */
    readonly failed: Readonly<Record<string, number>>;
    readonly ms: Spread;
  };
  /** Estimated tokens, by what was answered: `search`, `call`, `tools/list meta_only` and others. */
  readonly tokens: Readonly<Record<string, Spread>>;
}

/** Each bucket is wider than the one before by this. */
const STEP = Math.log(1.1);
const BUCKETS = 300;
/** The least value that is told from nothing. */
const LEAST = 0.001;
/** Texts that are longer than their pieces together are estimated by these, from start to end. */
const PIECES = 16;
const PIECE = 256;
/** The same for lists, which are few and have to be right. */
const LIST_PIECE = 4_096;
/** So many answers wait at most until there is time to count them. */
const WAITING_MAX = 64;
const SOON_MS = 20;

/** A spread of values in constant memory: a histogram whose buckets widen with the values. */
export class Tally {
  readonly #buckets = new Uint32Array(BUCKETS);
  #count = 0;
  #total = 0;
  #most = 0;

  /** Takes a value, which must not be negative. */
  add(value: number): void {
    const at = value < LEAST ? 0 : 1 + Math.round(Math.log(value / LEAST) / STEP);
    const bucket = Math.min(at, BUCKETS - 1);
    this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1;
    this.#count++;
    this.#total += value;
    this.#most = Math.max(this.#most, value);
  }

  /** Gives what it has come to. */
  spread(): Spread {
    return {
      count: this.#count,
      total: rounded(this.#total),
      median: this.#part(0.5),
      p95: this.#part(0.95),
    };
  }

  /** Gives the value below which this part of all lies. */
  #part(part: number): number {
    let left = Math.ceil(part * this.#count);
    const at = this.#buckets.findIndex((count) => (left -= count) <= 0);
    return at <= 0 ? 0 : rounded(Math.min(LEAST * Math.exp((at - 1) * STEP), this.#most));
  }
}

/** Counts calls and answers. */
export class Metrics {
  readonly #since = new Date().toISOString();
  readonly #ms = new Tally();
  readonly #ended: Record<EndRecord["outcome"], number> = {
    result: 0,
    "tool error": 0,
    ask: 0,
    failed: 0,
  };
  readonly #failed = new Map<string, number>();
  readonly #tokens = new Map<string, Tally>();
  #waiting: (() => void)[] = [];

  /** Takes note of the end of a call; other records count for nothing. */
  recorded(record: JournalRecord): void {
    if (record.kind !== "end") return;
    const { outcome, code, ms } = record;
    this.#ended[outcome]++;
    this.#ms.add(ms);
    if (code !== undefined) this.#failed.set(code, (this.#failed.get(code) ?? 0) + 1);
  }

  /**
   * Takes note of an answer to a client. Counting waits until the answer is out; of a long one only
   * pieces are kept and read.
   */
  answered(what: string, answer: JsonObject): void {
    const { tools, content } = answer;
    // A question to the person is no answer yet.
    if (tools === undefined && content === undefined) return;
    const tally = this.#tokens.get(what) ?? new Tally();
    this.#tokens.set(what, tally);
    const [texts, piece] = tools === undefined
      ? [textsOf(content), PIECE]
      : [[JSON.stringify(tools)], LIST_PIECE];
    const length = texts.reduce((sum, text) => sum + text.length, 0);
    const isLong = length > PIECES * piece;
    const sample = isLong ? piecesOf(texts, { length, piece }) : texts.join("\n");
    const part = isLong ? sample.length / length : 1;
    const isFirst = this.#waiting.push(() => tally.add(Math.round(tokensOf(sample) / part))) === 1;
    if (this.#waiting.length === WAITING_MAX) this.#countAll();
    else if (isFirst) Deno.unrefTimer(setTimeout(() => this.#countAll(), SOON_MS));
  }

  /** Gives what was counted. */
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

/** What a model reads of a result: its texts. Pictures and sounds are no text, and count nothing. */
function textsOf(content: Json | undefined): readonly string[] {
  const blocks: readonly Json[] = Array.isArray(content) ? content : [];
  return blocks.map(objectOf).map(({ text, resource }) => textOf(text ?? objectOf(resource).text));
}

/** Gives pieces of texts that lie evenly in all that they are together. */
function piecesOf(
  texts: readonly string[],
  { length, piece }: { readonly length: number; readonly piece: number },
): string {
  const pieces: string[] = [];
  // The middle of each of as many parts: the beginning of a text is seldom like the rest of it.
  const next = () => Math.floor((pieces.length + 0.5) * length / PIECES);
  let before = 0;
  for (const text of texts) {
    for (let at = next() - before; at < text.length; at = next() - before) {
      pieces.push(text.slice(at, at + piece));
    }
    before += text.length;
  }
  return pieces.join("\n");
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
