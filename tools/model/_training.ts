/**
 * Trains word vectors so that texts with the same meaning get similar mean vectors, and so that the
 * similarities of texts approach those of a teacher's vectors.
 *
 * @module
 */

import { seededRandom, shuffle } from "./_linear.ts";

/** The number of dimensions of a word. */
export const DIMENSIONS = 64;
/** The number of pairs in a batch. Each text is compared with all partners of the batch. */
const BATCH = 256;
/** The share of words that are randomly left out of a text. */
const DROP_RATE = 0.1;
/** The inverse temperature of the softmax: with higher values, the nearest texts count more. */
const SHARPNESS = 1 / 0.07;

/** The texts and pairs of a training. Texts are lists of word numbers. */
export interface Lessons {
  readonly texts: readonly Int32Array[];
  /** Pairs of texts with the same meaning. */
  readonly pairs: readonly Pair[];
  /** Pairs of texts about the same tool. */
  readonly toolPairs: readonly Pair[];
  /** The numbers of the texts with vectors of the teacher, and these vectors. */
  readonly teacherTexts: readonly number[];
  readonly teacher: Float32Array;
  readonly teacherWidth: number;
}

/** The numbers of two texts. */
export type Pair = readonly [one: number, other: number];

/** Options of a training. */
export interface TrainingOptions {
  readonly epochs: number;
  readonly rate: number;
  /** How often each epoch repeats the pairs of tools, and the texts of the teacher. */
  readonly toolRounds: number;
  readonly teacherRounds: number;
  readonly teacherSharpness: number;
  readonly seed: number;
}

/** One side of a batch: the words of its texts, their vectors of length 1, and the gradients. */
interface Side {
  readonly words: Int32Array[];
  readonly vectors: Float32Array;
  readonly lengths: Float32Array;
  readonly gradients: Float32Array;
}

/** Trains word vectors, in place. */
export class Training {
  readonly #vectors: Float32Array;
  readonly #lessons: Lessons;
  readonly #options: TrainingOptions;
  readonly #random: () => number;
  /** The sum of the squared gradients of each word, which reduces its steps (AdaGrad). */
  readonly #squares: Float32Array;
  readonly #left = emptySide();
  readonly #right = emptySide();
  readonly #similarities = new Float32Array(BATCH * BATCH);
  readonly #targets = new Float32Array(BATCH * BATCH);
  readonly #errors = new Float32Array(BATCH * BATCH);
  /** The row of each text in the matrix of the teacher; -1 if it has none. */
  readonly #teacherRows: Int32Array;

  /** Creates a training that changes `vectors`. */
  constructor(vectors: Float32Array, lessons: Lessons, options: TrainingOptions) {
    this.#vectors = vectors;
    this.#lessons = lessons;
    this.#options = options;
    this.#random = seededRandom(options.seed);
    this.#squares = new Float32Array(vectors.length / DIMENSIONS);
    this.#teacherRows = new Int32Array(lessons.texts.length).fill(-1);
    lessons.teacherTexts.forEach((text, row) => this.#teacherRows[text] = row);
  }

  /** Runs all epochs. Calls `onEpoch` after each. */
  run(onEpoch: (epoch: number, batches: number) => void): void {
    const { epochs, rate } = this.#options;
    for (let epoch = 0; epoch < epochs; epoch++) {
      const batches = this.#batches();
      batches.forEach(({ pairs, usesTeacher }, at) => {
        const remaining = 1 - (epoch + at / batches.length) / epochs;
        this.#learn(pairs, { usesTeacher, rate: rate * remaining });
      });
      onEpoch(epoch, batches.length);
    }
  }

  #batches(): { readonly pairs: readonly Pair[]; readonly usesTeacher: boolean }[] {
    const { pairs, toolPairs, teacherTexts } = this.#lessons;
    const { toolRounds, teacherRounds } = this.#options;
    const random = this.#random;
    const batchPairs = [shuffle(pairs, random)];
    for (let round = 0; round < toolRounds; round++) batchPairs.push(shuffle(toolPairs, random));
    const teacherPairs: Pair[][] = [];
    for (let round = 0; round < teacherRounds; round++) {
      const partners = shuffle(teacherTexts, random);
      teacherPairs.push(shuffle(teacherTexts, random).map((text, at) => [text, partners[at] ?? 0]));
    }
    return shuffle([
      ...toBatches(batchPairs.flat()).map((pairs) => ({ pairs, usesTeacher: false })),
      ...toBatches(teacherPairs.flat()).map((pairs) => ({ pairs, usesTeacher: true })),
    ], random);
  }

