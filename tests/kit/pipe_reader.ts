/**
 * Reads a pipe of a spawned process and keeps every byte of it.
 *
 * @module
 */

import { Buffer } from "node:buffer";

/** When a pipe is read. */
export interface PipeReaderOptions {
  /** Gives what reading waits for, asked at each piece; what an ended process left is read at once. */
  readonly waits: (() => Promise<unknown> | undefined) | undefined;
  /** Fulfils when the process has ended. */
  readonly status: Promise<unknown>;
}

/** Keeps what comes from a pipe. */
export class PipeReader {
  readonly #chunks: Uint8Array[] = [];
  readonly #options: PipeReaderOptions;

  /** Reads nothing yet. */
  constructor(options: PipeReaderOptions) {
    this.#options = options;
  }

  /** Every byte so far. */
  get bytes(): Uint8Array {
    return Buffer.concat(this.#chunks);
  }

  /** All so far, as text. */
  get text(): string {
    return new TextDecoder().decode(this.bytes);
  }

  /** Reads a pipe to its end. */
  async read(pipe: ReadableStream<Uint8Array>): Promise<void> {
    await this.#held();
    for await (const chunk of pipe) {
      await this.#held();
      this.#chunks.push(chunk);
      this.take(chunk);
    }
  }

  /** Takes what came last. */
  protected take(_chunk: Uint8Array): void {}

  async #held(): Promise<void> {
    const held = this.#options.waits?.();
    if (held !== undefined) await Promise.race([held, this.#options.status]);
  }
}

/** Keeps what comes from a pipe, and gives each line of it. */
export class LineReader extends PipeReader {
  readonly #decoder = new TextDecoder();
  readonly #onLine: (line: string) => void;
  /** What came of a line that has not ended; joined once, for a line may be very long. */
  #rest: string[] = [];

  /** Reads nothing yet; each line goes to `onLine`. */
  constructor(onLine: (line: string) => void, options: PipeReaderOptions) {
    super(options);
    this.#onLine = onLine;
  }

  /** What came of a line that has not ended. */
  get rest(): string {
    return this.#rest.join("");
  }

  protected override take(chunk: Uint8Array): void {
    const [first = "", ...lines] = this.#decoder.decode(chunk, { stream: true }).split("\n");
    this.#rest.push(first);
    for (const line of lines) {
      this.#onLine(this.#rest.join(""));
      this.#rest = [line];
    }
  }
}
