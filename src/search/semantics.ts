/**
 * The interface for comparing tools and queries by meaning.
 *
 * @module
 */

import type { CatalogEntry } from "./catalog.ts";

/** Compares the tools of a catalog with queries by meaning. */
export interface Semantics {
  /** The mode of searches with this model: `builtin` for the model that ships with PML. */
  readonly mode: "builtin" | "hybrid";
  /** The part of a tool's score that its meaning decides, from 0 to 1. Words decide the rest. */
  readonly weight: number;
  /**
   * Returns, for each query, the cosine of each entry in the order of the entries; NaN if the model
   * returns no vector for the query or the entry. Returns undefined while some entries have no
   * vector yet, and starts computing them. Callers pass the same array as long as the catalogs are
   * unchanged. Never throws, and does not wait until a download ends.
   */
  similarities(
    queries: readonly string[],
    entries: readonly CatalogEntry[],
  ): Promise<readonly Float32Array[] | undefined>;
}
