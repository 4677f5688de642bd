/**
 * Ranks tools by the words of a query: BM25F over weighted fields.
 *
 * @module
 */

import { type Document, Documents } from "./_documents.ts";
import { FIELD_WEIGHTS } from "./_fields.ts";
import { makeSynonyms } from "./_synonyms.ts";
import { termsOf } from "./_terms.ts";
import type { CatalogEntry } from "./catalog.ts";

const K1 = 1.2;
const B = 0.75;
/** What another word for a word of the query is worth. */
const SYNONYM_WORTH = 0.4;
/** How much a tool gains whose whole name is asked for. */
const NAME_GAIN = 0.3;
/** How much a tool gains by the mean of the best three of its server, itself among them. */
const SERVER_GAIN = 0.25;
const NEIGHBOURS = 3;
const MOST_QUERY_TERMS = 256;

/** How well each tool fits a query. */
export interface LexicalScores {
  /** On a scale that means nothing beyond the query, in the order of the tools; 0 fits in no word. */
  readonly scores: Float64Array;
  /** Says how much of the query a tool answers. */
  readonly evidence: (slot: number) => Evidence;
}

/** How much of a query a tool answers. */
export interface Evidence {
  /** The part of the query's words that it has, the rare ones counting more; from 0 to 1. */
  readonly covered: number;
  /** The same, against how much words can say at all in this catalog; in its name they say twice as much. */
  readonly said: number;
}

/** A word that is looked for, and what it is worth. */
interface Wanted {
  readonly id: number | undefined;
  readonly rarity: number;
  /** The other words for it. */
  readonly others: readonly number[];
}

/** The words of tools, where each of them stands, and how much it says there. */
export class LexicalIndex {
  readonly #documents = new Documents();
  readonly #synonyms = makeSynonyms();
  #entries: readonly CatalogEntry[] = [];
  #read: readonly Document[] = [];
  /** Where the places of each word begin in the two lists behind. */
  #starts = new Uint32Array(1);
  #slots = new Uint32Array();
  #weights = new Float32Array();
  /** The server of each tool, as a number. */
  #servers = new Uint32Array();

