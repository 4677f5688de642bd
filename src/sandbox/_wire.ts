/**
 * Splits the output of a child into frames, which begin with its nonce, and noise, which is
 * everything else.
 *
 * @module
 */

import { ByteBuffer, eachPiece } from "../io/lines.ts";

export { eachPiece };

/** The maximum number of bytes that are kept of a line of noise. */
const NOISE_MAX = 4_096;

/**
 * One line of a child: a frame without its nonce, or noise. The text of noise is truncated; `size`
 * is its full length in bytes.
 */
export type ChildLine =
  | { readonly kind: "frame"; readonly bytes: Uint8Array }
  | { readonly kind: "noise"; readonly text: string; readonly size: number };

/** The parts of a frame. Its JSON is not parsed yet. */
export interface Frame {
  readonly type: string;
  readonly id: number;
  readonly json: Uint8Array;
}

/** The maximum length of the line that announces a text, in bytes. */
const HEAD_MAX = 128;
/** Decodes whole texts, so all readers can share it. */
const UTF_8 = new TextDecoder();
/** The first byte of the type `text`. */
const T = 0x74;

/**
 * A frame of type `text` contains a length in bytes. That many bytes of plain text and a line break
 * follow its line.
 */
const TEXT = /^(text \d+ )(\d+)$/;

/**
 * Collects lines in time linear to their length, with as little memory as possible. The bytes of a
 * line are valid until the next line is read.
 */
export class ChildLineReader {
  readonly #nonce: Uint8Array;
  readonly #lineMax: number;
  readonly #line = new ByteBuffer();
  #size = 0;
  #kind: ChildLine["kind"] | undefined;
  /** The number of bytes of a text that were not received yet. */
  #rest = 0;
  #isText = false;

  /**
   * Creates a reader. `nonce` is empty if no frames are expected; `lineMax` is the maximum line
   * length in bytes.
   */
  constructor(nonce: string, lineMax: number) {
    this.#nonce = new TextEncoder().encode(nonce);
    this.#lineMax = lineMax;
  }

  /** Returns the lines that a chunk completes. Throws a RangeError if a line is too long. */
  *push(chunk: Uint8Array): Generator<ChildLine> {
    let start = 0;
    for (let end = this.#find(chunk, 0); end !== -1; end = this.#find(chunk, start)) {
      this.#add(chunk.subarray(start, end));
      start = end + 1;
      if (this.#isTextToCome()) continue;
      yield this.end();
      this.#line.clear();
    }
    this.#rest = Math.max(this.#rest - (chunk.length - start), 0);
    this.#add(chunk.subarray(start));
  }

  /** Ends the current line, even if it is not complete. */
  end(): ChildLine {
    const { bytes } = this.#line;
    const size = this.#size;
    const isFrame = this.#kind === "frame";
    this.#size = 0;
    this.#kind = undefined;
    this.#isText = false;
    if (isFrame) return { kind: "frame", bytes: bytes.subarray(this.#nonce.length) };
    return { kind: "noise", text: UTF_8.decode(bytes.subarray(0, NOISE_MAX)), size };
  }

  /** Finds the end of a line. A text ends after its length, even if it contains line breaks. */
  #find(chunk: Uint8Array, from: number): number {
    if (this.#rest === 0) return chunk.indexOf(10, from);
    if (chunk.length - from < this.#rest) return -1;
    const end = from + this.#rest - 1;
    this.#rest = 0;
    return end;
  }

  /**
   * Returns whether the line that has ended announces a text. The text then belongs to the same
   * line.
   */
  #isTextToCome(): boolean {
    if (this.#isText || this.#kind !== "frame" || this.#size > HEAD_MAX) return false;
    const { bytes } = this.#line;
    if (bytes[this.#nonce.length] !== T) return false;
    const [, head, length] = TEXT.exec(UTF_8.decode(bytes.subarray(this.#nonce.length))) ?? [];
    this.#isText = head !== undefined;
    if (head === undefined) return false;
    this.#line.clear();
    this.#line.add(this.#nonce);
    this.#line.add(new TextEncoder().encode(head));
    this.#rest = Number(length) + 1;
    return true;
  }

  #add(part: Uint8Array): void {
    const size = this.#size;
    this.#size += part.length;
    if (this.#size > this.#lineMax) throw new RangeError("it wrote a line that is too long");
    // Only the beginning of noise is kept.
    if (this.#kind === "noise" && size >= NOISE_MAX) return;
    this.#line.add(part);
    if (this.#kind === undefined && this.#size >= this.#nonce.length) this.#kind = this.#decide();
  }

  /** Returns whether the line begins with the nonce, and so is a frame. */
  #decide(): ChildLine["kind"] {
    const { bytes } = this.#line;
    const nonce = this.#nonce;
    for (let index = 0; index < nonce.length; index++) {
      if (bytes[index] !== nonce[index]) return "noise";
    }
    return nonce.length > 0 ? "frame" : "noise";
  }
}

/** Splits a frame into its type, id and JSON, which are separated by spaces. */
export function parseFrame(bytes: Uint8Array): Frame | undefined {
  const [head, type = "", id] = /^([a-z]+) (\d+) /.exec(UTF_8.decode(bytes.subarray(0, 40))) ?? [];
  if (head === undefined) return undefined;
  return { type, id: Number(id), json: bytes.subarray(head.length) };
}
