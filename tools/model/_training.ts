/**
 * Trains word vectors so that texts of the same meaning get similar mean vectors, and the
 * similarities of texts become those that a teacher finds.
 *
 * @module
 */

import { seeded, shuffled } from "./_linear.ts";

/** The number of dimensions of a word. */
export const DIMENSIONS = 64;
/** How many pairs of texts are compared at once, each with all others. */
const BATCH = 256;
/** The share of words that are left out of a text at random. */
const DROPPED = 0.1;
/** How much more the nearest texts count. */
const SHARPNESS = 1 / 0.07;

/** The texts and pairs of a training. Texts are lists of word numbers. */
export interface Lessons {
  readonly texts: readonly Int32Array[];
  /** Pairs of texts of the same meaning. */
  readonly pairs: readonly Pair[];
  /** The same, of tools. */
  readonly toolPairs: readonly Pair[];
  /** The texts that the teacher read, and its vectors. */
  readonly taught: readonly number[];
  readonly teacher: Float32Array;
  readonly teacherWidth: number;
}

/** The numbers of two texts. */
export type Pair = readonly [one: number, other: number];

/** How a training goes. */
export interface Course {
  readonly epochs: number;
  readonly rate: number;
  /** How often each epoch repeats the pairs of tools, and the texts of the teacher. */
  readonly toolRounds: number;
  readonly teacherRounds: number;
  readonly teacherSharpness: number;
  readonly seed: number;
}

/** One side of a batch: its texts, their vectors of length one, and the gradients. */
interface Side {
  readonly words: Int32Array[];
  readonly vectors: Float32Array;
  readonly lengths: Float32Array;
  readonly gradients: Float32Array;
}

/** Changes word vectors. */
export class Training {
  readonly #vectors: Float32Array;
  readonly #lessons: Lessons;
  readonly #course: Course;
  readonly #random: () => number;
  /** The squared gradients of each word so far, which slow its changes down. */
  readonly #squares: Float32Array;
  readonly #left = emptySide();
  readonly #right = emptySide();
  readonly #similarities = new Float32Array(BATCH * BATCH);
  readonly #targets = new Float32Array(BATCH * BATCH);
  readonly #errors = new Float32Array(BATCH * BATCH);
  /** The row of the teacher of each text; -1 without one. */
  readonly #teacherRows: Int32Array;

  /** Takes the vectors, which it changes. */
  constructor(vectors: Float32Array, lessons: Lessons, course: Course) {
    this.#vectors = vectors;
    this.#lessons = lessons;
    this.#course = course;
    this.#random = seeded(course.seed);
    this.#squares = new Float32Array(vectors.length / DIMENSIONS);
    this.#teacherRows = new Int32Array(lessons.texts.length).fill(-1);
    lessons.taught.forEach((text, row) => this.#teacherRows[text] = row);
  }

  /** Runs all epochs, and reports each. */
  run(tell: (epoch: number, batches: number) => void): void {
    const { epochs, rate } = this.#course;
    for (let epoch = 0; epoch < epochs; epoch++) {
      const batches = this.#batches();
      batches.forEach(({ pairs, isTaught }, at) => {
        const remaining = 1 - (epoch + at / batches.length) / epochs;
        this.#learn(pairs, { isTaught, rate: rate * remaining });
      });
      tell(epoch, batches.length);
    }
  }

  #batches(): { readonly pairs: readonly Pair[]; readonly isTaught: boolean }[] {
    const { pairs, toolPairs, taught } = this.#lessons;
    const { toolRounds, teacherRounds } = this.#course;
    const random = this.#random;
    const same = [shuffled(pairs, random)];
    for (let round = 0; round < toolRounds; round++) same.push(shuffled(toolPairs, random));
    const compared: Pair[][] = [];
    for (let round = 0; round < teacherRounds; round++) {
      const others = shuffled(taught, random);
      compared.push(shuffled(taught, random).map((text, at) => [text, others[at] ?? 0]));
    }
    return shuffled([
      ...cut(same.flat()).map((pairs) => ({ pairs, isTaught: false })),
      ...cut(compared.flat()).map((pairs) => ({ pairs, isTaught: true })),
    ], random);
  }

