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

/** The usual parameters of BM25. */
const K1 = 1.2;
const B = 0.75;
/** The weight of a synonym, relative to the word itself. */
const SYNONYM_WEIGHT = 0.4;
/** The weight of a similar word, if no tool has the word of the query. */
const SIMILAR_WEIGHT = 0.8;
/** The factor by which a score rises if the query contains all words of the tool's name. */
const NAME_GAIN = 0.3;
/** The part of the mean score of its server's best tools that is added to a tool's score. */
const SERVER_GAIN = 0.25;
/** The number of the best tools of a server whose mean score counts. */
const NEIGHBOUR_COUNT = 3;
const MOST_QUERY_TERMS = 256;
/** Only the first words of a query are corrected, because a correction takes long. */
const CORRECTED_MAX = 16;
const NO_WORDS_KNOWN: ReadonlySet<string> = new Set();

/** The lexical scores of all tools for a query. */
export interface LexicalScores {
  /**
   * The scores, in the order of the tools. They can be compared within one query only; 0 means that
   * no word matches.
   */
  readonly scores: Float64Array;
  /** The tools with a score, in any order. */
  readonly matches: Uint32Array;
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

/** A word of the query, by the numbers of `Documents`. */
export interface QueryTerm {
  /** The number of the word; undefined if no tool has it. */
  readonly id: number | undefined;
  /** Higher if fewer tools have the word. */
  readonly rarity: number;
  /** The numbers of its synonyms. */
  readonly synonyms: readonly number[];
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
  #toolDocuments: readonly ToolDocument[] = [];
  /** The start of each word's part in `#slots` and `#weights`. */
  #starts = new Uint32Array(1);
  #slots = new Uint32Array();
  #weights = new Float32Array();
  /** The number of each tool's server. */
  #servers = new Uint32Array();
  /** The best scores of each server while a query is ranked; otherwise 0. */
  #bestScores = new Float64Array();