  #learn(
    pairs: readonly Pair[],
    { usesTeacher, rate }: { readonly usesTeacher: boolean; readonly rate: number },
  ): void {
    this.#computeVectors(this.#left, pairs.map(([one]) => one));
    this.#computeVectors(this.#right, pairs.map(([, other]) => other));
    const { teacherSharpness } = this.#options;
    const sharpness = usesTeacher ? teacherSharpness : SHARPNESS;
    products(this.#similarities, this.#left.vectors, this.#right.vectors);
    if (usesTeacher) this.#computeTargets(pairs);
    this.#errors.fill(0);
    this.#addErrors({ pairs, usesTeacher, sharpness, across: 1, down: BATCH });
    this.#addErrors({ pairs, usesTeacher, sharpness, across: BATCH, down: 1 });
    this.#computeGradients();
    this.#updateVectors(rate);
  }

  /** Computes the vectors of texts. Leaves out some of their words at random. */
  #computeVectors(side: Side, texts: readonly number[]): void {
    side.vectors.fill(0);
    side.gradients.fill(0);
    texts.forEach((text, row) => {
      const allWords = this.#lessons.texts[text] ?? new Int32Array();
      const someWords = allWords.length > 2
        ? allWords.filter(() => this.#random() >= DROP_RATE)
        : allWords;
      const words = someWords.length > 0 ? someWords : allWords;
      side.words[row] = words;
      const from = row * DIMENSIONS;
      for (const word of words) {
        for (let k = 0; k < DIMENSIONS; k++) {
          side.vectors[from + k]! += this.#vectors[word * DIMENSIONS + k]!;
        }
      }
      let squares = 0;
      for (let k = 0; k < DIMENSIONS; k++) squares += side.vectors[from + k]! ** 2;
      const length = Math.sqrt(squares) || 1;
      side.lengths[row] = length;
      for (let k = 0; k < DIMENSIONS; k++) side.vectors[from + k]! /= length;
    });
  }

  #computeTargets(pairs: readonly Pair[]): void {
    const { teacher, teacherWidth: width } = this.#lessons;
    const rowOf = (text: number) => (this.#teacherRows[text] ?? 0) * width;
    const others = pairs.map(([, other]) => rowOf(other));
    pairs.forEach(([text], row) => {
      const one = rowOf(text);
      others.forEach((other, column) => {
        let sum = 0;
        for (let k = 0; k < width; k++) sum += teacher[one + k]! * teacher[other + k]!;
        this.#targets[row * BATCH + column] = sum;
      });
    });
  }

  /**
   * Adds the errors of each line (a row or a column) of the matrix: the differences between the actual
   * and the expected probability that each text of the line is the partner.
   */
  #addErrors({ pairs, usesTeacher, sharpness, across, down }: {
    readonly pairs: readonly Pair[];
    readonly usesTeacher: boolean;
    readonly sharpness: number;
    readonly across: number;
    readonly down: number;
  }): void {
    const [actual, expected] = [new Float32Array(BATCH), new Float32Array(BATCH)];
    for (let line = 0; line < BATCH; line++) {
      for (let at = 0; at < BATCH; at++) {
        const index = line * down + at * across;
        actual[at] = this.#similarities[index]!;
        expected[at] = usesTeacher ? this.#targets[index]! : at === line ? 1 : 0;
      }
      softmax(actual, sharpness);
      if (usesTeacher) softmax(expected, sharpness);
      const pair = pairs[line];
      for (let at = 0; at < BATCH; at++) {
        const other = pairs[at];
        // Another pair with the same text is not an error.
        const isTwin = !usesTeacher && at !== line &&
          (pair?.[0] === other?.[0] || pair?.[1] === other?.[1]);
        if (!isTwin) {
          this.#errors[line * down + at * across]! += (actual[at]! - expected[at]!) * sharpness /
            (2 * BATCH);
        }
      }
    }
  }

  #computeGradients(): void {
    const [left, right] = [this.#left, this.#right];
    for (let row = 0; row < BATCH; row++) {
      const one = row * DIMENSIONS;
      for (let column = 0; column < BATCH; column++) {
        const error = this.#errors[row * BATCH + column]!;
        if (Math.abs(error) < 1e-7) continue;
        const other = column * DIMENSIONS;
        for (let k = 0; k < DIMENSIONS; k++) {
          left.gradients[one + k]! += error * right.vectors[other + k]!;
          right.gradients[other + k]! += error * left.vectors[one + k]!;
        }
      }
    }
  }

  /** Moves the vectors of the words of a batch against their gradients. */
  #updateVectors(rate: number): void {
    const gradients = new Map<number, Float32Array>();
    for (const side of [this.#left, this.#right]) {
      side.words.forEach((words, row) => {
        const from = row * DIMENSIONS;
        let projection = 0;
        for (let k = 0; k < DIMENSIONS; k++) {
          projection += side.vectors[from + k]! * side.gradients[from + k]!;
        }
        for (const word of words) {
          let gradient = gradients.get(word);
          if (gradient === undefined) gradients.set(word, gradient = new Float32Array(DIMENSIONS));
          for (let k = 0; k < DIMENSIONS; k++) {
            gradient[k]! += (side.gradients[from + k]! - projection * side.vectors[from + k]!) /
              side.lengths[row]!;
          }
        }
      });
    }
    for (const [word, gradient] of gradients) {
      let squares = 0;
      for (let k = 0; k < DIMENSIONS; k++) squares += gradient[k]! ** 2;
      this.#squares[word]! += squares / DIMENSIONS;
      const step = rate / Math.sqrt(this.#squares[word]! + 1e-10);
      for (let k = 0; k < DIMENSIONS; k++) {
        this.#vectors[word * DIMENSIONS + k]! -= step * gradient[k]!;
      }
    }
  }
}