  #learn(
    pairs: readonly Pair[],
    { isTaught, rate }: { readonly isTaught: boolean; readonly rate: number },
  ): void {
    this.#read(this.#left, pairs.map(([one]) => one));
    this.#read(this.#right, pairs.map(([, other]) => other));
    const { teacherSharpness } = this.#course;
    const sharpness = isTaught ? teacherSharpness : SHARPNESS;
    products(this.#similarities, this.#left.vectors, this.#right.vectors);
    if (isTaught) this.#askTeacher(pairs);
    this.#errors.fill(0);
    this.#compare({ pairs, isTaught, sharpness, across: 1, down: BATCH });
    this.#compare({ pairs, isTaught, sharpness, across: BATCH, down: 1 });
    this.#passBack();
    this.#change(rate);
  }

  /** Computes the vectors of texts, without some of their words. */
  #read(side: Side, texts: readonly number[]): void {
    side.vectors.fill(0);
    side.gradients.fill(0);
    texts.forEach((text, row) => {
      const all = this.#lessons.texts[text] ?? new Int32Array();
      const some = all.length > 2 ? all.filter(() => this.#random() >= DROPPED) : all;
      const words = some.length > 0 ? some : all;
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

  #askTeacher(pairs: readonly Pair[]): void {
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
   * Adds the errors of each line: the difference of how likely each of its texts is the partner, and
   * how likely it should be. Lines are rows or columns.
   */
  #compare({ pairs, isTaught, sharpness, across, down }: {
    readonly pairs: readonly Pair[];
    readonly isTaught: boolean;
    readonly sharpness: number;
    readonly across: number;
    readonly down: number;
  }): void {
    const [is, should] = [new Float32Array(BATCH), new Float32Array(BATCH)];
    for (let line = 0; line < BATCH; line++) {
      for (let at = 0; at < BATCH; at++) {
        const place = line * down + at * across;
        is[at] = this.#similarities[place]!;
        should[at] = isTaught ? this.#targets[place]! : at === line ? 1 : 0;
      }
      softmax(is, sharpness);
      if (isTaught) softmax(should, sharpness);
      const own = pairs[line];
      for (let at = 0; at < BATCH; at++) {
        const other = pairs[at];
        // The same text twice is no mistake.
        const isTwin = !isTaught && at !== line &&
          (own?.[0] === other?.[0] || own?.[1] === other?.[1]);
        if (!isTwin) {
          this.#errors[line * down + at * across]! += (is[at]! - should[at]!) * sharpness /
            (2 * BATCH);
        }
      }
    }
  }

  #passBack(): void {
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

  /** Changes the vectors of the words of a batch against their gradients. */
  #change(rate: number): void {
    const gradients = new Map<number, Float32Array>();
    for (const side of [this.#left, this.#right]) {
      side.words.forEach((words, row) => {
        const from = row * DIMENSIONS;
        let along = 0;
        for (let k = 0; k < DIMENSIONS; k++) {
          along += side.vectors[from + k]! * side.gradients[from + k]!;
        }
        for (const word of words) {
          let gradient = gradients.get(word);
          if (gradient === undefined) gradients.set(word, gradient = new Float32Array(DIMENSIONS));
          for (let k = 0; k < DIMENSIONS; k++) {
            gradient[k]! += (side.gradients[from + k]! - along * side.vectors[from + k]!) /
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

/** Cuts a list into whole batches. */
function cut(pairs: readonly Pair[]): readonly Pair[][] {
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
  let [most, total] = [-Infinity, 0];
  for (const value of values) most = Math.max(most, value);
  for (let at = 0; at < values.length; at++) {
    const part = Math.exp((values[at]! - most) * sharpness);
    values[at] = part;
    total += part;
  }
  for (let at = 0; at < values.length; at++) values[at]! /= total;
}
