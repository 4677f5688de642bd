/**
 * `pml --version`.
 *
 * @module
 */

import { VERSION } from "../core/version.ts";

/** Prints the version, and returns the exit code. */
export function version(): number {
  try {
    Deno.stdout.writeSync(new TextEncoder().encode(VERSION + "\n"));
  } catch (error) {
    // The reader may have gone, as `head` does.
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
  }
  return 0;
}
