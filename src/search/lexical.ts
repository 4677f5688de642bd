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
    this.#documents.forgetUnused(this.#used());
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
    for (const [id, worth] of worths(wanted, (other) => this.#rarity(other))) {
      for (let at = this.#start(id); at < this.#start(id + 1); at++) {
        const slot = this.#slots[at] ?? 0;
        scores[slot] = (scores[slot] ?? 0) + worth * (this.#weights[at] ?? 0);
      }
    }
    this.#raise(scores, new Set(wanted.flatMap(({ id }) => id ?? [])));
    return { scores, evidence: (slot) => this.#evidence(slot, wanted) };
  }

  /** How many words stand somewhere. */
  #used(): number {
    return this.#starts.filter((start, id) => start < this.#start(id + 1)).length;
  }

  #wanted(term: string): Wanted {
    const id = this.#documents.idOf(term);
    const others = [...this.#synonyms.get(term) ?? []]
      .flatMap((other) => this.#documents.idOf(other) ?? []);
    return { id, rarity: this.#rarity(id), others };
  }

  /** Tools are found by their names, and beside tools of their kind. */
  #raise(scores: Float64Array, wanted: ReadonlySet<number>): void {
    const best = new Float64Array(NEIGHBOURS * this.#entries.length);
    scores.forEach((score, slot) => {
      if (score === 0) return;
      let left = scores[slot] = score * (1 + NAME_GAIN * this.#nameMet(slot, wanted));
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
  #nameMet(slot: number, wanted: ReadonlySet<number>): number {
    const { terms = [], named = 0 } = this.#read[slot] ?? {};
    let met = 0;
    for (let at = 0; at < named; at++) if (wanted.has(terms[at] ?? NaN)) met += 1;
    return met / Math.max(named, 1);
  }

  #evidence(slot: number, wanted: readonly Wanted[]): Evidence {
    const { terms = new Uint32Array(), named = 0 } = this.#read[slot] ?? {};
    const most = this.#rarity(undefined);
    let total = 0;
    let met = 0;
    let inName = 0;
    for (const { id, rarity, others } of wanted) {
      total += rarity;
      const at = id === undefined ? -1 : terms.indexOf(id);
      if (at >= 0) met += rarity;
      else if (others.some((other) => terms.includes(other))) met += rarity * SYNONYM_WORTH;
      if (at >= 0 && at < named) inName += rarity;
    }
    const said = (met + inName) / Math.sqrt(total * most);
    return total === 0 ? { covered: 0, said: 0 } : { covered: met / total, said };
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
    const starts = new Uint32Array(this.#documents.size + 1);
    for (const { terms } of this.#read) {
      for (const term of terms) starts[term + 1] = (starts[term + 1] ?? 0) + 1;
    }
    for (let id = 1; id < starts.length; id++) {
      starts[id] = (starts[id] ?? 0) + (starts[id - 1] ?? 0);
    }
    const next = starts.slice();
    const total = starts.at(-1) ?? 0;
    this.#slots = new Uint32Array(total);
    this.#weights = new Float32Array(total);
    this.#starts = starts;
    const means = meansOf(this.#read);
    this.#read.forEach((document, slot) => {
      const parts = partsOf(document, means);
      document.terms.forEach((term, at) => {
        const place = next[term] ?? 0;
        next[term] = place + 1;
        const weight = weightAt(document, at, parts);
        this.#slots[place] = slot;
        this.#weights[place] = weight / (K1 + weight);
      });
    });
  }
}

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

function weightAt({ counts }: Document, at: number, parts: readonly number[]): number {
  const from = at * parts.length;
  let weight = 0;
  for (let field = 0; field < parts.length; field++) {
    weight += (counts[from + field] ?? 0) * (parts[field] ?? 0);
  }
  return weight;
}
