/**
 * Finds the line of a program's output that states why it failed.
 *
 * @module
 */

import { stripVTControlCharacters } from "node:util";
import { visible } from "../../core/json.ts";

const MAX = 300;
/** How npm begins the lines of an error. */
const OF_NPM = /^npm (?:error|ERR!) */;
/** Lines of npm that do not state the cause. */
const NOISE = /^(?:code |errno |syscall |\d+$|A complete log of this run|$)/;

/** Lines that name an error, such as "TypeError: x is undefined" and "fatal: no repository". */
const ERROR = /\b(?:\w*(?:error|exception)|fatal|panic(?:ked)?)\b[^:]{0,60}:\s*\S/i;
/** Lines of code that Node.js prints before the error, and lines of its stack. */
const CODE = /^(?:throw |at )/;

/**
 * Returns ": " and that line: npm's first error, else the first line that names an error, else the
 * last line; "" if the program printed nothing.
 */
export function causeIn(text: string): string {
  const lines = stripVTControlCharacters(text).split(/\r\n?|\n/).map((line) => line.trim())
    .filter(Boolean);
  const cause = lines.filter((line) => OF_NPM.test(line)).map((line) => line.replace(OF_NPM, ""))
    .find((line) => !NOISE.test(line)) ??
    lines.find((line) => ERROR.test(line) && !CODE.test(line)) ?? lines.at(-1);
  return cause === undefined ? "" : `: ${visible(cause, MAX)}`;
}
