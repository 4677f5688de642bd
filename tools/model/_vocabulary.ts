/**
 * Chooses the words that get a vector, and the start vector of each word.
 *
 * @module
 */

import { termsOf } from "../../src/search/terms.ts";
import type { Meaning, StartVectors, ToolTexts } from "./_data.ts";
import { project } from "./_linear.ts";
import { DIMENSIONS } from "./_training.ts";

/** The number of words. */
const SIZE = 20_000;
const WORD = /^[a-z][a-z0-9]{1,22}$/;
/**
 * Words of WordNet are used if they are among the first `CONSIDERED` words of the start vectors. After
 * the first `FREQUENT` words, WordNet must use them more than once.
 */
const CONSIDERED = 100_000;
const FREQUENT = 20_000;
/** Later words of the start vectors count as names: `asana` is a pose in yoga, and a product. */
const COMMON_UNTIL = 80_000;
/** How much more often a word of tools counts than a word of WordNet. */
const TOOL_WEIGHT = 5;
/** The frequency at which the vector of a word is halved. */
const HALF_SHARE = 1e-3;
const START_WIDTH = 100;

/** The words with a vector, and the vectors. The index of a word is its number. */
export interface Vocabulary {
  readonly words: readonly string[];
  /** Returns whether a word is a common English word, not only part of names. */
  isCommon(word: string): boolean;
  readonly vectors: Float32Array;
  /** Returns the numbers of the words of a text. */
  numbersIn(text: string): Int32Array;
}

/** A weighted sum of the start vectors of words with the same stem. */
interface Start {
  readonly sum: Float64Array;
  weight: number;
}

/** Chooses the words: first words of tools, then words of WordNet, then the most frequent words. */
export function makeVocabulary(
  { tools, meanings, start }: {
    readonly tools: readonly ToolTexts[];
    readonly meanings: readonly Meaning[];
    readonly start: StartVectors;
  },
  random: () => number,
): Vocabulary {
  const toolCounts = countWords(
    tools.flatMap(({ fullName, description, parameters }) => [fullName, description, parameters]),
  );
  const counts = countWords(
    meanings.flatMap(({ definition, examples }) => [definition, ...examples]),
  );
  for (const [word, count] of toolCounts) add(counts, word, TOOL_WEIGHT * count);
  const starts = startsOf(start);
  const defined = new Set(meanings.flatMap(({ words }) => words.flatMap(termsOf)));
  const numbers = new Map<string, number>();
  const addWord = (word: string) => {
    if (numbers.size < SIZE && !numbers.has(word) && WORD.test(word)) {
      numbers.set(word, numbers.size);
    }
  };
  for (const [word, count] of [...toolCounts].sort(([, a], [, b]) => b - a)) {
    if (starts.has(word) || count > 1) addWord(word);
  }
  start.words.slice(0, CONSIDERED).forEach((word, at) =>
    termsOf(word).filter((term) => defined.has(term))
      .filter((term) => at < FREQUENT || (counts.get(term) ?? 0) > 1).forEach(addWord)
  );
  for (const word of start.words) termsOf(word).forEach(addWord);
  const frequent = new Set(start.words.slice(0, COMMON_UNTIL).flatMap(termsOf));
  const words = [...numbers.keys()];
  return {
    words,
    isCommon: (word) => defined.has(word) && frequent.has(word),
    vectors: startVectors(words, { starts, counts, random }),
    numbersIn: (text) => Int32Array.from(termsOf(text).flatMap((term) => numbers.get(term) ?? [])),
  };
}

/** Returns the start vector of each word. Vectors of common words are shorter. */
function startVectors(
  words: readonly string[],
  { starts, counts, random }: {
    readonly starts: ReadonlyMap<string, Start>;
    readonly counts: ReadonlyMap<string, number>;
    readonly random: () => number;
  },
): Float32Array {
  const rows = new Float32Array(words.length * START_WIDTH);
  words.forEach((word, row) => {
    const { sum, weight } = starts.get(word) ?? { sum: undefined, weight: 1 };
    for (let k = 0; k < START_WIDTH; k++) {
      rows[row * START_WIDTH + k] = sum === undefined ? random() - 0.5 : (sum[k] ?? 0) / weight;
    }
  });
  const vectors = project(rows, { width: START_WIDTH, directions: DIMENSIONS, random });
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  return vectors.map((value, at) => {
    const count = counts.get(words[Math.floor(at / DIMENSIONS)] ?? "") ?? 0.5;
    return value * HALF_SHARE / (HALF_SHARE + count / total);
  });
}

function startsOf({ words, vectorOf }: StartVectors): ReadonlyMap<string, Start> {
  const starts = new Map<string, Start>();
  words.forEach((word, at) => {
    if (!WORD.test(word)) return;
    // The vector of a stem is the mean of its words; frequent words count more.
    const weight = 1 / (at + 10);
    const vector = vectorOf(word);
    for (const term of termsOf(word)) {
      const start = starts.get(term) ?? { sum: new Float64Array(START_WIDTH), weight: 0 };
      vector.forEach((value, k) => start.sum[k] = (start.sum[k] ?? 0) + weight * value);
      start.weight += weight;
      starts.set(term, start);
    }
  });
  return starts;
}

function countWords(texts: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) for (const term of termsOf(text)) add(counts, term, 1);
  return counts;
}

function add(counts: Map<string, number>, word: string, count: number): void {
  counts.set(word, (counts.get(word) ?? 0) + count);
}
