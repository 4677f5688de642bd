/**
 * The answers that were used: a file for each in the PML home, which only one process can create.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { NOT_TWICE } from "../../protocol/failures.ts";
import { privateFolder, readPlainText, unlessGone, writeWhole } from "../../io/private_files.ts";

/** A question with its answer, which counts once. */
export interface Once {
  /** The name that no other question has. */
  readonly nonce: string;
  /** When it can be answered no more, in milliseconds since 1970. */
  readonly expires: number;
}

/** How many files there may be. */
const MOST = 10_000;
const USED = "Cannot go on: this answer was used already";
const SWEEP_MS = 10_000;
/** How much the clocks of two machines may differ. */
export const SKEW_MS = 60_000;

/** Lets each answer be used once. */
export class UsedAnswers {
  readonly #folder: string;
  readonly #by: string;
  #count = 0;
  #sweepAt = 0;
  /**
   * The names of the files that it has seen. Where a clock jumps, a file is removed whose answer
   * could be used again.
   */
  readonly #seen = new Set<string>();

  /** Takes the PML home, and the name of this process. */
  constructor(home: string, by: string) {
    this.#folder = join(home, "answered");
    this.#by = by;
  }

  /** Uses up an answer. Throws if any process did so before. */
  async use({ nonce, expires }: Once): Promise<void> {
    await this.#sweep();
    if (this.#count++ >= MOST) throw new PmlError("OVERLOADED", "Cannot go on: too many answers");
    const name = `${expires}-${nonce}`;
    const path = join(this.#folder, name);
    const bytes = new TextEncoder().encode(this.#by);
    try {
      // guard: sealed-seen
      if (this.#seen.has(name)) throw new Deno.errors.AlreadyExists();
      // guard: sealed-exclusive
      await writeWhole(path, { bytes, mode: 0o600, over: "nothing" });
      this.#seen.add(name);
    } catch (error) {
      if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
      const isHere = readPlainText(path) === this.#by;
      // The process that used it may have ended since.
      throw new PmlError(isHere ? "BAD_REQUEST" : "UPSTREAM_DOWN", USED, NOT_TWICE);
    }
  }

  /** Removes the files of answers that are too old to be used. */
  async #sweep(): Promise<void> {
    if (performance.now() < this.#sweepAt) return;
    this.#sweepAt = performance.now() + SWEEP_MS;
    privateFolder(this.#folder);
    this.#count = 0;
    if (this.#seen.size > MOST) this.#seen.clear();
    for await (const { name } of Deno.readDir(this.#folder)) {
      this.#seen.add(name);
      if (parseInt(name) + SKEW_MS > Date.now()) this.#count++;
      else await Deno.remove(join(this.#folder, name)).catch(unlessGone);
    }
  }
}
