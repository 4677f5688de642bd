/**
 * Records used answers: one file for each in the PML home, which only one process can create.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { NOT_TWICE } from "../../protocol/failures.ts";
import { privateFolder, readPlainText, unlessGone, writeWhole } from "../../io/private_files.ts";

/** An approval request whose answer counts once. */
export interface Once {
  /** The unique name of the approval request. */
  readonly nonce: string;
  /** When the answer expires, in milliseconds since 1970. */
  readonly expires: number;
}

/** The maximum number of files. */
const MOST = 10_000;
const USED = "Cannot go on: this answer was used already";
const SWEEP_MS = 10_000;
/** The maximum difference between the clocks of two machines, in milliseconds. */
export const SKEW_MS = 60_000;

/** Ensures that each answer is used once. */
export class UsedAnswers {
  readonly #folder: string;
  readonly #by: string;
  #count = 0;
  #sweepAt = 0;
  /**
   * The names of all files seen. After a clock jump, a file may be removed while its answer is
   * still valid.
   */
  readonly #seen = new Set<string>();

  /** Uses the PML home. `by` is the name of this process. */
  constructor(home: string, by: string) {
    this.#folder = join(home, "answered");
    this.#by = by;
  }

  /** Uses an answer. Throws if any process has used it. */
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
      // The process that used it may have ended in the meantime.
      throw new PmlError(isHere ? "BAD_REQUEST" : "UPSTREAM_DOWN", USED, NOT_TWICE);
    }
  }

  /** Removes the files of expired answers. */
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
