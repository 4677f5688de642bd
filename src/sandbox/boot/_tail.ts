/**
 * Keeps the first and the last part of an output.
 *
 * @module
 */

const LAST = 4_096;

/** The output of a program, with a limited size. */
export class Tail {
  /** The number of bytes in the middle that were dropped. */
  omitted = 0;
  readonly #half: number;
  #head: Uint8Array[] = [];
  #headSize = 0;
  #tail: Uint8Array[] = [];
  #tailSize = 0;

  /** Creates a tail that keeps `max` bytes. */
  constructor(max: number) {
    this.#half = Math.ceil(max / 2);
  }

  /** Adds a piece of output. */
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

  /** Returns the kept text, with a line in place of dropped bytes. */
  text(): string {
    const gap = `\n[${this.omitted} bytes left out]\n`;
    return [decoded(this.#head), ...(this.omitted > 0 ? [gap] : []), decoded(this.#tail)].join("");
  }

  /** Returns the last part of the output. */
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
