/**
 * Records used answers: one file for each in the PML home, which only one process can create.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { sha256 } from "../../core/hash.ts";
import { NOT_TWICE } from "../../protocol/failures.ts";
import { privateFolder, readPlainText, unlessGone, writeWhole } from "../../io/private_files.ts";

/** An approval request whose answer counts once. */
export interface Once {
  /** The unique name of the approval request, from `nonceOf()`. */
  readonly nonce: string;
  /** When the answer expires, in milliseconds since 1970. */
  readonly expires: number;
}

/** The maximum number of files of one identity. */
const MOST = 10_000;
const USED = "Cannot go on: this answer was used already";
const SWEEP_MS = 10_000;
const OWNER_LENGTH = 16;
/** The maximum difference between the clocks of two machines, in milliseconds. */
export const SKEW_MS = 60_000;

/** Ensures that each answer is used once. */
export class UsedAnswers {
  readonly #folder: string;
  readonly #by: string;
  /** The number of files of each identity. */
  readonly #counts = new Map<string, number>();
  #sweepAt = 0;
  /**
   * The names of all files seen. After a clock jump, a file may be removed while its answer is
   * still valid.
   */
  readonly #ids = new Set<string>();

  /** Uses the PML home. `by` is the name of this process. */
  constructor(home: string, by: string) {
    this.#folder = join(home, "answered");
    this.#by = by;
  }

  /** Uses an answer. Throws if any process has used it. */
  async use({ nonce, expires }: Once): Promise<void> {
    await this.#sweep();
    const name = `${expires}-${nonce}`;
    // guard: sealed-share
    if (this.#add(name) > MOST) throw new PmlError("OVERLOADED", "Cannot go on: too many answers");
    const path = join(this.#folder, name);
    const bytes = new TextEncoder().encode(this.#by);
    try {
      // guard: sealed-seen
      if (this.#ids.has(name)) throw new Deno.errors.AlreadyExists();
      // guard: sealed-exclusive
      await writeWhole(path, { bytes, mode: 0o600, over: "nothing" });
      this.#ids.add(name);
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
    this.#counts.clear();
    if (this.#ids.size > MOST) this.#ids.clear();
    for await (const { name } of Deno.readDir(this.#folder)) {
      this.#ids.add(name);
      if (parseInt(name) + SKEW_MS > Date.now()) this.#add(name);
      else await Deno.remove(join(this.#folder, name)).catch(unlessGone);
    }
  }

  /** Counts a file. Returns the number of files of its identity. */
  #add(name: string): number {
    const owner = ownerOf(name);
    const count = (this.#counts.get(owner) ?? 0) + 1;
    this.#counts.set(owner, count);
    return count;
  }
}

/** Returns a new nonce, which names the identity that the user answers for. */
export function nonceOf(identity: string | null): string {
  return `${sha256(identity ?? "").slice(0, OWNER_LENGTH)}-${crypto.randomUUID()}`;
}

function ownerOf(name: string): string {
  return /^\d+-([0-9a-f]{16})-/.exec(name)?.[1] ?? "";
}