  /** Takes the tools there are now; only those that are new are read. */
  set(entries: readonly CatalogEntry[]): void {
    this.#documents.forgetUnused(this.#slots.length);
    this.#entries = entries;
    this.#read = this.#documents.of(entries);
    const numbers = new Map<string, number>();
    this.#servers = Uint32Array.from(entries, ({ server: { name } }) => {
      if (!numbers.has(name)) numbers.set(name, numbers.size);
      return numbers.get(name) ?? 0;
    });
    this.#place();
  }

  /** Says how well each tool fits a query. */
  rank(query: string): LexicalScores {
    const terms = [...new Set(termsOf(query))].slice(0, MOST_QUERY_TERMS);
    const wanted = terms.map((term) => this.#wanted(term));
    const scores = new Float64Array(this.#entries.length);
    const [slots, weights] = [this.#slots, this.#weights];
    for (const [id, worth] of worths(wanted, (other) => this.#rarity(other))) {
      const end = this.#start(id + 1);
      for (let at = this.#start(id); at < end; at++) {
        const slot = slots[at] ?? 0;
        scores[slot] = (scores[slot] ?? 0) + worth * (weights[at] ?? 0);
      }
    }
    const asked = new Uint8Array(this.#documents.size);
    for (const { id } of wanted) if (id !== undefined) asked[id] = 1;
    this.#raise(scores, asked);
    return { scores, evidence: (slot) => this.#evidence(slot, wanted) };
  }

  #wanted(term: string): Wanted {
    const id = this.#documents.idOf(term);
    const others = [...this.#synonyms.get(term) ?? []]
      .flatMap((other) => this.#documents.idOf(other) ?? []);
    return { id, rarity: this.#rarity(id), others };
  }

  /** Tools are found by their names, and beside tools of their kind. */
  #raise(scores: Float64Array, asked: Uint8Array): void {
    const best = new Float64Array(NEIGHBOURS * this.#entries.length);
    scores.forEach((score, slot) => {
      if (score === 0) return;
      let left = scores[slot] = score * (1 + NAME_GAIN * this.#nameMet(slot, asked));
      const from = NEIGHBOURS * (this.#servers[slot] ?? 0);
      for (let at = from; at < from + NEIGHBOURS; at++) {
        const held = best[at] ?? 0;
        if (left <= held) continue;
        best[at] = left;
        left = held;
      }
    });
    scores.forEach((score, slot) => {
      if (score === 0) return;
      const from = NEIGHBOURS * (this.#servers[slot] ?? 0);
      const sum = (best[from] ?? 0) + (best[from + 1] ?? 0) + (best[from + 2] ?? 0);
      scores[slot] = score + SERVER_GAIN * sum / NEIGHBOURS;
    });
  }

  /** The part of a name's words that is asked for. */
  #nameMet(slot: number, asked: Uint8Array): number {
    const { from, named } = this.#read[slot] ?? NO_WORDS;
    let met = 0;
    for (let at = from; at < named; at++) met += asked[this.#documents.term(at)] ?? 0;
    return met / Math.max(named - from, 1);
  }

  #evidence(slot: number, wanted: readonly Wanted[]): Evidence {
    const document = this.#read[slot] ?? NO_WORDS;
    const has = (id: number | undefined) =>
      id === undefined ? -1 : this.#documents.find(document, id);
    let total = 0;
    let met = 0;
    let inName = 0;
    for (const { id, rarity, others } of wanted) {
      total += rarity;
      const at = has(id);
      if (at >= 0) met += rarity;
      else if (others.some((other) => has(other) >= 0)) met += rarity * SYNONYM_WORTH;
      if (at >= 0 && at < document.named) inName += rarity;
    }
    if (total === 0) return { covered: 0, said: 0 };
    return {
      covered: met / total,
      said: (met + inName) / Math.sqrt(total * this.#rarity(undefined)),
    };
  }

  /** How much a word says: less, the more tools have it, and most where none does. */
  #rarity(id: number | undefined): number {
    const count = id === undefined ? 0 : this.#start(id + 1) - this.#start(id);
    return Math.log(1 + (this.#entries.length - count + 0.5) / (count + 0.5));
  }

  #start(id: number): number {
    return this.#starts[id] ?? this.#slots.length;
  }

  #place(): void {
    const documents = this.#documents;
    const starts = new Uint32Array(documents.size + 1);
    for (const { from, to } of this.#read) {
      for (let at = from; at < to; at++) {
        const next = documents.term(at) + 1;
        starts[next] = (starts[next] ?? 0) + 1;
      }
    }
    for (let id = 1; id < starts.length; id++) {
      starts[id] = (starts[id] ?? 0) + (starts[id - 1] ?? 0);
    }
    const total = starts.at(-1) ?? 0;
    this.#slots = new Uint32Array(total);
    this.#weights = new Float32Array(total);
    this.#starts = starts;
    const next = starts.slice();
    const means = meansOf(this.#read);
    this.#read.forEach((document, slot) => {
      const parts = partsOf(document, means);
      for (let at = document.from; at < document.to; at++) {
        const term = documents.term(at);
        const place = next[term] ?? 0;
        next[term] = place + 1;
        const weight = parts.reduce(
          (sum, part, field) => sum + part * documents.count(at, field),
          0,
        );
        this.#slots[place] = slot;
        this.#weights[place] = weight / (K1 + weight);
      }
    });
  }
}

const NO_WORDS: Document = { from: 0, to: 0, named: 0, lengths: [] };

/** Gives what each word is worth that is looked for, and each other word for one. */
function worths(
  wanted: readonly Wanted[],
  rarityOf: (id: number) => number,
): ReadonlyMap<number, number> {
  const worths = new Map<number, number>();
  for (const { rarity, others } of wanted) {
    // One that is rarer than the word itself says no more than it would.
    for (const id of others) worths.set(id, SYNONYM_WORTH * Math.min(rarity, rarityOf(id)));
  }
  for (const { id, rarity } of wanted) if (id !== undefined) worths.set(id, rarity);
  return worths;
}

/** How many words each field has, in the mean. */
function meansOf(documents: readonly Document[]): readonly number[] {
  return FIELD_WEIGHTS.map((_, field) => {
    const total = documents.reduce((sum, { lengths }) => sum + (lengths[field] ?? 0), 0);
    return Math.max(total / documents.length, 1);
  });
}

/** What one word in each field of a tool weighs: less in a long one. */
function partsOf({ lengths }: Document, means: readonly number[]): readonly number[] {
  return FIELD_WEIGHTS.map((weight, field) =>
    weight / (1 - B + B * (lengths[field] ?? 0) / (means[field] ?? 1))
  );
}
