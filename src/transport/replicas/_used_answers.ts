/**
 * Records which answers to approval requests were used. Each has a file in the PML home, which only
 * one process can create.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { sha256 } from "../../core/hash.ts";
import { NOT_TWICE } from "../../protocol/failures.ts";
import { privateFolder, readPlainText, unlessGone, writeWhole } from "../../io/private_files.ts";

/** An approval request, identified so that its answer is used only once. */
export interface UsableAnswer {
  /** The unique name of the approval request, from `createNonce()`. */
  readonly nonce: string;
  /** When the answer expires, in milliseconds since 1970. */
  readonly expires: number;
}

/** The maximum number of files of one identity. */
const FILES_MAX = 10_000;
const USED_MESSAGE = "Cannot go on: this answer was used already";
/** How often PML removes the files of expired answers, in milliseconds. */
const SWEEP_MS = 10_000;
/** The length of the part of a nonce that identifies an identity. */
const IDENTITY_HASH_LENGTH = 16;
/** The maximum difference between the clocks of two machines, in milliseconds. */
export const SKEW_MS = 60_000;

/** Ensures that each answer is used once. */
export class UsedAnswers {
  readonly #folder: string;
  readonly #process: string;
  /** The number of files of each identity. */
  readonly #counts = new Map<string, number>();
  #sweepAt = 0;
  /**
   * The names of all files that this process has seen. If the clock of a process jumps, it may
   * remove a file while the answer is still valid.
   */
  readonly #seenNames = new Set<string>();

  /** Takes the PML home and the name of this process. */
  constructor(home: string, processName: string) {
    this.#folder = join(home, "answered");
    this.#process = processName;
  }

  /** Uses an answer. Throws if any process has used it. */
  async use({ nonce, expires }: UsableAnswer): Promise<void> {
    await this.#sweep();
    const name = `${expires}-${nonce}`;
    // guard: sealed-share
    if (this.#count(name) > FILES_MAX) {
      throw new PmlError("OVERLOADED", "Cannot go on: too many answers");
    }
    const path = join(this.#folder, name);
    const bytes = new TextEncoder().encode(this.#process);
    try {
      // guard: sealed-seen
      if (this.#seenNames.has(name)) throw new Deno.errors.AlreadyExists();
      // guard: sealed-exclusive
      await writeWhole(path, { bytes, mode: 0o600, expected: "nothing" });
      this.#seenNames.add(name);
    } catch (error) {
      if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
      const isOfThisProcess = readPlainText(path) === this.#process;
      // If another process used the answer, that process may have ended since.
      throw new PmlError(
        isOfThisProcess ? "BAD_REQUEST" : "UPSTREAM_DOWN",
        USED_MESSAGE,
        NOT_TWICE,
      );
    }
  }

  /** Removes the files of expired answers. */
  async #sweep(): Promise<void> {
    if (performance.now() < this.#sweepAt) return;
    this.#sweepAt = performance.now() + SWEEP_MS;
    privateFolder(this.#folder);
    this.#counts.clear();
    if (this.#seenNames.size > FILES_MAX) this.#seenNames.clear();
    for await (const { name } of Deno.readDir(this.#folder)) {
      this.#seenNames.add(name);
      if (parseInt(name) + SKEW_MS > Date.now()) this.#count(name);
      else await Deno.remove(join(this.#folder, name)).catch(unlessGone);
    }
  }

  /** Counts a file. Returns the number of files of its identity. */
  #count(name: string): number {
    const identityHash = identityHashIn(name);
    const count = (this.#counts.get(identityHash) ?? 0) + 1;
    this.#counts.set(identityHash, count);
    return count;
  }
}

/** Returns a new nonce, which contains a hash of the identity whose approval request it names. */
export function createNonce(identity: string | null): string {
  return `${sha256(identity ?? "").slice(0, IDENTITY_HASH_LENGTH)}-${crypto.randomUUID()}`;
}

function identityHashIn(name: string): string {
  return /^\d+-([0-9a-f]{16})-/.exec(name)?.[1] ?? "";
}
