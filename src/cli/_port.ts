/**
 * Reads the port that the user typed.
 *
 * @module
 */

import { quoted } from "../core/json.ts";
import { usage } from "./_failure.ts";

/** The port of `pml serve`, if the user names none. */
export const SERVE_PORT = 3003;

/** Parses a port. Throws `USAGE` with `hint` if the text is not a port. */
export function parsePort(text: string, hint: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw usage(`Cannot use port ${quoted(text)}: it is not a number up to 65535`, hint);
}