  /** Replaces the tools. Only new tools are read. */
  set(entries: readonly CatalogEntry[]): void {
    this.#documents.forgetUnused(this.#slots.length);
    this.#entries = entries;
    this.#toolDocuments = this.#documents.readAll(entries);
    const numbers = new Map<string, number>();
    this.#servers = Uint32Array.from(entries, ({ server: { name } }) => {
      if (!numbers.has(name)) numbers.set(name, numbers.size);
      return numbers.get(name) ?? 0;
    });
    this.#bestScores = new Float64Array(NEIGHBOUR_COUNT * numbers.size);
    this.#buildIndex();
    this.#spelling = undefined;
  }

  /** Returns how well each tool matches a query. Words in `english` are not corrected. */
  rank(query: string, english: Pick<Set<string>, "has"> = NO_WORDS_KNOWN): LexicalScores {
    const terms = new Set(termsOf(query).flatMap((term) => this.#expandShortForm(term)));
    const queryTerms = [...terms].slice(0, MOST_QUERY_TERMS)
      .map((term, at) => this.#toQueryTerm(term, at < CORRECTED_MAX && !english.has(term)));
    const scores = new Float64Array(this.#entries.length);
    const [slots, weights] = [this.#slots, this.#weights];
    const matchedSlots = new Uint32Array(this.#entries.length);
    let count = 0;
    for (const [id, weight] of termWeights(queryTerms, (other) => this.#rarity(other))) {
      const end = this.#start(id + 1);
      for (let at = this.#start(id); at < end; at++) {
        const slot = slots[at] ?? 0;
        if (scores[slot] === 0) matchedSlots[count++] = slot;
        scores[slot] = (scores[slot] ?? 0) + weight * (weights[at] ?? 0);
      }
    }
    const isQueryTerm = new Uint8Array(this.#documents.size);
    for (const { id, similar } of queryTerms) {
      if (id !== undefined) isQueryTerm[id] = 1;
      for (const other of similar) isQueryTerm[other] = 1;
    }
    const matched = matchedSlots.subarray(0, count);
    this.#raiseScores(scores, { isQueryTerm, matched });
    return { scores, matches: matched, terms: queryTerms };
  }

  /**
   * Returns the long words of a short form, with the form itself if a tool has it. Returns any
   * other word unchanged.
   */
  #expandShortForm(term: string): readonly string[] {
    const words = this.#shortForms.get(term)?.filter((word) => this.#usedId(word) !== undefined) ??
      [];
    if (words.length === 0) return [term];
    return this.#usedId(term) === undefined ? words : [term, ...words];
  }

  #toQueryTerm(term: string, mayBeMisspelled: boolean): QueryTerm {
    const id = this.#usedId(term);
    const synonyms = [...this.#synonyms.get(term) ?? []].flatMap((other) =>
      this.#usedId(other) ?? []
    );
    if (id !== undefined || synonyms.length > 0 || !mayBeMisspelled) {
      return { id, rarity: this.#rarity(id), synonyms, similar: [] };
    }
    this.#spelling ??= new Spelling(
      this.#documents.words().filter(([, id]) => this.#start(id + 1) > this.#start(id)),
    );
    const similar = this.#spelling.closest(term);
    return { id, rarity: this.#rarity(similar[0]), synonyms, similar };
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
  #raiseScores(
    scores: Float64Array,
    { isQueryTerm, matched }: { readonly isQueryTerm: Uint8Array; readonly matched: Uint32Array },
  ): void {
    const best = this.#bestScores;
    for (const slot of matched) {
      let score = (scores[slot] ?? 0) * (1 + NAME_GAIN * this.#nameShare(slot, isQueryTerm));
      scores[slot] = score;
      const from = NEIGHBOUR_COUNT * (this.#servers[slot] ?? 0);
      for (let at = from; at < from + NEIGHBOUR_COUNT; at++) {
        const lower = best[at] ?? 0;
        if (score <= lower) continue;
        best[at] = score;
        score = lower;
      }
    }
    for (const slot of matched) {
      const from = NEIGHBOUR_COUNT * (this.#servers[slot] ?? 0);
      const sum = (best[from] ?? 0) + (best[from + 1] ?? 0) + (best[from + 2] ?? 0);
      scores[slot] = (scores[slot] ?? 0) + SERVER_GAIN * sum / NEIGHBOUR_COUNT;
    }
    for (const slot of matched) {
      const from = NEIGHBOUR_COUNT * (this.#servers[slot] ?? 0);
      best.fill(0, from, from + NEIGHBOUR_COUNT);
    }
  }

  /** Returns the part of a name's words that the query contains. */
  #nameShare(slot: number, isQueryTerm: Uint8Array): number {
    const { from, nameEnd } = this.#toolDocuments[slot] ?? EMPTY_DOCUMENT;
    let matched = 0;
    for (let at = from; at < nameEnd; at++) matched += isQueryTerm[this.#documents.termAt(at)] ?? 0;
    return matched / Math.max(nameEnd - from, 1);
  }

  /**
   * Returns whether one tool has each of these stems or a synonym of it. If the stems may be
   * misspelled, similar words count, too.
   */
  hasAll(
    terms: readonly string[],
    { mayBeMisspelled, isAmong }: {
      readonly mayBeMisspelled: boolean;
      readonly isAmong: (entry: CatalogEntry) => boolean;
    },
  ): boolean {
    const [first = [], ...rest] = terms.flatMap((term) => this.#expandShortForm(term)).map(
      (term) => {
        const { id, synonyms, similar } = this.#toQueryTerm(term, mayBeMisspelled);
        return [...id === undefined ? [] : [id], ...synonyms, ...similar];
      },
    );
    return first.some((id) =>
      this.#slots.subarray(this.#start(id), this.#start(id + 1)).some((slot) => {
        const [entry, document = EMPTY_DOCUMENT] = [this.#entries[slot], this.#toolDocuments[slot]];
        return entry !== undefined && isAmong(entry) &&
          rest.every((ids) => ids.some((other) => this.#documents.find(document, other) >= 0));
      })
    );
  }

  /** Returns whether the name of a tool has a stem. */
  isInToolName(term: string): boolean {
    const id = this.#documents.idOf(term);
    if (id === undefined) return false;
    return this.#slots.subarray(this.#start(id), this.#start(id + 1)).some((slot) => {
      const { from, nameEnd } = this.#toolDocuments[slot] ?? EMPTY_DOCUMENT;
      return this.#documents.find({ from, to: nameEnd }, id) >= 0;
    });
  }

  /** Returns how much of a query the tool at an index matches. */
  evidence(slot: number, terms: readonly QueryTerm[]): Evidence {
    const document = this.#toolDocuments[slot] ?? EMPTY_DOCUMENT;
    const positionOf = (id: number | undefined) =>
      id === undefined ? -1 : this.#documents.find(document, id);
    let total = 0;
    let matched = 0;
    let inName = 0;
    for (const { id, rarity, synonyms, similar } of terms) {
      total += rarity;
      const at = positionOf(id);
      if (at >= 0) matched += rarity;
      else if (similar.some((other) => positionOf(other) >= 0)) matched += rarity * SIMILAR_WEIGHT;
      else if (synonyms.some((other) => positionOf(other) >= 0)) matched += rarity * SYNONYM_WEIGHT;
      if (at >= 0 && at < document.nameEnd) inName += rarity;
    }
    if (total === 0) return { covered: 0, specificity: 0 };
    return {
      covered: matched / total,
      specificity: (matched + inName) / Math.sqrt(total * this.#rarity(undefined)),
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

  #buildIndex(): void {
    const documents = this.#documents;
    const starts = new Uint32Array(documents.size + 1);
    for (const { from, to } of this.#toolDocuments) {
      for (let at = from; at < to; at++) {
        const next = documents.termAt(at) + 1;
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
    const means = meanLengths(this.#toolDocuments);
    this.#toolDocuments.forEach((document, slot) => {
      const parts = fieldWeights(document, means);
      for (let at = document.from; at < document.to; at++) {
        const term = documents.termAt(at);
        const place = next[term] ?? 0;
        next[term] = place + 1;
        const weight = parts.reduce(
          (sum, part, field) => sum + part * documents.countAt(at, field),
          0,
        );
        this.#slots[place] = slot;
        this.#weights[place] = weight / (K1 + weight);
      }
    });
  }
}

const EMPTY_DOCUMENT: ToolDocument = { from: 0, to: 0, nameEnd: 0, lengths: [] };

/** Returns the weight of each word of the query and of each synonym. */
function termWeights(
  terms: readonly QueryTerm[],
  rarityOf: (id: number) => number,
): ReadonlyMap<number, number> {
  const termWeights = new Map<number, number>();
  for (const { rarity, synonyms, similar } of terms) {
    for (const id of similar) termWeights.set(id, SIMILAR_WEIGHT * rarityOf(id));
    // A synonym that is rarer than the word itself gets no higher weight.
    for (const id of synonyms) termWeights.set(id, SYNONYM_WEIGHT * Math.min(rarity, rarityOf(id)));
  }
  for (const { id, rarity } of terms) if (id !== undefined) termWeights.set(id, rarity);
  return termWeights;
}

/** Returns the mean number of words of each field. */
function meanLengths(documents: readonly ToolDocument[]): readonly number[] {
  return FIELD_WEIGHTS.map((_, field) => {
    const total = documents.reduce((sum, { lengths }) => sum + (lengths[field] ?? 0), 0);
    return Math.max(total / documents.length, 1);
  });
}

/** Returns the weight of one word in each field of a tool. It is lower in a long field. */
function fieldWeights({ lengths }: ToolDocument, means: readonly number[]): readonly number[] {
  return FIELD_WEIGHTS.map((weight, field) =>
    weight / (1 - B + B * (lengths[field] ?? 0) / (means[field] ?? 1))
  );
}
