/**
 * Keeps the head and the tail of an output, and no more of it.
 *
 * @module
 */

const LAST = 4_096;

/** The output of a program, bounded. */
export class Tail {
  /** How many bytes of the middle were left out. */
  omitted = 0;
  readonly #half: number;
  #head: Uint8Array[] = [];
  #headSize = 0;
  #tail: Uint8Array[] = [];
  #tailSize = 0;

  /** Takes how many bytes are kept. */
  constructor(max: number) {
    this.#half = Math.ceil(max / 2);
  }

  /** Adds what was written. */
  add(chunk: Uint8Array): void {
    const room = this.#half - this.#headSize;
    const first = chunk.slice(0, Math.max(room, 0));
    const rest = chunk.slice(first.length);
    if (first.length > 0) this.#head.push(first);
    this.#headSize += first.length;
    if (rest.length > 0) this.#tail.push(rest);
    this.#tailSize += rest.length;
    for (let [oldest] = this.#tail; oldest && this.#tailSize > this.#half; [oldest] = this.#tail) {
      const excess = Math.min(this.#tailSize - this.#half, oldest.length);
      this.omitted += excess;
      this.#tailSize -= excess;
      if (excess === oldest.length) this.#tail.shift();
      else this.#tail[0] = oldest.subarray(excess);
    }
  }

  /** Gives what is kept, with a line where something was left out. */
  text(): string {
    const gap = `\n[${this.omitted} bytes left out]\n`;
    return [decoded(this.#head), ...(this.omitted > 0 ? [gap] : []), decoded(this.#tail)].join("");
  }

  /** Gives the end of it. */
  last(): string {
    const pieces = this.#tailSize > 0 ? this.#tail : this.#head;
    return decoded(pieces.slice(-2)).slice(-LAST);
  }
}

function decoded(pieces: readonly Uint8Array[]): string {
  const decoder = new TextDecoder();
  return pieces.map((piece) => decoder.decode(piece, { stream: true })).join("") +
    decoder.decode();
}
