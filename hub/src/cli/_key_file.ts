/**
 * Reads the key that signs entries, from a file that a user names.
 *
 * @module
 */

import { quoted, readRegular } from "@casys/pml/registry";
import { typedPath } from "./hub_process.ts";
import { usage } from "./_typed.ts";

const MOST = 100_000;

/** Returns the text of a file. Throws `USAGE` if it cannot be read. */
export async function keyIn(file: string): Promise<string> {
  try {
    return new TextDecoder().decode(
      readRegular(await Deno.realPath(typedPath(file)), { most: MOST }).bytes,
    );
  } catch {
    const message = `Cannot sign with ${quoted(file, 300)}: it cannot be read`;
    throw usage(message, "Keep the key in a file that only you can read");
  }
}
