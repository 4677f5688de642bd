/**
 * Tools as search reads them: their words as numbers, counted by field, each tool read once.
 *
 * @module
 */

import { FIELD_WEIGHTS, fieldsOf } from "./_fields.ts";
import { termsOf } from "./_terms.ts";
import type { CatalogEntry } from "./catalog.ts";

/** The fields of a tool. */
const FIELDS = FIELD_WEIGHTS.length;
const MOST_COUNTED = 255;
/** How many words may be kept beyond four times those in use. */
const SPARE_TERMS = 10_000;

/** The words of one tool. */
export interface Document {
  /** Each word once; those of the name come first. */
  readonly terms: Uint32Array;
  /** How many of them are of the name. */
  readonly named: number;
  /** How often each stands in each field; the fields of a word lie together. */
  readonly counts: Uint8Array;
  /** How many words each field has. */
  readonly lengths: readonly number[];
}

/** Gives the words of tools numbers, and keeps what it has read. */
export class Documents {
  #ids = new Map<string, number>();
  #read = new WeakMap<CatalogEntry, Document>();

  /** Reads tools; what was read before is not read again. */
  of(entries: readonly CatalogEntry[]): readonly Document[] {
    return entries.map((entry) => {
      let known = this.#read.get(entry);
      if (known === undefined) this.#read.set(entry, known = this.#document(entry));
      return known;
    });
  }

  /** How many words have numbers. */
  get size(): number {
    return this.#ids.size;
  }

  /** Gives the number of a word that some tool had. */
  idOf(term: string): number | undefined {
    return this.#ids.get(term);
  }

  /** Forgets everything when most of the words are of tools that are gone. */
  forgetUnused(used: number): void {
    if (this.#ids.size <= 4 * used + SPARE_TERMS) return;
    this.#ids = new Map();
    this.#read = new WeakMap();
  }

  #document(entry: CatalogEntry): Document {
    const fields = fieldsOf(entry).map(termsOf);
    const counts = new Map<number, number[]>();
    fields.forEach((terms, field) => {
      for (const term of terms) {
        const id = this.#idFor(term);
        let of = counts.get(id);
        if (of === undefined) counts.set(id, of = Array(FIELDS).fill(0));
        of[field] = Math.min((of[field] ?? 0) + 1, MOST_COUNTED);
      }
    });
    return {
      terms: Uint32Array.from(counts.keys()),
      named: [...counts.values()].filter(([name = 0]) => name > 0).length,
      counts: Uint8Array.from([...counts.values()].flat()),
      lengths: fields.map(({ length }) => length),
    };
  }

  #idFor(term: string): number {
    const known = this.#ids.get(term);
    if (known !== undefined) return known;
    this.#ids.set(term, this.#ids.size);
    return this.#ids.size - 1;
  }
}
