/**
 * Reads what a child writes: frames that begin with its nonce, and everything else, which is noise.
 *
 * @module
 */

import { eachPiece, joined } from "../io/lines.ts";

export { eachPiece };

/** The longest line of noise that is kept. */
const NOISE_MAX = 4_096;

/** One line of a child: a frame without its nonce, or noise, cut, with its whole size. */
export type Line =
  | { readonly kind: "frame"; readonly bytes: Uint8Array }
  | { readonly kind: "noise"; readonly text: string; readonly size: number };

/** A frame taken apart; its JSON is not read yet. */
export interface Frame {
  readonly type: string;
  readonly id: number;
  readonly json: Uint8Array;
}

const HEAD_MAX = 128;

/** A frame of this type says how many bytes of plain text follow its line, and a line break. */
const TEXT = /^(text \d+ )(\d+)$/;

/** Assembles lines in time linear to their length, and keeps no more than it must. */
export class LineReader {
  readonly #nonce: Uint8Array;
  readonly #lineMax: number;
  #parts: Uint8Array[] = [];
  #size = 0;
  #kind: Line["kind"] | undefined;
  /** How many bytes of a text are still to come. */
  #rest = 0;
  #isText = false;

  /** Takes the nonce (none where no frames come) and the most bytes of a line. */
  constructor(nonce: string, lineMax: number) {
    this.#nonce = new TextEncoder().encode(nonce);
    this.#lineMax = lineMax;
  }

  /** Gives the lines that a piece completes; throws a RangeError when one is too long. */
  *push(chunk: Uint8Array): Generator<Line> {
    let from = 0;
    for (let at = this.#find(chunk, 0); at !== -1; at = this.#find(chunk, from)) {
      this.#add(chunk.subarray(from, at));
      from = at + 1;
      if (!this.#isTextToCome()) yield this.end();
    }
    this.#rest = Math.max(this.#rest - (chunk.length - from), 0);
    // Copied, because the next piece is read into the same memory.
    this.#add(chunk.slice(from));
  }

  /** Ends the line that is there, whether it is complete or not. */
  end(): Line {
    const bytes = joined(this.#parts);
    const size = this.#size;
    const isFrame = this.#kind === "frame";
    this.#parts = [];
    this.#size = 0;
    this.#kind = undefined;
    this.#isText = false;
    if (isFrame) return { kind: "frame", bytes: bytes.subarray(this.#nonce.length) };
    return { kind: "noise", text: new TextDecoder().decode(bytes.subarray(0, NOISE_MAX)), size };
  }

  /** Finds where a line ends: a text ends where it said, whatever is in it. */
  #find(chunk: Uint8Array, from: number): number {
    if (this.#rest === 0) return chunk.indexOf(10, from);
    if (chunk.length - from < this.#rest) return -1;
    const end = from + this.#rest - 1;
    this.#rest = 0;
    return end;
  }

  /** Looks whether the line that has ended announces a text, which is then part of it. */
  #isTextToCome(): boolean {
    if (this.#isText || this.#kind !== "frame" || this.#size > HEAD_MAX) return false;
    const said = new TextDecoder().decode(joined(this.#parts).subarray(this.#nonce.length));
    const [, head, length] = TEXT.exec(said) ?? [];
    this.#isText = head !== undefined;
    if (head === undefined) return false;
    this.#parts = [this.#nonce, new TextEncoder().encode(head)];
    this.#rest = Number(length) + 1;
    return true;
  }

  #add(part: Uint8Array): void {
    const kept = this.#size;
    this.#size += part.length;
    if (this.#size > this.#lineMax) throw new RangeError("it wrote a line that is too long");
    if (this.#kind === "noise" && kept >= NOISE_MAX) return;
    this.#parts.push(part);
    if (this.#kind === undefined && this.#size >= this.#nonce.length) this.#kind = this.#decide();
  }

  #decide(): Line["kind"] {
    const start = joined(this.#parts);
    const is = this.#nonce.length > 0 && this.#nonce.every((byte, at) => start[at] === byte);
    return is ? "frame" : "noise";
  }
}

/** Takes a frame apart: type, id, JSON, with blanks between. */
export function frameOf(bytes: Uint8Array): Frame | undefined {
  const head = /^([a-z]+) (\d+) /.exec(new TextDecoder().decode(bytes.subarray(0, 40)));
  if (head === null) return undefined;
  return {
    type: head[1] ?? "",
    id: Number(head[2]),
    json: bytes.subarray(head[0].length),
  };
}
