/**
 * A part of `deno task windows`, and the results of its checks.
 *
 * @module
 */

import type { Wine } from "./wine.ts";

/** A named group of checks. */
export interface Part {
  readonly name: string;
  readonly run: (wine: Wine, checks: Checks) => Promise<void>;
}

/** Counts the checks that pass, and collects the problems of checks that fail. */
export class Checks {
  #passed = 0;
  readonly #problems: string[] = [];

  /** The number of checks that passed. */
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
    else this.fail(name, `${shorten(text)} does not match ${wanted}`);
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
      this.fail(name, shorten(error instanceof Error ? error.message : String(error)));
    }
  }
}

/** Control sequences of a console: colours, and movements of the cursor. */
// deno-lint-ignore no-control-regex
const CONSOLE_SEQUENCES = /\x1b\[[\d;?]*[A-Za-z]/g;

/** Returns the beginning and the end of a text, in one line. */
function shorten(text: string): string {
  const line = text.replaceAll(CONSOLE_SEQUENCES, "").replaceAll(/\s*\n\s*/g, " | ").trim();
  return line.length > 600 ? `${line.slice(0, 300)} … ${line.slice(-300)}` : line || "nothing";
}
