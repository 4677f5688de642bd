/**
 * Reads all that a spawned process writes: the lines of stdout, each byte of it, and stderr.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import type { Running } from "./in_process.ts";

/** Gives what reading a pipe waits for, asked at each piece of it. */
export type Hold = () => Promise<unknown> | undefined;

/** How a process is read. */
export interface OutputOptions {
  readonly reads: Hold | undefined;
  readonly hears: Hold | undefined;
  /** Takes a line of stdout. */
  readonly onLine: (line: string) => void;
}

/** What a process wrote so far. */
export class Output {
  /** Fulfils when all that the process wrote was read. */
  readonly read: Promise<unknown>;
  readonly #child: Running;
  readonly #options: OutputOptions;
  readonly #chunks: Uint8Array[] = [];
  /** What came of a line that has not ended; joined once, for a line may be very long. */
  #rest: string[] = [];
  #stderr = "";

  /** Begins to read. */
  constructor(child: Running, options: OutputOptions) {
    this.#child = child;
    this.#options = options;
    this.read = Promise.all([this.#readOutput(), this.#readErrors()]);
  }

  /** Every byte of stdout. */
  get stdout(): Uint8Array {
    return Buffer.concat(this.#chunks);
  }

  /** All of stderr. */
  get stderr(): string {
    return this.#stderr;
  }

  /** What came of a line of stdout that has not ended. */
  get rest(): string {
    return this.#rest.join("");
  }

  async #readOutput(): Promise<void> {
    const { reads, onLine } = this.#options;
    const decoder = new TextDecoder();
    await this.#held(reads);
    for await (const chunk of this.#child.stdout) {
      await this.#held(reads);
      this.#chunks.push(chunk);
      const [first = "", ...lines] = decoder.decode(chunk, { stream: true }).split("\n");
      this.#rest.push(first);
      for (const line of lines) {
        onLine(this.rest);
        this.#rest = [line];
      }
    }
  }

  async #readErrors(): Promise<void> {
    const { hears } = this.#options;
    const decoder = new TextDecoder();
    await this.#held(hears);
    for await (const chunk of this.#child.stderr) {
      await this.#held(hears);
      this.#stderr += decoder.decode(chunk, { stream: true });
    }
  }

  /** Waits before a pipe is read; what an ended process left is read at once. */
  async #held(until: Hold | undefined): Promise<void> {
    const held = until?.();
    if (held !== undefined) await Promise.race([held, this.#child.status]);
  }
}
