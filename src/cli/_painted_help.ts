/**
 * Prints the help on a terminal, fitted to its width and with colours.
 *
 * @module
 */

import { paintHelp } from "./_paint.ts";
import { print } from "./out.ts";

/** Prints the help. */
export function printHelp(text: string): void {
  print(text, paintHelp);
}
