/**
 * Computes vectors of texts with a sentence encoder, the teacher. Caches them in files, because this
 * takes most of the time of a training.
 *
 * @module
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** The number of dimensions of a vector. */
export const TEACHER_WIDTH = 512;
const MODEL = "use-lite-en";
const BATCH = 16;

/** The folders that the teacher uses. */
export interface TeacherFolders {
  /** The folder with the npm packages. */
  readonly packages: string;
  /** The folder of the sentence encoder. */
  readonly model: string;
  /** The folder with the cached vectors. */
  readonly cache: string;
}

/** Returns the vectors of texts as the rows of a matrix. */
export async function teacherVectors(
  texts: readonly string[],
  folders: TeacherFolders,
): Promise<Float32Array> {
  const list = join(folders.cache, "teacher.json");
  const path = join(folders.cache, "teacher.bin");
  const vectorsByText = new Map<string, Float32Array>();
  if (existsSync(list) && existsSync(path)) {
    const rows = new Float32Array(new Uint8Array(readFileSync(path)).buffer);
    JSON.parse(readFileSync(list, "utf8")).forEach((text: string, at: number) =>
      vectorsByText.set(text, rows.subarray(at * TEACHER_WIDTH, (at + 1) * TEACHER_WIDTH))
    );
  }
  const missing = texts.filter((text) => !vectorsByText.has(text));
  if (missing.length > 0) {
    for (const [text, vector] of await encodeTexts(missing, folders)) {
      vectorsByText.set(text, vector);
    }
    writeFileSync(list, JSON.stringify([...vectorsByText.keys()]));
    writeFileSync(path, new Uint8Array(concatenate([...vectorsByText.values()]).buffer));
  }
  return concatenate(
    texts.map((text) => vectorsByText.get(text) ?? new Float32Array(TEACHER_WIDTH)),
  );
}

async function encodeTexts(
  texts: readonly string[],
  { packages, model }: TeacherFolders,
): Promise<ReadonlyMap<string, Float32Array>> {
  const { env, pipeline } = createRequire(join(packages, "x.js"))("@huggingface/transformers");
  Object.assign(env, { allowRemoteModels: false, localModelPath: `${dirname(model)}/` });
  const encode = await pipeline("feature-extraction", MODEL, {
    dtype: "q8",
    session_options: { intraOpNumThreads: 1, interOpNumThreads: 1 },
  });
  const vectors = new Map<string, Float32Array>();
  // Sorts by length, because texts of the same length need no padding.
  const sorted = texts.toSorted((one, other) => one.length - other.length);
  for (let from = 0; from < sorted.length; from += BATCH) {
    const batch = sorted.slice(from, from + BATCH);
    const { data } = await encode(batch, { pooling: "mean", normalize: true });
    batch.forEach((text, row) =>
      vectors.set(text, data.slice(row * TEACHER_WIDTH, (row + 1) * TEACHER_WIDTH))
    );
  }
  return vectors;
}

function concatenate(rows: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(rows.length * TEACHER_WIDTH);
  rows.forEach((row, at) => all.set(row, at * TEACHER_WIDTH));
  return all;
}
