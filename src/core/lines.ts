/**
 * Cuts a stream of bytes into lines in linear time, with a bound on how long a line may be.
 *
 * @module
 */

import { Buffer } from "node:buffer";

/** A whole line without its end, or word that one is too long: told at once, then passed over. */
export type Line =
  | { readonly kind: "line"; readonly bytes: Uint8Array }
  | { readonly kind: "too-long"; readonly max: number };

const NEWLINE = 10;
const PIECE = 1 << 18;

/** Keeps the bytes of the current line; of a line over `max` bytes nothing is kept. */
export class LineReader {
  readonly #max: number;
  #parts: Uint8Array[] = [];
  #length = 0;

  /** Makes a reader for lines of at most `max` bytes. */
  constructor(max: number) {
    this.#max = max;
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
      if (this.#length <= this.#max) this.#parts.push(newline < 0 ? part.slice() : part);
      else if (before <= this.#max) {
        this.#parts = [];
        yield { kind: "too-long", max: this.#max };
      }
      if (newline < 0) return;
      if (this.#length <= this.#max) yield { kind: "line", bytes: joined(this.#parts) };
      this.#parts = [];
      this.#length = 0;
      from = newline + 1;
    }
  }
}

/** Reads a stream piece by piece into the same memory. */
export async function eachPiece(
  stream: ReadableStream<Uint8Array>,
  take: (piece: Uint8Array) => void,
): Promise<void> {
  // The pipes of a process are byte streams, whatever their type says.
  const reader = stream.getReader({ mode: "byob" });
  for (let memory = new ArrayBuffer(PIECE);;) {
    const { done, value } = await reader.read(new Uint8Array(memory));
    if (done || value === undefined) return;
    take(value);
    memory = value.buffer;
  }
}

/** Joins pieces of bytes; a single one is given as it is. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
}
