/**
 * Reads the private key that signs entries, from the file in `--key`.
 *
 * @module
 */

import { quoted, readRegular } from "@casys/pml/registry";
import { typedPath } from "./hub_process.ts";
import { usage } from "./_command_line.ts";

const MAX_BYTES = 100_000;

/** Returns the text of a key file. Throws `USAGE` if the file cannot be read. */
export async function readKeyFile(file: string): Promise<string> {
  try {
    return new TextDecoder().decode(
      readRegular(await Deno.realPath(typedPath(file)), { most: MAX_BYTES }).bytes,
    );
  } catch {
    const message = `Cannot sign with ${quoted(file, 300)}: the file cannot be read`;
    throw usage(message, "Check the path and the permissions of the file");
  }
}
