/**
 * How near tools are to a query in meaning, as far as a model is there that can tell.
 *
 * @module
 */

import type { CatalogEntry } from "./catalog.ts";

/** Tells how near the tools of a catalog are to queries in meaning. */
export interface Semantics {
  /**
   * Gives for each query the cosine of each entry, in the order of the entries, NaN where the model
   * makes nothing of the query or of the entry; nothing while not all of them were looked at yet, which starts the work that makes them so. The same array of entries
   * comes as long as the catalogs are unchanged. Never throws, and never waits for a download.
   */
  similarities(
    queries: readonly string[],
    entries: readonly CatalogEntry[],
  ): Promise<readonly Float32Array[] | undefined>;
}
