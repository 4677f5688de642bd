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

/** The number of dimensions that are added at once. The size of vectors is a multiple of it. */
const COLUMNS_AT_ONCE = 8;

/** Compares by meaning with vectors of words. */
export class WordMeaning implements Semantics {
  /** Lower than the weight of a sentence encoder, which also uses the order of words. */
  readonly weight = 0.4;
  readonly mode = "builtin";
  readonly #vectors: WordVectors;
  readonly #vectorByTool = new WeakMap<CatalogEntry, Float32Array>();
  #entries: readonly CatalogEntry[] | undefined;
  /**
   * One array for each dimension, with a number for each entry; NaN for an entry without a vector.
   */
  #columns: readonly Float32Array[] = [];

  /** Creates an instance with vectors of words. */
  constructor(vectors: WordVectors) {
    this.#vectors = vectors;
  }

  /** Returns the cosine of each entry for each query. */
  similarities(
    queries: readonly string[],
    entries: readonly CatalogEntry[],
  ): Promise<readonly Float32Array[]> {
    this.#useEntries(entries);
    return Promise.resolve(queries.map((query) => this.#cosines(query, entries.length)));
  }

  #useEntries(entries: readonly CatalogEntry[]): void {
    if (entries === this.#entries) return;
    this.#entries = entries;
    const { size } = this.#vectors;
    const columns = Array.from({ length: size }, () => new Float32Array(entries.length));
    entries.forEach((entry, at) => {
      let vector = this.#vectorByTool.get(entry);
      if (vector === undefined) {
        vector = this.#vectors.vectorOf(meaningText(entry)) ?? new Float32Array(size).fill(NaN);
        this.#vectorByTool.set(entry, vector);
      }
      for (let dimension = 0; dimension < size; dimension++) {
        columns[dimension]![at] = vector[dimension]!;
      }
    });
    this.#columns = columns;
  }

  #cosines(query: string, count: number): Float32Array {
    const vector = this.#vectors.vectorOf(query);
    if (vector === undefined) return new Float32Array(count).fill(NaN);
    const cosines = new Float32Array(count);
    for (let from = 0; from < vector.length; from += COLUMNS_AT_ONCE) {
      addProducts(cosines, {
        columns: this.#columns.slice(from, from + COLUMNS_AT_ONCE),
        factors: vector.subarray(from, from + COLUMNS_AT_ONCE),
      });
    }
    return cosines;
  }
}

/**
 * Adds the products of eight columns and their factors. This takes half as long as one entry after
 * the other. `!` because a check for undefined costs a third of the time.
 */
function addProducts(
  sums: Float32Array,
  { columns, factors }: {
    readonly columns: readonly Float32Array[];
    readonly factors: Float32Array;
  },
): void {
  const [a, b, c, d, e, f, g, h] = columns;
  const [k, l, m, n, o, p, q, r] = factors;
  for (let at = 0; at < sums.length; at++) {
    sums[at] = sums[at]! +
      (k! * a![at]! + l! * b![at]!) + (m! * c![at]! + n! * d![at]!) +
      (o! * e![at]! + p! * f![at]!) + (q! * g![at]! + r! * h![at]!);
  }
}
