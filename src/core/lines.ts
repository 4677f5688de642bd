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
      if (this.#length <= this.#max) this.#parts.push(part);
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

/** Joins pieces of bytes; a single one is given as it is. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
}