function emptySide(): Side {
  return {
    words: [],
    vectors: new Float32Array(BATCH * DIMENSIONS),
    lengths: new Float32Array(BATCH),
    gradients: new Float32Array(BATCH * DIMENSIONS),
  };
}

/** Divides a list into full batches. Leaves out the pairs that do not fill the last batch. */
function toBatches(pairs: readonly Pair[]): readonly Pair[][] {
  return Array.from(
    { length: Math.floor(pairs.length / BATCH) },
    (_, at) => pairs.slice(at * BATCH, (at + 1) * BATCH),
  );
}

function products(result: Float32Array, one: Float32Array, other: Float32Array): void {
  for (let row = 0; row < BATCH; row++) {
    const from = row * DIMENSIONS;
    for (let column = 0; column < BATCH; column++) {
      const to = column * DIMENSIONS;
      let sum = 0;
      for (let k = 0; k < DIMENSIONS; k++) sum += one[from + k]! * other[to + k]!;
      result[row * BATCH + column] = sum;
    }
  }
}

function softmax(values: Float32Array, sharpness: number): void {
  let [maximum, total] = [-Infinity, 0];
  for (const value of values) maximum = Math.max(maximum, value);
  for (let at = 0; at < values.length; at++) {
    const part = Math.exp((values[at]! - maximum) * sharpness);
    values[at] = part;
    total += part;
  }
  for (let at = 0; at < values.length; at++) values[at]! /= total;
}
