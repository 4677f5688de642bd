/**
 * Chooses the words that get a vector, and the vector that each starts with.
 *
 * @module
 */

import { termsOf } from "../../src/search/terms.ts";
import type { Meaning, StartVectors, ToolTexts } from "./_data.ts";
import { projected } from "./_linear.ts";
import { DIMENSIONS } from "./_training.ts";

/** The number of words. */
const SIZE = 20_000;
const WORD = /^[a-z][a-z0-9]{1,22}$/;
/** The words of the start vectors among which WordNet chooses, and those that it need not use often. */
const CONSIDERED = 100_000;
const FREQUENT = 20_000;
/** Words of WordNet after these count as names: `asana` is a pose in yoga, and a product. */
const COMMON_UNTIL = 80_000;
/** How much more a word of tools counts than one of WordNet. */
const TOOL_WORTH = 5;
/** The share of all words at which a word counts half. */
const COMMON = 1e-3;
const START_WIDTH = 100;

/** The words with a vector, by their numbers, and the vectors. */
export interface Vocabulary {
  readonly words: readonly string[];
  /** Returns whether a word is a common one of English, and not only part of names. */
  isCommon(word: string): boolean;
  readonly vectors: Float32Array;
  /** Returns the numbers of the words of a text. */
  numbersIn(text: string): Int32Array;
}

/** A sum of start vectors of words with the same stem. */
interface Start {
  readonly sum: Float64Array;
  weight: number;
}

/** Chooses the words: those of tools first, then those of WordNet, then the most frequent ones. */
export function makeVocabulary(
  { tools, meanings, start }: {
    readonly tools: readonly ToolTexts[];
    readonly meanings: readonly Meaning[];
    readonly start: StartVectors;
  },
  random: () => number,
): Vocabulary {
  const inTools = counted(
    tools.flatMap(({ fullName, description, parameters }) => [fullName, description, parameters]),
  );
  const counts = counted(meanings.flatMap(({ definition, examples }) => [definition, ...examples]));
  for (const [word, count] of inTools) add(counts, word, TOOL_WORTH * count);
  const starts = startsOf(start);
  const defined = new Set(meanings.flatMap(({ words }) => words.flatMap(termsOf)));
  const numbers = new Map<string, number>();
  const take = (word: string) => {
    if (numbers.size < SIZE && !numbers.has(word) && WORD.test(word)) {
      numbers.set(word, numbers.size);
    }
  };
  for (const [word, count] of [...inTools].sort(([, one], [, other]) => other - one)) {
    if (starts.has(word) || count > 1) take(word);
  }
  start.words.slice(0, CONSIDERED).forEach((word, at) =>
    termsOf(word).filter((term) => defined.has(term))
      .filter((term) => at < FREQUENT || (counts.get(term) ?? 0) > 1).forEach(take)
  );
  for (const word of start.words) termsOf(word).forEach(take);
  const frequent = new Set(start.words.slice(0, COMMON_UNTIL).flatMap(termsOf));
  const words = [...numbers.keys()];
  return {
    words,
    isCommon: (word) => defined.has(word) && frequent.has(word),
    vectors: startVectors(words, { starts, counts, random }),
    numbersIn: (text) => Int32Array.from(termsOf(text).flatMap((term) => numbers.get(term) ?? [])),
  };
}

/** Returns the start vector of each word, shorter for a common word. */
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
  const vectors = projected(rows, { width: START_WIDTH, directions: DIMENSIONS, random });
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  return vectors.map((value, at) => {
    const count = counts.get(words[Math.floor(at / DIMENSIONS)] ?? "") ?? 0.5;
    return value * COMMON / (COMMON + count / total);
  });
}

function startsOf({ words, vectorOf }: StartVectors): ReadonlyMap<string, Start> {
  const starts = new Map<string, Start>();
  words.forEach((word, at) => {
    if (!WORD.test(word)) return;
    // A stem gets the mean of its words; frequent ones count more.
    const weight = 1 / (at + 10);
    const vector = vectorOf(word);
    for (const term of termsOf(word)) {
      const one = starts.get(term) ?? { sum: new Float64Array(START_WIDTH), weight: 0 };
      vector.forEach((value, k) => one.sum[k] = (one.sum[k] ?? 0) + weight * value);
      one.weight += weight;
      starts.set(term, one);
    }
  });
  return starts;
}

function counted(texts: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) for (const term of termsOf(text)) add(counts, term, 1);
  return counts;
}

function add(counts: Map<string, number>, word: string, count: number): void {
  counts.set(word, (counts.get(word) ?? 0) + count);
}
