/**
 * Cuts a stream of bytes into lines in linear time, with a bound on how long a line may be.
 *
 * @module
 */

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
      else if (before <= this.#max) yield this.#tooLong();
      if (newline < 0) return;
      if (this.#length <= this.#max) yield { kind: "line", bytes: joined(this.#parts) };
      this.#parts = [];
      this.#length = 0;
      from = newline + 1;
    }
  }

  #tooLong(): Line {
    this.#parts = [];
    return { kind: "too-long", max: this.#max };
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return only;
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
