/**
 * Reads the port that the user typed.
 *
 * @module
 */

import { quoted } from "../core/json.ts";
import { usage } from "./_failure.ts";

/** The port of `pml serve`, if the user names none. */
export const SERVE_PORT = 3003;

/** Returns a port. Throws USAGE, with the hint `how`, for anything else. */
export function portOf(text: string, how: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw usage(`Cannot use port ${quoted(text)}: it is not a number up to 65535`, how);
}
