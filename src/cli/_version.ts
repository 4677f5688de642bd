/**
 * `pml --version`, and what else is printed without a module of Node.
 *
 * @module
 */

import { VERSION } from "../core/version.ts";

/** Prints the version, and returns the exit code. */
export function version(): number {
  return printPlain(VERSION);
}

/** Returns whether standard output is no terminal. */
export function isPiped(): boolean {
  return !Deno.stdout.isTerminal();
}

/** Prints a text that is the same on a terminal, and returns the exit code. */
export function printPlain(text: string): number {
  const bytes = new TextEncoder().encode(`${text}\n`);
  try {
    for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
  } catch (error) {
    // The reader may have gone, as `head` does.
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
  }
  return 0;
}
