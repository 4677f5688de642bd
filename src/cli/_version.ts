/**
 * `pml --version`, and other output that needs no module of Node.
 *
 * @module
 */

import { VERSION } from "../core/version.ts";

/** Prints the version, and returns the exit code. */
export function version(): number {
  return printPlain(VERSION);
}

/** Returns whether standard output is not a terminal. */
export function isPiped(): boolean {
  return !Deno.stdout.isTerminal();
}

/** Prints a text that is the same on a terminal, and returns the exit code. */
export function printPlain(text: string): number {
  const bytes = new TextEncoder().encode(`${text}\n`);
  try {
    for (let offset = 0; offset < bytes.length;) {
      offset += Deno.stdout.writeSync(bytes.subarray(offset));
    }
  } catch (error) {
    // The reader may have closed the pipe, as `head` does.
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
  }
  return 0;
}
