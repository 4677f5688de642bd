/**
 * Tools as search reads them: their words as numbers, counted by field, each tool read once.
 *
 * @module
 */

import { FIELD_WEIGHTS, fieldsOf } from "./_fields.ts";
import { runsOf, termsOfRun } from "./_terms.ts";
import type { CatalogEntry } from "./catalog.ts";

/** The fields of a tool. */
const FIELDS = FIELD_WEIGHTS.length;
/** How many places may be kept beyond four times those in use. */
const SPARE = 100_000;

/** Where the words of one tool stand among those of all; those of its name come first. */
export interface Document {
  readonly from: number;
  readonly to: number;
  /** Where its name ends. */
  readonly named: number;
  /** How many words each field has, with repetitions. */
  readonly lengths: readonly number[];
}

/** Gives the words of tools numbers, and keeps what it has read. */
export class Documents {
  // Few long arrays: two short ones for each tool would take most of the time of reading.
  #terms = new Uint32Array(1_024);
  #counts = new Uint8ClampedArray(1_024 * FIELDS);
  #end = 0;
  #ids = new Map<string, number>();
  #read = new WeakMap<CatalogEntry, Document>();

  /** Reads tools; what was read before is not read again. */
  of(entries: readonly CatalogEntry[]): readonly Document[] {
    const seen = new Map<string, readonly number[]>();
    // The same words come again and again: each is cut and stemmed once.
    const idsOf = (run: string) => {
      let ids = seen.get(run);
      if (ids === undefined) seen.set(run, ids = termsOfRun(run).map((term) => this.#idFor(term)));
      return ids;
    };
    return entries.map((entry) => {
      let known = this.#read.get(entry);
      if (known === undefined) this.#read.set(entry, known = this.#document(entry, idsOf));
      return known;
    });
  }

  /** How many words have numbers. */
  get size(): number {
    return this.#ids.size;
  }

  /** The word at a place, as its number. */
  term(at: number): number {
    return this.#terms[at] ?? 0;
  }

  /** How often the word at a place stands in a field; what is beyond 255 is 255. */
  count(at: number, field: number): number {
    return this.#counts[at * FIELDS + field] ?? 0;
  }

  /** Gives the number of a word that some tool had. */
  idOf(term: string): number | undefined {
    return this.#ids.get(term);
  }

  /** Finds a word of a tool; -1 where it has not got it. */
  find({ from, to }: Document, id: number): number {
    const at = this.#terms.subarray(from, to).indexOf(id);
    return at < 0 ? at : from + at;
  }

  /** Forgets everything when most of the places are of tools that are gone. */
  forgetUnused(used: number): void {
    if (this.#end <= 4 * used + SPARE) return;
    this.#end = 0;
    this.#ids = new Map();
    this.#read = new WeakMap();
  }

  #document(entry: CatalogEntry, idsOf: (run: string) => readonly number[]): Document {
    const from = this.#end;
    const places = new Map<number, number>();
    let named = from;
    const lengths = fieldsOf(entry).map((text, field) => {
      let length = 0;
      for (const run of runsOf(text)) {
        for (const id of idsOf(run)) {
          let at = places.get(id);
          if (at === undefined) places.set(id, at = this.#add(id));
          const place = at * FIELDS + field;
          this.#counts[place] = (this.#counts[place] ?? 0) + 1;
          length += 1;
        }
      }
      if (field === 0) named = this.#end;
      return length;
    });
    return { from, to: this.#end, named, lengths };
  }

  #add(id: number): number {
    const at = this.#end++;
    if (at === this.#terms.length) {
      const [terms, counts] = [this.#terms, this.#counts];
      this.#terms = new Uint32Array(2 * terms.length);
      this.#counts = new Uint8ClampedArray(2 * counts.length);
      this.#terms.set(terms);
      this.#counts.set(counts);
    }
    this.#terms[at] = id;
    this.#counts.fill(0, at * FIELDS, (at + 1) * FIELDS);
    return at;
  }

  #idFor(term: string): number {
    const known = this.#ids.get(term);
    if (known !== undefined) return known;
    this.#ids.set(term, this.#ids.size);
    return this.#ids.size - 1;
  }
}
