/**
 * The word vectors that ship with PML: a vector for each of the most useful English words. The
 * vector of a text is the sum of the vectors of its words. `tools/model` trains them.
 *
 * @module
 */

import { termsOf } from "./terms.ts";

/** The number of dimensions. */
const SIZE = 64;
/**
 * The code of the character for 0. Each number is one printable ASCII character, so that the file
 * can be imported as a text.
 */
const ZERO = 80;
const NUMBER_MAX = 45;
/** The scale of a word is 2 ** (step / STEPS_PER_POWER + POWER_MIN). The step is one character. */
const STEPS_PER_POWER = 6;
const POWER_MIN = -14;

/** Vectors of words. */
export class WordVectors {
  /** The number of dimensions of a vector. */
  readonly size = SIZE;
  /** The number of each word. */
  readonly #numbers = new Map<string, number>();
  readonly #text: string;
  /** The position of each word's scale in the text. The numbers of its vector follow. */
  readonly #positions: number[] = [];
  /** The number of common words. Their numbers are lower than this. */
  readonly #commonCount: number;

  /** Indexes the text of a file. */
  constructor(text: string) {
    this.#text = text;
    let [from, commonCount] = [0, 0];
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      // An empty line follows the common words.
      if (end === from) commonCount = this.#positions.length;
      else this.#add(from, end);
      from = end + 1;
    }
    this.#commonCount = commonCount;
  }

  #add(from: number, end: number): void {
    this.#numbers.set(this.#text.slice(from, end - SIZE - 1), this.#positions.length);
    this.#positions.push(end - SIZE - 1);
  }

  /** Returns whether a stem, in lower case, has a vector. */
  has(term: string): boolean {
    return this.#numbers.has(term);
  }

  /** Returns whether a stem belongs to a common English word, and not only to names. */
  isCommon(term: string): boolean {
    return (this.#numbers.get(term) ?? Infinity) < this.#commonCount;
  }

  /** Returns the vector of a text, of length one; undefined if none of its words has a vector. */
  vectorOf(text: string): Float32Array | undefined {
    const sum = new Float32Array(SIZE);
    let count = 0;
    for (const term of termsOf(text)) {
      const number = this.#numbers.get(term);
      if (number === undefined) continue;
      count += 1;
      const from = this.#positions[number] ?? 0;
      const scale = scaleOf(this.#text.charCodeAt(from));
      for (let at = 0; at < SIZE; at++) {
        sum[at] = (sum[at] ?? 0) + scale * (this.#text.charCodeAt(from + 1 + at) - ZERO);
      }
    }
    if (count === 0) return undefined;
    const length = Math.hypot(...sum) || 1;
    return sum.map((value) => value / length);
  }
}

function scaleOf(code: number): number {
  return 2 ** ((code - ZERO + NUMBER_MAX) / STEPS_PER_POWER + POWER_MIN);
}

/**
 * Returns the text of a file: a line for each word, with its scale and its numbers, and an empty
 * line after the common words, which come first.
 */
export function vectorsText(
  words: readonly string[],
  vectors: Float32Array,
  commonCount = words.length,
): string {
  return words.map((word, row) => {
    const vector = vectors.subarray(row * SIZE, (row + 1) * SIZE);
    const largest = vector.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-6);
    // The step is rounded up, so that the largest number fits.
    const steps = Math.ceil(STEPS_PER_POWER * (Math.log2(largest / NUMBER_MAX) - POWER_MIN));
    const code = ZERO - NUMBER_MAX + Math.min(Math.max(steps, 0), 2 * NUMBER_MAX);
    const scale = scaleOf(code);
    const numbers = Array.from(vector, (value) => ZERO + Math.round(value / scale));
    const end = row === commonCount - 1 ? "\n\n" : "\n";
    return `${word}${String.fromCharCode(code, ...numbers)}${end}`;
  }).join("");
}
