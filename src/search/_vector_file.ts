/**
 * Stores vectors in one file, by the hashes of their texts, with one byte for each dimension. A
 * damaged file or a file of another model counts as missing.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { sha256 } from "../core/hash.ts";
import { writeFileWhole } from "../io/cache_files.ts";
import { readRegular } from "../io/regular_file.ts";

/** A stored vector: its numbers as integers from -127 to 127, and the value of one unit. */
export interface StoredVector {
  readonly codes: Int8Array;
  readonly scale: number;
}

/** The value for a text for which the model returns no vector. */
export const NO_VECTOR: StoredVector = { codes: new Int8Array(), scale: NaN };

/** Vectors by the hash of their text, 32 hexadecimal digits. */
export type StoredVectors = ReadonlyMap<string, StoredVector>;

const MAGIC = "PMLV0001";
/**
 * The size of the header in bytes: `MAGIC`, the hash of the model, the number of dimensions and the
 * number of vectors.
 */
const HEAD = MAGIC.length + 32 + 4 + 4;
/** The size of a vector's key in bytes. */
const KEY = 16;
/** The size of the hash at the end, in bytes. */
const HASH = 32;
const BYTES_MAX = 512 << 20;

/** Returns a vector of length one in its stored form. */
export function toStoredVector(vector: Float32Array): StoredVector {
  const largest = vector.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
  const scale = largest / 127;
  return { codes: Int8Array.from(vector, (value) => Math.round(value / (scale || 1))), scale };
}

/**
 * Writes vectors to a file that only this user can read. The file is replaced as a whole. Texts
 * without a vector are left out.
 */
export function writeVectors(path: string, model: string, all: StoredVectors): void {
  const vectors = new Map([...all].filter(([, { scale }]) => scale > 0));
  const [first] = vectors.values();
  const size = first?.codes.length ?? 0;
  const rowSize = KEY + 4 + size;
  const bytes = Buffer.alloc(HEAD + vectors.size * rowSize + HASH);
  bytes.write(MAGIC, "latin1");
  bytes.write(model, MAGIC.length, "hex");
  bytes.writeUInt32LE(size, HEAD - 8);
  bytes.writeUInt32LE(vectors.size, HEAD - 4);
  let at = HEAD;
  for (const [key, { codes, scale }] of vectors) {
    bytes.write(key, at, "hex");
    bytes.writeFloatLE(scale, at + KEY);
    bytes.set(new Uint8Array(codes.buffer, codes.byteOffset, size), at + KEY + 4);
    at += rowSize;
  }
  bytes.write(sha256(bytes.subarray(0, at)), at, "hex");
  writeFileWhole(path, bytes);
}

/** Reads the vectors of a model. Returns an empty map if there is no valid file of this model. */
export function readVectors(path: string, model: string): Map<string, StoredVector> {
  const empty = new Map<string, StoredVector>();
  const bytes = readBytes(path);
  if (bytes === undefined || bytes.length < HEAD + HASH) return empty;
  const end = bytes.length - HASH;
  const size = bytes.readUInt32LE(HEAD - 8);
  const count = bytes.readUInt32LE(HEAD - 4);
  const rowSize = KEY + 4 + size;
  const isValid = bytes.toString("latin1", 0, MAGIC.length) === MAGIC &&
    bytes.toString("hex", MAGIC.length, HEAD - 8) === model && HEAD + count * rowSize === end &&
    bytes.toString("hex", end) === sha256(bytes.subarray(0, end));
  if (!isValid) return empty;
  return new Map(Array.from({ length: count }, (_, index) => {
    const at = HEAD + index * rowSize;
    const codes = new Int8Array(bytes.buffer, bytes.byteOffset + at + KEY + 4, size);
    const scale = bytes.readFloatLE(at + KEY);
    return [bytes.toString("hex", at, at + KEY), { codes, scale }];
  }));
}

function readBytes(path: string): Buffer | undefined {
  try {
    const { bytes } = readRegular(path, { most: BYTES_MAX });
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  } catch {
    return undefined; // missing or unreadable: the vectors are computed again
  }
}
