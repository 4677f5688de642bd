/**
 * Splits a stream of bytes into lines in linear time, with a limit for the length of a line.
 *
 * @module
 */

import { Buffer } from "node:buffer";

/**
 * A whole line without its newline; only the beginning and the end of a long line; or an immediate
 * report that a line is too long and is skipped.
 */
export type Line =
  | { readonly kind: "line"; readonly bytes: Uint8Array }
  | { readonly kind: "cut"; readonly ends: Uint8Array; readonly size: number; readonly max: number }
  | { readonly kind: "too-long"; readonly max: number };

const NEWLINE = 10;
const NOTHING: Uint8Array = new Uint8Array(0);
/** The maximum size of a piece of a stream, in bytes. */
const PIECE_BYTES = 1 << 18;
/** The number of bytes that are kept of the beginning, and of the end, of a long line. */
const END_BYTES = 1_000;

/** Unused memory, which is reused because an allocation takes longer than a copy. */
const spareBuffers: Uint8Array[] = [];
const [MEMORY_MIN, MEMORY_MAX, SPARE_MAX] = [1 << 16, 1 << 22, 2];
const UTF_8 = new TextEncoder();

/** Collects bytes in memory that is reused. */
export class ByteBuffer {
  #memory: Uint8Array = NOTHING;
  #size = 0;

  /** The collected bytes. They are valid until bytes are added or removed. */
  get bytes(): Uint8Array {
    return this.#memory.subarray(0, this.#size);
  }

  /** Adds a copy of bytes. */
  add(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    const { bytes: before } = this;
    const size = before.length + bytes.length;
    if (size > this.#memory.length) {
      this.clear();
      this.#take(size);
      this.#memory.set(before);
    }
    this.#memory.set(bytes, before.length);
    this.#size = size;
  }

  /**
   * Adds a text, and returns its bytes, which are valid until `clear()`. They are next to the bytes
   * of the text before it, if the memory has space for them. `spare` is how many bytes of later texts
   * must be next to them, too.
   */
  addText(text: string, spare = 0): Uint8Array {
    const least = text.length + spare;
    if (this.#memory.length - this.#size < least) this.#take(least);
    const into = this.#memory.subarray(this.#size);
    const { read, written } = UTF_8.encodeInto(text, into);
    if (read < text.length) return UTF_8.encode(text);
    this.#size += written;
    return into.subarray(0, written);
  }

  /** Removes all bytes. */
  clear(): void {
    const { length } = this.#memory;
    this.#size = 0;
    if (length <= MEMORY_MIN) return;
    if (length <= MEMORY_MAX && spareBuffers.length < SPARE_MAX) spareBuffers.push(this.#memory);
    // guard: given-memory
    this.#memory = NOTHING;
  }

  #take(least: number): void {
    const buffer = spareBuffers.pop() ?? NOTHING;
    this.#memory = buffer.length < least ? new Uint8Array(Math.max(2 * least, MEMORY_MIN)) : buffer;
    this.#size = 0;
  }
}

/**
 * Splits a stream into lines. Nothing is kept of a line over `max` bytes. The bytes of a line are
 * valid until the next line is read.
 */
export class LineReader {
  readonly #max: number;
  readonly #endBytes: number;
  /** The beginning of the line, or both of its ends. */
  readonly #line = new ByteBuffer();
  #length = 0;

  /** Takes the limit of a line. Only the ends are kept of a line over `endBytes` bytes. */
  constructor(max: number, endBytes = max) {
    this.#max = max;
    this.#endBytes = Math.min(endBytes, max);
  }

  /** The number of bytes of the incomplete line so far; 0 if only its ends are kept. */
  get bytes(): number {
    return this.#length > this.#endBytes ? 0 : this.#length;
  }

  /** Takes a chunk, and calls `take` with each line that it completes. */
  push(chunk: Uint8Array, take: (line: Line) => void): void {
    let from = 0;
    for (;;) {
      const newline = chunk.indexOf(NEWLINE, from);
      const part = chunk.subarray(from, newline < 0 ? undefined : newline);
      const before = this.#length;
      this.#length += part.length;
      const isKept = this.#length <= this.#endBytes;
      const isWhole = isKept && before === 0 && newline >= 0;
      if (isKept) {
        // Kept bytes are copied: the next chunk may reuse the memory.
        if (!isWhole) this.#line.add(part);
      } else if (this.#length <= this.#max) this.#keepEnds(part);
      else if (before <= this.#max) {
        this.#line.clear();
        take({ kind: "too-long", max: this.#max });
      }
      if (newline < 0) return;
      // guard: memory-line
      if (isWhole) take({ kind: "line", bytes: part });
      else if (this.#length <= this.#max) take(this.#toLine());
      this.#line.clear();
      this.#length = 0;
      from = newline + 1;
    }
  }

  #toLine(): Line {
    const { bytes } = this.#line;
    if (this.#length <= this.#endBytes) return { kind: "line", bytes };
    return { kind: "cut", ends: bytes, size: this.#length, max: this.#endBytes };
  }

  #keepEnds(part: Uint8Array): void {
    const all = joinBytes([this.#line.bytes, part]);
    this.#line.clear();
    this.#line.add(all.subarray(0, END_BYTES));
    this.#line.add(all.subarray(-END_BYTES));
  }
}

/** Returns the beginning and the end of a line. */
export function endsOf(line: Uint8Array): Uint8Array {
  return joinBytes([line.subarray(0, END_BYTES), line.subarray(-END_BYTES)]);
}

/** Reads a stream in pieces, which reuse the same memory. Waits until each piece is handled. */
export async function eachPiece(
  stream: ReadableStream<Uint8Array>,
  take: (piece: Uint8Array) => Promise<void> | void,
): Promise<void> {
  // The pipes of a process are byte streams, although their type is more general.
  const reader = stream.getReader({ mode: "byob" });
  for (let memory = new ArrayBuffer(PIECE_BYTES);;) {
    const { done, value } = await reader.read(new Uint8Array(memory));
    if (done || value === undefined) return;
    const handling = take(value);
    if (handling !== undefined) await handling;
    memory = value.buffer;
  }
}

/** Joins pieces of bytes. A single piece is returned unchanged. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1 && parts[0]) return parts[0];
  const all = Buffer.concat(parts);
  // Searching a Node buffer takes twice as long.
  return new Uint8Array(all.buffer, all.byteOffset, all.length);
}
