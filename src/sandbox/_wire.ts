/**
 * Reads what a child writes: frames that begin with its nonce, and everything else, which is noise.
 *
 * @module
 */

import { joined } from "../core/lines.ts";

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

/** Assembles lines in time linear to their length, and keeps no more than it must. */
export class LineReader {
  readonly #nonce: Uint8Array;
  readonly #lineMax: number;
  #parts: Uint8Array[] = [];
  #size = 0;
  #kind: Line["kind"] | undefined;

  /** Takes the nonce (none where no frames come) and the most bytes of a line. */
  constructor(nonce: string, lineMax: number) {
    this.#nonce = new TextEncoder().encode(nonce);
    this.#lineMax = lineMax;
  }

  /** Gives the lines that a piece completes; throws a RangeError when one is too long. */
  *push(chunk: Uint8Array): Generator<Line> {
    let from = 0;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, from)) {
      this.#add(chunk.subarray(from, at));
      yield this.end();
      from = at + 1;
    }
    this.#add(chunk.subarray(from));
  }

  /** Ends the line that is there, whether it is complete or not. */
  end(): Line {
    const bytes = joined(this.#parts);
    const size = this.#size;
    const isFrame = this.#kind === "frame";
    this.#parts = [];
    this.#size = 0;
    this.#kind = undefined;
    if (isFrame) return { kind: "frame", bytes: bytes.subarray(this.#nonce.length) };
    return { kind: "noise", text: new TextDecoder().decode(bytes.subarray(0, NOISE_MAX)), size };
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
