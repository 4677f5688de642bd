/**
 * Combines the scores of words with the scores of meanings.
 *
 * @module
 */

/** The meanings of tools, relative to a query. */
export interface Cosines {
  readonly cosines: Float32Array;
  /** The part of a score that the cosine decides. */
  readonly weight: number;
}

/** The ends of the scales among the tools that may be found. */
export interface Scales {
  readonly bestScore: number;
  readonly bestCosine: number;
  /** The least cosine; 0 if it is negative, because that is as far away as none. */
  readonly leastCosine: number;
}

/**
 * Returns for each tool the weighted mean of its lexical score and its cosine. Both are first scaled
 * to the range from 0 to 1. Without a cosine, the lexical score counts for both. Tools that may not
 * be found get scores, too, because judging all of them takes longer.
 */
export function fused(
  lexical: Float64Array,
  { cosines, weight }: Cosines,
  { bestScore, bestCosine, leastCosine }: Scales,
): Float64Array {
  const all = new Float64Array(lexical.length);
  const range = bestCosine - leastCosine;
  for (let slot = 0; slot < all.length; slot++) {
    const words = bestScore > 0 ? (lexical[slot] ?? 0) / bestScore : 0;
    const cosine = cosines[slot] ?? NaN;
    const meaning = range > 0 ? Math.max(cosine - leastCosine, 0) / range : 0;
    all[slot] = Number.isNaN(cosine) ? words : (1 - weight) * words + weight * meaning;
  }
  return all;
}

/**
 * Sentences about things that no tool does. Their cosines show how near a tool comes to an
 * unrelated query.
 */
export const UNRELATED = [
  "sing a lullaby to a sleeping baby",
  "polish a pair of old leather boots",
  "water the roses before noon",
  "climb the oak tree behind the barn",
  "fold a swan out of paper",
  "the colour of the sky in the morning",
  "walk the dog around the lake",
  "sharpen a kitchen knife",
  "wear a warm coat in winter",
];

/**
 * Returns the least cosine of a query that is related to a tool: the largest that any of the
 * unrelated sentences reaches.
 */
export function leastCosine(cosines: readonly Float32Array[]): number {
  // The cosine is NaN for tools without a vector. They are skipped.
  return Math.max(
    ...cosines.map((each) => each.reduce((one, other) => other > one ? other : one, -1)),
  );
}
