/**
 * Cuts a stream of bytes into lines in linear time, with a bound on how long a line may be.
 *
 * @module
 */

import { Buffer } from "node:buffer";

/**
 * A whole line without its end; the beginning and the end of one over what is kept; or word that
 * one is too long, which is told at once, and the line is passed over.
 */
export type Line =
  | { readonly kind: "line"; readonly bytes: Uint8Array }
  | { readonly kind: "cut"; readonly ends: Uint8Array; readonly size: number; readonly max: number }
  | { readonly kind: "too-long"; readonly max: number };

const NEWLINE = 10;
const PIECE = 1 << 18;
/** How much is kept of the beginning and of the end of a line. */
const END = 1_000;

/** Keeps the bytes of the current line; of a line over `max` bytes nothing is kept. */
export class LineReader {
  readonly #max: number;
  readonly #kept: number;
  #parts: Uint8Array[] = [];
  #length = 0;

  /** Makes a reader for lines of at most `max` bytes; of those over `kept` only the ends are kept. */
  constructor(max: number, kept = max) {
    this.#max = max;
    this.#kept = Math.min(kept, max);
  }

  /** How many bytes have come of a line that has not ended, and are kept. */
  get kept(): number {
    return this.#length > this.#kept ? 0 : this.#length;
  }

  /** Takes a chunk and gives the lines that it completes. */
  *push(chunk: Uint8Array): Generator<Line> {
    let from = 0;
    for (;;) {
      const newline = chunk.indexOf(NEWLINE, from);
      const part = chunk.subarray(from, newline < 0 ? undefined : newline);
      const before = this.#length;
      this.#length += part.length;
      // What is kept is copied: the next chunk may come in the same memory.
      if (this.#length <= this.#kept) this.#parts.push(newline < 0 ? part.slice() : part);
      else if (this.#length <= this.#max) this.#cut(part);
      else if (before <= this.#max) {
        this.#parts = [];
        yield { kind: "too-long", max: this.#max };
      }
      if (newline < 0) return;
      if (this.#length <= this.#max) yield this.#whole();
      this.#parts = [];
      this.#length = 0;
      from = newline + 1;
    }
  }

  #whole(): Line {
    const bytes = joined(this.#parts);
    if (this.#length <= this.#kept) return { kind: "line", bytes };
    return { kind: "cut", ends: bytes, size: this.#length, max: this.#kept };
  }

  #cut(part: Uint8Array): void {
    const all = [...this.#parts, part];
    // As many parts as bytes are enough, and of the end it must be a copy.
    const last = new Uint8Array(Buffer.concat(all.slice(-END)).subarray(-END));
    this.#parts = [Buffer.concat(all, END), last];
  }
}

/** Gives the beginning and the end of a line. */
export function endsOf(line: Uint8Array): Uint8Array {
  return joined([line.subarray(0, END), line.subarray(-END)]);
}

/** Reads a stream piece by piece into the same memory; each may have to be waited for. */
export async function eachPiece(
  stream: ReadableStream<Uint8Array>,
  take: (piece: Uint8Array) => Promise<void> | void,
): Promise<void> {
  // The pipes of a process are byte streams, whatever their type says.
  const reader = stream.getReader({ mode: "byob" });
  for (let memory = new ArrayBuffer(PIECE);;) {
    const { done, value } = await reader.read(new Uint8Array(memory));
    if (done || value === undefined) return;
    const taken = take(value);
    if (taken !== undefined) await taken;
    memory = value.buffer;
  }
}

/** Joins pieces of bytes; a single one is given as it is. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
}
