/**
 * Vectors in one file: each by the hash of its text, with a byte for a dimension. A file that is
 * damaged, or of another model, is none.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { sha256 } from "../core/hash.ts";
import { keepFile } from "../io/kept.ts";
import { readRegular } from "../io/regular_file.ts";

/** A vector as it is kept: its numbers between -127 and 127, and what one of them stands for. */
export interface Kept {
  readonly codes: Int8Array;
  readonly scale: number;
}

/** What is kept of a text that the model makes nothing of: it is near nobody knows what. */
export const UNKNOWN: Kept = { codes: new Int8Array(), scale: NaN };

/** Vectors by the hash of their text, 32 hexadecimal digits. */
export type KeptVectors = ReadonlyMap<string, Kept>;

const MAGIC = "PMLV0001";
/** The magic, the hash of the model, the dimensions and how many vectors follow. */
const HEAD = MAGIC.length + 32 + 4 + 4;
const KEY = 16;
const HASH = 32;
const LARGEST = 512 << 20;

/** Makes of a vector of length one what is kept of it. */
export function keptOf(vector: Float32Array): Kept {
  const most = vector.reduce((largest, one) => Math.max(largest, Math.abs(one)), 0);
  const scale = most / 127;
  return { codes: Int8Array.from(vector, (one) => Math.round(one / (scale || 1))), scale };
}

/** Writes vectors, whole or not at all, for this person alone; what is unknown is not written. */
export function writeVectors(path: string, model: string, all: KeptVectors): void {
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

/** Reads the vectors of a model; none where there is no such file. */
export function readVectors(path: string, model: string): Map<string, Kept> {
  const none = new Map<string, Kept>();
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
    return undefined; // there is none yet, or none that can be read: they are made anew
  }
}
