/**
 * Ranks tools by the words of a query, with the BM25F formula over weighted fields.
 *
 * @module
 */

import { Documents, type ToolDocument } from "./_documents.ts";
import { FIELD_WEIGHTS } from "./_fields.ts";
import { makeShortForms } from "./_short_forms.ts";
import { Spelling } from "./_spelling.ts";
import { makeSynonyms } from "./_synonyms.ts";
import { termsOf } from "./terms.ts";
import type { CatalogEntry } from "./catalog.ts";

const K1 = 1.2;
const B = 0.75;
/** The weight of a synonym, relative to the word itself. */
const SYNONYM_WORTH = 0.4;
/** The weight of a word that is similar to a word of the query, which no tool has. */
const SIMILAR_WORTH = 0.8;
/** The gain of a tool if the query contains all words of its name. */
const NAME_GAIN = 0.3;
/** The gain of a tool by the mean score of the best three tools of its server. */
const SERVER_GAIN = 0.25;
const NEIGHBOURS = 3;
const MOST_QUERY_TERMS = 256;
/** Only the first words of a query are corrected, because this takes longer. */
const MOST_CORRECTED = 16;
const NO_ENGLISH: ReadonlySet<string> = new Set();

/** The lexical scores of all tools for a query. */
export interface LexicalScores {
  /**
   * The scores, in the order of the tools. They can be compared within one query only; 0 means that
   * no word matches.
   */
  readonly scores: Float64Array;
  /** The tools with a score, in any order. */
  readonly met: Uint32Array;
  /** The words of the query, for `evidence()`. */
  readonly terms: readonly QueryTerm[];
}

/** How much of a query a tool matches. */
export interface Evidence {
  /** The part of the query's words that the tool has, from 0 to 1. Rare words count more. */
  readonly covered: number;
  /**
   * How specific the match is: the rarity of the matched words, relative to all words of the query
   * and to the rarest possible word of this catalog. Words in the tool's name count twice.
   */
  readonly specificity: number;
}

/** A word of the query and its weight. */
export interface QueryTerm {
  readonly id: number | undefined;
  readonly rarity: number;
  /** The numbers of its synonyms. */
  readonly others: readonly number[];
  /** The numbers of similar words, if no tool has the word itself. */
  readonly similar: readonly number[];
}

/** An index of the words of all tools, with the weight of each word in each tool. */
export class LexicalIndex {
  readonly #documents = new Documents();
  readonly #synonyms = makeSynonyms();
  readonly #shortForms = makeShortForms();
  /** The words of all tools; undefined until a query has a word that no tool has. */
  #spelling: Spelling | undefined;
  #entries: readonly CatalogEntry[] = [];
  #read: readonly ToolDocument[] = [];
  /** The start of each word's part in the two lists below. */
  #starts = new Uint32Array(1);
  #slots = new Uint32Array();
  #weights = new Float32Array();
  /** The number of each tool's server. */
  #servers = new Uint32Array();
  /** The best scores of each server while a query is ranked; otherwise 0. */
  #best = new Float64Array();

