/**
 * Reads all output of a spawned process: the lines of stdout, its bytes, and stderr.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import type { Running } from "./in_process.ts";

/** Returns a promise that delays reading a pipe; called for each piece. */
export type Hold = () => Promise<unknown> | undefined;

/** The options of reading a process. */
export interface OutputOptions {
  readonly reads: Hold | undefined;
  readonly hears: Hold | undefined;
  /** Receives a line of stdout. */
  readonly onLine: (line: string) => void;
}

/** The output of a process so far. */
export class Output {
  /** Resolves when all output of the process was read. */
  readonly read: Promise<unknown>;
  readonly #child: Running;
  readonly #options: OutputOptions;
  readonly #chunks: Uint8Array[] = [];
  /** The parts of an incomplete line; joined once, because a line may be very long. */
  #rest: string[] = [];
  #stderr = "";

  /** Starts to read. */
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

  /** The incomplete last line of stdout. */
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

  /** Waits before a pipe is read; the rest of an ended process is read at once. */
  async #held(until: Hold | undefined): Promise<void> {
    const held = until?.();
    if (held !== undefined) await Promise.race([held, this.#child.status]);
  }
}
