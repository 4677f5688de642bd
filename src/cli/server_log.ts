/**
 * Reads the stored standard error of a server.
 *
 * @module
 */

import { readPlainText } from "../io/private_files.ts";
import { serverLogPath } from "../servers/server_log.ts";

/** Returns the path of a server's log, and its text; the text is undefined if there is no log. */
export function serverLog(
  home: string,
  name: string,
): { readonly path: string; readonly text: string | undefined } {
  const path = serverLogPath(home, name);
  return { path, text: readPlainText(path) };
}