  /** Replaces the tools. Only new ones are read. */
  set(entries: readonly CatalogEntry[]): void {
    this.#documents.forgetUnused(this.#slots.length);
    this.#entries = entries;
    this.#read = this.#documents.of(entries);
    const numbers = new Map<string, number>();
    this.#servers = Uint32Array.from(entries, ({ server: { name } }) => {
      if (!numbers.has(name)) numbers.set(name, numbers.size);
      return numbers.get(name) ?? 0;
    });
    this.#best = new Float64Array(NEIGHBOURS * numbers.size);
    this.#place();
    this.#spelling = undefined;
  }

  /** Returns how well each tool matches a query. Words of English are not corrected. */
  rank(query: string, english: Pick<Set<string>, "has"> = NO_ENGLISH): LexicalScores {
    const terms = new Set(termsOf(query).flatMap((term) => this.#meant(term)));
    const queryTerms = [...terms].slice(0, MOST_QUERY_TERMS)
      .map((term, at) => this.#queryTerm(term, at < MOST_CORRECTED && !english.has(term)));
    const scores = new Float64Array(this.#entries.length);
    const [slots, weights] = [this.#slots, this.#weights];
    const all = new Uint32Array(this.#entries.length);
    let count = 0;
    for (const [id, worth] of worths(queryTerms, (other) => this.#rarity(other))) {
      const end = this.#start(id + 1);
      for (let at = this.#start(id); at < end; at++) {
        const slot = slots[at] ?? 0;
        if (scores[slot] === 0) all[count++] = slot;
        scores[slot] = (scores[slot] ?? 0) + worth * (weights[at] ?? 0);
      }
    }
    const isQueryTerm = new Uint8Array(this.#documents.size);
    for (const { id, similar } of queryTerms) {
      if (id !== undefined) isQueryTerm[id] = 1;
      for (const other of similar) isQueryTerm[other] = 1;
    }
    const met = all.subarray(0, count);
    this.#raise(scores, { isQueryTerm, met });
    return { scores, met, terms: queryTerms };
  }

  /** Returns the words of a short form, with the form itself if a tool has it, or the word. */
  #meant(term: string): readonly string[] {
    const words = this.#shortForms.get(term)?.filter((word) => this.#usedId(word) !== undefined) ??
      [];
    if (words.length === 0) return [term];
    return this.#usedId(term) === undefined ? words : [term, ...words];
  }

  #queryTerm(term: string, mayBeWrong: boolean): QueryTerm {
    const id = this.#usedId(term);
    const others = [...this.#synonyms.get(term) ?? []].flatMap((other) =>
      this.#usedId(other) ?? []
    );
    if (id !== undefined || others.length > 0 || !mayBeWrong) {
      return { id, rarity: this.#rarity(id), others, similar: [] };
    }
    this.#spelling ??= new Spelling(
      this.#documents.words().filter(([, id]) => this.#start(id + 1) > this.#start(id)),
    );
    const similar = this.#spelling.closest(term);
    return { id, rarity: this.#rarity(similar[0]), others, similar };
  }

  /** Returns the number of a word; undefined if no tool has it. */
  #usedId(term: string): number | undefined {
    const id = this.#documents.idOf(term);
    return id !== undefined && this.#start(id + 1) > this.#start(id) ? id : undefined;
  }

  /**
   * Raises the scores of tools whose names match, and of tools whose neighbours in their server
   * match.
   */
  #raise(
    scores: Float64Array,
    { isQueryTerm, met }: { readonly isQueryTerm: Uint8Array; readonly met: Uint32Array },
  ): void {
    const best = this.#best;
    for (const slot of met) {
      let score = (scores[slot] ?? 0) * (1 + NAME_GAIN * this.#nameMet(slot, isQueryTerm));
      scores[slot] = score;
      const from = NEIGHBOURS * (this.#servers[slot] ?? 0);
      for (let at = from; at < from + NEIGHBOURS; at++) {
        const lower = best[at] ?? 0;
        if (score <= lower) continue;
        best[at] = score;
        score = lower;
      }
    }
    for (const slot of met) {
      const from = NEIGHBOURS * (this.#servers[slot] ?? 0);
      const sum = (best[from] ?? 0) + (best[from + 1] ?? 0) + (best[from + 2] ?? 0);
      scores[slot] = (scores[slot] ?? 0) + SERVER_GAIN * sum / NEIGHBOURS;
    }
    for (const slot of met) {
      const from = NEIGHBOURS * (this.#servers[slot] ?? 0);
      best.fill(0, from, from + NEIGHBOURS);
    }
  }

  /** Returns the part of a name's words that the query contains. */
  #nameMet(slot: number, isQueryTerm: Uint8Array): number {
    const { from, named } = this.#read[slot] ?? NO_WORDS;
    let met = 0;
    for (let at = from; at < named; at++) met += isQueryTerm[this.#documents.term(at)] ?? 0;
    return met / Math.max(named - from, 1);
  }

  /**
   * Returns whether one tool has all these stems, or words that are similar if they may be wrong, or
   * synonyms.
   */
  hasAll(
    terms: readonly string[],
    { mayBeWrong, isAmong }: {
      readonly mayBeWrong: boolean;
      readonly isAmong: (entry: CatalogEntry) => boolean;
    },
  ): boolean {
    const [first = [], ...rest] = terms.flatMap((term) => this.#meant(term)).map((term) => {
      const { id, others, similar } = this.#queryTerm(term, mayBeWrong);
      return [...id === undefined ? [] : [id], ...others, ...similar];
    });
    return first.some((id) =>
      this.#slots.subarray(this.#start(id), this.#start(id + 1)).some((slot) => {
        const [entry, document = NO_WORDS] = [this.#entries[slot], this.#read[slot]];
        return entry !== undefined && isAmong(entry) &&
          rest.every((ids) => ids.some((other) => this.#documents.find(document, other) >= 0));
      })
    );
  }

  /** Returns whether the name of a tool has a stem. */
  isInName(term: string): boolean {
    const id = this.#documents.idOf(term);
    if (id === undefined) return false;
    return this.#slots.subarray(this.#start(id), this.#start(id + 1)).some((slot) => {
      const { from, named } = this.#read[slot] ?? NO_WORDS;
      return this.#documents.find({ from, to: named }, id) >= 0;
    });
  }

  /** Returns how much of a query a tool matches. */
  evidence(slot: number, terms: readonly QueryTerm[]): Evidence {
    const document = this.#read[slot] ?? NO_WORDS;
    const has = (id: number | undefined) =>
      id === undefined ? -1 : this.#documents.find(document, id);
    let total = 0;
    let met = 0;
    let inName = 0;
    for (const { id, rarity, others, similar } of terms) {
      total += rarity;
      const at = has(id);
      if (at >= 0) met += rarity;
      else if (similar.some((other) => has(other) >= 0)) met += rarity * SIMILAR_WORTH;
      else if (others.some((other) => has(other) >= 0)) met += rarity * SYNONYM_WORTH;
      if (at >= 0 && at < document.named) inName += rarity;
    }
    if (total === 0) return { covered: 0, specificity: 0 };
    return {
      covered: met / total,
      specificity: (met + inName) / Math.sqrt(total * this.#rarity(undefined)),
    };
  }

  /** Returns the weight of a word: lower if more tools have it, highest if none does. */
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

const NO_WORDS: ToolDocument = { from: 0, to: 0, named: 0, lengths: [] };

/** Returns the weight of each word of the query and of each synonym. */
function worths(
  terms: readonly QueryTerm[],
  rarityOf: (id: number) => number,
): ReadonlyMap<number, number> {
  const worths = new Map<number, number>();
  for (const { rarity, others, similar } of terms) {
    for (const id of similar) worths.set(id, SIMILAR_WORTH * rarityOf(id));
    // A synonym that is rarer than the word itself gets no higher weight.
    for (const id of others) worths.set(id, SYNONYM_WORTH * Math.min(rarity, rarityOf(id)));
  }
  for (const { id, rarity } of terms) if (id !== undefined) worths.set(id, rarity);
  return worths;
}

/** Returns the mean number of words of each field. */
function meansOf(documents: readonly ToolDocument[]): readonly number[] {
  return FIELD_WEIGHTS.map((_, field) => {
    const total = documents.reduce((sum, { lengths }) => sum + (lengths[field] ?? 0), 0);
    return Math.max(total / documents.length, 1);
  });
}

/** Returns the weight of one word in each field of a tool. It is lower in a long field. */
function partsOf({ lengths }: ToolDocument, means: readonly number[]): readonly number[] {
  return FIELD_WEIGHTS.map((weight, field) =>
    weight / (1 - B + B * (lengths[field] ?? 0) / (means[field] ?? 1))
  );
}
