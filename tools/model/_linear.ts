/**
 * The mathematics of the training: random numbers from a seed, and projections to the directions in
 * which rows differ most.
 *
 * @module
 */

/** Returns a generator of numbers from 0 to 1 that depend only on the seed. */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Returns the items in random order. */
export function shuffle<T>(items: readonly T[], random: () => number): T[] {
  const result = [...items];
  for (let at = result.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1));
    [result[at], result[other]] = [result[other] as T, result[at] as T];
  }
  return result;
}

/** Scales each row of a matrix to length 1, in place. */
export function normalize(rows: Float32Array, width: number): void {
  for (let from = 0; from < rows.length; from += width) {
    const row = rows.subarray(from, from + width);
    const length = Math.hypot(...row) || 1;
    for (let at = 0; at < width; at++) row[at] = (row[at] ?? 0) / length;
  }
}

/** The number of rows from which the directions are computed, and of iterations. */
const SAMPLE = 20_000;
const ROUNDS = 25;

/**
 * Subtracts the mean row, and projects each row to the `directions` in which the rows differ most.
 * The new rows have length 1.
 */
export function project(
  rows: Float32Array,
  { width, directions, random }: {
    readonly width: number;
    readonly directions: number;
    readonly random: () => number;
  },
): Float32Array {
  const count = rows.length / width;
  const mean = meanOf(rows, width);
  const centered = rows.map((value, at) => value - (mean[at % width] ?? 0));
  normalize(centered, width);
  const covariance = covarianceOf(centered.subarray(0, Math.min(count, SAMPLE) * width), width);
  let basis = Array.from(
    { length: directions },
    () => Float64Array.from({ length: width }, random),
  );
  for (let round = 0; round < ROUNDS; round++) {
    basis = basis.map((vector) => Float64Array.from(covariance, (row) => dot(row, vector)));
    orthonormalize(basis);
  }
  const result = new Float32Array(count * directions);
  for (let row = 0; row < count; row++) {
    const from = row * width;
    basis.forEach((vector, at) => {
      let sum = 0;
      for (let k = 0; k < width; k++) sum += (vector[k] ?? 0) * (centered[from + k] ?? 0);
      result[row * directions + at] = sum;
    });
  }
  normalize(result, directions);
  return result;
}

function meanOf(rows: Float32Array, width: number): Float64Array {
  const mean = new Float64Array(width);
  rows.forEach((value, at) => mean[at % width] = (mean[at % width] ?? 0) + value);
  return mean.map((sum) => sum * width / rows.length);
}

function covarianceOf(rows: Float32Array, width: number): Float64Array[] {
  const sums = new Float64Array(width * width);
  for (let from = 0; from < rows.length; from += width) {
    for (let one = 0; one < width; one++) {
      const value = rows[from + one] ?? 0;
      for (let other = 0; other < width; other++) {
        sums[one * width + other]! += value * (rows[from + other] ?? 0);
      }
    }
  }
  return Array.from({ length: width }, (_, at) => sums.slice(at * width, (at + 1) * width));
}

function dot(one: Float64Array, other: Float64Array): number {
  let sum = 0;
  for (let at = 0; at < one.length; at++) sum += (one[at] ?? 0) * (other[at] ?? 0);
  return sum;
}

function orthonormalize(basis: Float64Array[]): void {
  basis.forEach((vector, at) => {
    for (const earlier of basis.slice(0, at)) {
      const part = dot(vector, earlier);
      vector.forEach((value, k) => vector[k] = value - part * (earlier[k] ?? 0));
    }
    const length = Math.hypot(...vector) || 1;
    vector.forEach((value, k) => vector[k] = value / length);
  });
}
