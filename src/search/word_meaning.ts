/**
 * Compares tools and queries by meaning with the word vectors that ship with PML. It needs no
 * library, no process and no download.
 *
 * @module
 */

import { meaningText } from "./meaning_text.ts";
import type { CatalogEntry } from "./catalog.ts";
import type { Semantics } from "./semantics.ts";
import type { WordVectors } from "./word_vectors.ts";

/** Compares by meaning with vectors of words. */
export class WordMeaning implements Semantics {
  /** Lower than that of a sentence encoder, which also understands the order of words. */
  readonly weight = 0.4;
  readonly mode = "builtin";
  readonly #vectors: WordVectors;
  readonly #read = new WeakMap<CatalogEntry, Float32Array>();
  #entries: readonly CatalogEntry[] | undefined;
  /** The vectors of the entries, one after another; NaN for an entry without one. */
  #rows = new Float32Array();

  /** Takes the vectors. */
  constructor(vectors: WordVectors) {
    this.#vectors = vectors;
  }

  /** Returns the cosine of each entry for each query. */
  similarities(
    queries: readonly string[],
    entries: readonly CatalogEntry[],
  ): Promise<readonly Float32Array[]> {
    this.#follow(entries);
    return Promise.resolve(queries.map((query) => this.#cosines(query, entries.length)));
  }

  #follow(entries: readonly CatalogEntry[]): void {
    if (entries === this.#entries) return;
    this.#entries = entries;
    const { size } = this.#vectors;
    this.#rows = new Float32Array(entries.length * size);
    entries.forEach((entry, at) => {
      let vector = this.#read.get(entry);
      if (vector === undefined) {
        vector = this.#vectors.vectorOf(meaningText(entry)) ?? new Float32Array(size).fill(NaN);
        this.#read.set(entry, vector);
      }
      this.#rows.set(vector, at * size);
    });
  }

  #cosines(query: string, count: number): Float32Array {
    const cosines = new Float32Array(count).fill(NaN);
    const vector = this.#vectors.vectorOf(query);
    if (vector === undefined) return cosines;
    const rows = this.#rows;
    const { length } = vector;
    // Four sums at once keep the processor busy; `!` because a check for undefined costs a third.
    for (let row = 0, from = 0; row < count; row++, from += length) {
      let [a, b, c, d] = [0, 0, 0, 0];
      for (let at = 0; at < length; at += 4) {
        a += vector[at]! * rows[from + at]!;
        b += vector[at + 1]! * rows[from + at + 1]!;
        c += vector[at + 2]! * rows[from + at + 2]!;
        d += vector[at + 3]! * rows[from + at + 3]!;
      }
      cosines[row] = a + b + c + d;
    }
    return cosines;
  }
}
