/**
 * A part of `deno task windows`.
 *
 * @module
 */

import type { Wine } from "./wine.ts";

/** A group of checks that a name selects. */
export interface Part {
  readonly name: string;
  readonly run: (wine: Wine, checks: Checks) => Promise<void>;
}

/** Counts the checks that pass, and keeps the problems of the others. */
export class Checks {
  #passed = 0;
  readonly #problems: string[] = [];

  /** How many checks passed. */
  get passed(): number {
    return this.#passed;
  }

  /** The checks that failed, each with the reason. */
  get problems(): readonly string[] {
    return this.#problems;
  }

  /** Checks that a text matches. */
  match(name: string, text: string, wanted: RegExp): void {
    if (wanted.test(text)) this.#passed++;
    else this.fail(name, `${short(text)} does not match ${wanted}`);
  }

  /** Counts checks that passed. */
  pass(count = 1): void {
    this.#passed += count;
  }

  /** Adds a check that failed. */
  fail(name: string, why: string): void {
    this.#problems.push(`${name}: ${why}`);
  }

  /** Runs a check that fails if it throws. */
  async try(name: string, run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      this.fail(name, short(error instanceof Error ? error.message : String(error)));
    }
  }
}

/** Sequences of a console: colors, and moves of its cursor. */
// deno-lint-ignore no-control-regex
const DRAWN = /\x1b\[[\d;?]*[A-Za-z]/g;

/** Returns the beginning and the end of a text, in one line. */
function short(text: string): string {
  const line = text.replaceAll(DRAWN, "").replaceAll(/\s*\n\s*/g, " | ").trim();
  return line.length > 600 ? `${line.slice(0, 300)} … ${line.slice(-300)}` : line || "nothing";
}
