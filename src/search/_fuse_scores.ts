/**
 * Combines the scores of words with the scores of meanings.
 *
 * @module
 */

/** How similar the meanings of tools are to a query. */
export interface Cosines {
  /** The cosine of each tool; NaN for a tool without a vector. */
  readonly cosines: Float32Array;
  /** The part of a score that the cosine decides. */
  readonly weight: number;
}

/** The largest and least values of the tools that may be found. */
export interface Scales {
  readonly bestScore: number;
  readonly bestCosine: number;
  /**
   * The lowest cosine; at least 0, because a tool with a negative cosine is as unrelated as with 0.
   */
  readonly leastCosine: number;
}

/**
 * Returns for each tool the weighted mean of its lexical score and its cosine. Both are first
 * scaled to the range from 0 to 1. Without a cosine, the lexical score counts for both. Tools that
 * may not be found get scores, too, because checking whether each may be found takes longer.
 */
export function fuseScores(
  lexical: Float64Array,
  { cosines, weight }: Cosines,
  { bestScore, bestCosine, leastCosine }: Scales,
): Float64Array {
  const scores = new Float64Array(lexical.length);
  const perScore = bestScore > 0 ? 1 / bestScore : 0;
  const perCosine = bestCosine > leastCosine ? weight / (bestCosine - leastCosine) : 0;
  const wordsWeight = (1 - weight) * perScore;
  for (let slot = 0; slot < scores.length; slot++) {
    // `!` because a check for undefined costs a third of the time.
    const [score, cosine] = [lexical[slot]!, cosines[slot]!];
    // The cosine is NaN for tools without a vector.
    scores[slot] = Number.isNaN(cosine)
      ? perScore * score
      : wordsWeight * score + perCosine * Math.max(cosine - leastCosine, 0);
  }
  return scores;
}

/**
 * Sentences about things that no tool does. Their cosines show how similar a tool may be to an
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
 * Returns the largest cosine of the unrelated sentences with any tool. A query is related to a tool
 * if its cosine is at least as large.
 */
export function largestCosine(cosines: readonly Float32Array[]): number {
  // The cosine is NaN for tools without a vector, which the comparison skips.
  return Math.max(
    ...cosines.map((values) => values.reduce((max, value) => value > max ? value : max, -1)),
  );
}
