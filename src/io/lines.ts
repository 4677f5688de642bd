/**
 * Splits a stream of bytes into lines in linear time, with a limit for the length of a line.
 *
 * @module
 */

import { Buffer } from "node:buffer";

/**
 * A whole line without its newline; the beginning and the end of a line of which not all is kept; or
 * a report, made at once, that a line is too long and is skipped.
 */
export type Line =
  | { readonly kind: "line"; readonly bytes: Uint8Array }
  | { readonly kind: "cut"; readonly ends: Uint8Array; readonly size: number; readonly max: number }
  | { readonly kind: "too-long"; readonly max: number };

const NEWLINE = 10;
const PIECE = 1 << 18;
/** How many bytes are kept of the beginning and of the end of a line. */
const END = 1_000;

/** Keeps the bytes of the current line. Nothing is kept of a line over `max` bytes. */
export class LineReader {
  readonly #max: number;
  readonly #kept: number;
  #parts: Uint8Array[] = [];
  #length = 0;

  /** Takes the limit of a line. Only the ends are kept of a line over `kept` bytes. */
  constructor(max: number, kept = max) {
    this.#max = max;
    this.#kept = Math.min(kept, max);
  }

  /** How many bytes of the incomplete line are kept. */
  get kept(): number {
    return this.#length > this.#kept ? 0 : this.#length;
  }

  /** Takes a chunk and yields the lines that it completes. */
  *push(chunk: Uint8Array): Generator<Line> {
    let from = 0;
    for (;;) {
      const newline = chunk.indexOf(NEWLINE, from);
      const part = chunk.subarray(from, newline < 0 ? undefined : newline);
      const before = this.#length;
      this.#length += part.length;
      // Kept bytes are copied: the next chunk may reuse the memory.
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
    // So many parts hold at least so many bytes. The end must be a copy.
    const last = joined(all.slice(-END)).slice(-END);
    this.#parts = [Buffer.concat(all, END), last];
  }
}

/** Returns the beginning and the end of a line. */
export function endsOf(line: Uint8Array): Uint8Array {
  return joined([line.subarray(0, END), line.subarray(-END)]);
}

/** Reads a stream in pieces, which reuse the same memory. Waits until each piece is taken. */
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

/** Joins pieces of bytes. A single piece is returned unchanged. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1 && parts[0]) return parts[0];
  const all = Buffer.concat(parts);
  // A buffer of Node is searched in twice the time.
  return new Uint8Array(all.buffer, all.byteOffset, all.length);
}
