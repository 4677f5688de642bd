/**
 * Lines from the gateway, and frames to it.
 *
 * @module
 */

/** Reads stdin line by line; the buffer grows with one line and is given up after it. */
export class StdinLines {
  readonly #ready: string[] = [];
  readonly #chunk = new Uint8Array(1 << 16);
  #parts: Uint8Array[] = [];

  /** Gives the next line, or nothing at the end. */
  async next(): Promise<string | undefined> {
    while (this.#ready.length === 0) {
      const read = await Deno.stdin.read(this.#chunk);
      if (read === null) return undefined;
      this.#take(this.#chunk.slice(0, read));
    }
    return this.#ready.shift();
  }

  #take(bytes: Uint8Array): void {
    let from = 0;
    for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, from)) {
      this.#parts.push(bytes.subarray(from, at));
      this.#ready.push(joined(this.#parts));
      this.#parts = [];
      from = at + 1;
    }
    this.#parts.push(bytes.subarray(from));
  }
}

/** Writes frames that only this thread can write: each begins with the nonce, on a new line. */
export class FrameWriter {
  readonly #nonce: string;
  readonly #encoder = new TextEncoder();
  readonly #piece = new Uint8Array(1 << 16);

  /** Takes the nonce, which the Worker never sees. */
  constructor(nonce: string) {
    this.#nonce = nonce;
  }

  /** Writes one frame as a whole. */
  write(type: string, id: number, json: string): void {
    // A line break inside would let the Worker begin a line of its own.
    this.#put(`\n${this.#nonce}${type} ${id} `);
    this.#put(json.replaceAll("\n", " "));
    this.#put("\n");
  }

  // Piece by piece, because a large result would be copied as a whole here once more.
  #put(text: string): void {
    for (let from = 0; from < text.length;) {
      const { read, written } = this.#encoder.encodeInto(text.slice(from), this.#piece);
      from += read;
      for (let at = 0; at < written;) {
        at += Deno.stdout.writeSync(this.#piece.subarray(at, written));
      }
    }
  }
}

function joined(parts: readonly Uint8Array[]): string {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return new TextDecoder().decode(bytes);
}
