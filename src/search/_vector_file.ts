/**
 * Stores vectors in one file: each by the hash of its text, with one byte for each dimension. A
 * file that is damaged, or belongs to another model, counts as missing.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { sha256 } from "../core/hash.ts";
import { keepFile } from "../io/kept.ts";
import { readRegular } from "../io/regular_file.ts";

/** A stored vector: its numbers as integers from -127 to 127, and the value of one unit. */
export interface StoredVector {
  readonly codes: Int8Array;
  readonly scale: number;
}

/** Stands for a text for which the model returns no vector. */
export const UNKNOWN: StoredVector = { codes: new Int8Array(), scale: NaN };

/** Vectors by the hash of their text, 32 hexadecimal digits. */
export type StoredVectors = ReadonlyMap<string, StoredVector>;

const MAGIC = "PMLV0001";
/**
 * The header: the magic, the hash of the model, the number of dimensions and the number of vectors.
 */
const HEAD = MAGIC.length + 32 + 4 + 4;
const KEY = 16;
const HASH = 32;
const LARGEST = 512 << 20;

/** Returns a vector of length one in its stored form. */
export function storedVector(vector: Float32Array): StoredVector {
  const most = vector.reduce((largest, one) => Math.max(largest, Math.abs(one)), 0);
  const scale = most / 127;
  return { codes: Int8Array.from(vector, (one) => Math.round(one / (scale || 1))), scale };
}

/**
 * Writes vectors to a file that only this user can read, either all of them or nothing. Unknown
 * vectors are left out.
 */
export function writeVectors(path: string, model: string, all: StoredVectors): void {
  const vectors = new Map([...all].filter(([, { scale }]) => scale > 0));
  const [first] = vectors.values();
  const size = first?.codes.length ?? 0;
  const row = KEY + 4 + size;
  const bytes = Buffer.alloc(HEAD + vectors.size * row + HASH);
  bytes.write(MAGIC, "latin1");
  bytes.write(model, MAGIC.length, "hex");
  bytes.writeUInt32LE(size, HEAD - 8);
  bytes.writeUInt32LE(vectors.size, HEAD - 4);
  let at = HEAD;
  for (const [key, { codes, scale }] of vectors) {
    bytes.write(key, at, "hex");
    bytes.writeFloatLE(scale, at + KEY);
    bytes.set(new Uint8Array(codes.buffer, codes.byteOffset, size), at + KEY + 4);
    at += row;
  }
  bytes.write(sha256(bytes.subarray(0, at)), at, "hex");
  keepFile(path, bytes);
}

/** Reads the vectors of a model; empty if there is no such file. */
export function readVectors(path: string, model: string): Map<string, StoredVector> {
  const none = new Map<string, StoredVector>();
  const bytes = bytesOf(path);
  if (bytes === undefined || bytes.length < HEAD + HASH) return none;
  const end = bytes.length - HASH;
  const size = bytes.readUInt32LE(HEAD - 8);
  const count = bytes.readUInt32LE(HEAD - 4);
  const row = KEY + 4 + size;
  const isWhole = bytes.toString("latin1", 0, MAGIC.length) === MAGIC &&
    bytes.toString("hex", MAGIC.length, HEAD - 8) === model && HEAD + count * row === end &&
    bytes.toString("hex", end) === sha256(bytes.subarray(0, end));
  if (!isWhole) return none;
  return new Map(Array.from({ length: count }, (_, index) => {
    const at = HEAD + index * row;
    const codes = new Int8Array(bytes.buffer, bytes.byteOffset + at + KEY + 4, size);
    const scale = bytes.readFloatLE(at + KEY);
    return [bytes.toString("hex", at, at + KEY), { codes, scale }];
  }));
}

function bytesOf(path: string): Buffer | undefined {
  try {
    const { bytes } = readRegular(path, { most: LARGEST });
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  } catch {
    return undefined; // missing or unreadable: the vectors are computed again
  }
}
