/**
 * Combines the scores of words with the scores of meanings.
 *
 * @module
 */

/**
 * Returns for each tool the mean of its lexical score and its cosine. Both are first scaled to the
 * range from 0 to 1 among the allowed tools. Without a cosine, the lexical score counts for both.
 */
export function fused(
  lexical: Float64Array,
  cosines: Float32Array,
  allowed: readonly boolean[],
): Float64Array {
  const words = spread(lexical, allowed);
  const meanings = spread(cosines, allowed);
  return lexical.map((score, slot) => {
    if (allowed[slot] !== true) return 0;
    const cosine = cosines[slot] ?? NaN;
    return (words(score) + (Number.isNaN(cosine) ? words(score) : meanings(cosine))) / 2;
  });
}

/** Returns a function that scales the values of allowed tools to the range from 0 to 1. */
function spread(
  values: Float64Array | Float32Array,
  allowed: readonly boolean[],
): (value: number) => number {
  let least = Infinity;
  let most = -Infinity;
  values.forEach((value, slot) => {
    if (!allowed[slot] || Number.isNaN(value)) return;
    least = Math.min(least, value);
    most = Math.max(most, value);
  });
  return (value) => most > least ? (value - least) / (most - least) : 0;
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
