/**
 * Finds the line of a program's output that states why it failed.
 *
 * @module
 */

import { visible } from "../../core/json.ts";

const MAX = 300;
/** How npm begins the lines of an error. */
const OF_NPM = /^npm (?:error|ERR!) */;
/** Lines of npm that do not state the cause. */
const NOISE = /^(?:code |errno |syscall |\d+$|A complete log of this run|$)/;

/** Returns ": " and that line; "" if the program printed nothing. npm prints its cause first. */
export function causeIn(text: string): string {
  const lines = text.split(/\r\n?|\n/).map((line) => line.trim()).filter(Boolean);
  const cause = lines.filter((line) => OF_NPM.test(line)).map((line) => line.replace(OF_NPM, ""))
    .find((line) => !NOISE.test(line)) ?? lines.at(-1);
  return cause === undefined ? "" : `: ${visible(cause, MAX)}`;
}
