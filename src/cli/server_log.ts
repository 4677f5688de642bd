/**
 * Reads the stored standard error of a server.
 *
 * @module
 */

import { readPlainText } from "../io/private_files.ts";
import { serverLogPath } from "../servers/server_log.ts";

/** Returns the file of a server and its text; undefined if nothing is kept. */
export function serverLog(
  home: string,
  name: string,
): { readonly path: string; readonly text: string | undefined } {
  const path = serverLogPath(home, name);
  return { path, text: readPlainText(path) };
}
