/**
 * Joins what words say of tools with what their meanings say.
 *
 * @module
 */

/**
 * Gives for each tool half of its lexical score and half of its cosine, each from 0 to 1 among the
 * allowed. Where nobody knows a cosine, words count for both.
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

/** Makes what brings the allowed ones between 0 and 1. */
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

/** Sentences about nothing that tools do: how near they come is how near nothing comes. */
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

/** The cosine that the best tool has to have to mean more than nothing: more than all of these reach. */
export function leastCosine(cosines: readonly Float32Array[]): number {
  // Of a tool that is not understood nobody knows it.
  return Math.max(
    ...cosines.map((each) => each.reduce((one, other) => other > one ? other : one, -1)),
  );
}
