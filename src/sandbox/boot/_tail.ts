/**
 * Keeps the first and the last part of an output.
 *
 * @module
 */

/** The maximum length of `last()`, in characters. */
const LAST = 4_096;

/** The first and the last part of an output, with a limited size. */
export class Tail {
  /** The number of bytes in the middle that were dropped. */
  omitted = 0;
  readonly #half: number;
  #head: Uint8Array[] = [];
  #headSize = 0;
  #tail: Uint8Array[] = [];
  #tailSize = 0;

  /** Creates an instance that keeps about `max` bytes. */
  constructor(max: number) {
    this.#half = Math.ceil(max / 2);
  }

  /** Adds a piece of output. */
  add(chunk: Uint8Array): void {
    const free = this.#half - this.#headSize;
    const first = chunk.slice(0, Math.max(free, 0));
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
    return [decodePieces(this.#head), ...(this.omitted > 0 ? [gap] : []), decodePieces(this.#tail)]
      .join("");
  }

  /** Returns the end of the output: at most 4,096 characters. */
  last(): string {
    const pieces = this.#tailSize > 0 ? this.#tail : this.#head;
    return decodePieces(pieces.slice(-2)).slice(-LAST);
  }
}

function decodePieces(pieces: readonly Uint8Array[]): string {
  const decoder = new TextDecoder();
  return pieces.map((piece) => decoder.decode(piece, { stream: true })).join("") +
    decoder.decode();
}
