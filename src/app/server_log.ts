/**
 * Reads what is kept of a server's standard error.
 *
 * @module
 */

import { readPlain } from "../io/private_files.ts";
import { serverLogPath } from "../stdio/server_log.ts";

/** Returns the file of a server and its text; undefined if nothing is kept. */
export function serverLog(
  home: string,
  name: string,
): { readonly path: string; readonly text: string | undefined } {
  const path = serverLogPath(home, name);
  const found = readPlain(path);
  return { path, text: found && new TextDecoder().decode(found.bytes) };
}
