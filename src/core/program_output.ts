/**
 * Prepares the output of a program for a user: without colours, and with the line that states why
 * the program failed.
 *
 * @module
 */

import { stripVTControlCharacters } from "node:util";
import { quoted, visibleLines } from "./json.ts";

const CAUSE_MAX = 300;
const BEFORE_HEADING = "\nBefore that:\n";
/** The beginning of npm's lines about an error. */
const NPM_PREFIX = /^npm (?:error|ERR!) */;
/** The beginning of uv's lines about the causes of an error. The last line has the root cause. */
const UV_PREFIX = /^[├╰]─▶ */;
/** Lines of npm that do not state the cause. */
const NPM_NOISE = /^(?:code |errno |syscall |\d+$|A complete log of this run|$)/;

/** Lines that name an error, such as "TypeError: x is undefined" and "fatal: no repository". */
const ERROR_WITH_COLON = /\b(?:\w*(?:error|exception)|fatal|panic(?:ked)?)\b[^:]{0,60}:\s*\S/i;
/** Lines that name an error without a colon, such as "[ERROR] no token" and "error no token". */
const ERROR_WORD_FIRST =
  /^\W{0,20}(?:\d[\d:.,TZ+-]{3,40}\W{1,5})?(?:error|err!|fatal|panic|failed)\b/i;
/** Lines of code that Node.js prints before the error, and lines of its stack. */
const CODE_OR_STACK = /^(?:throw |at )/;

/** Returns a text without the escape sequences that colour it or move the cursor. */
export function withoutColours(text: string): string {
  return stripVTControlCharacters(text);
}

/**
 * Returns ": " and the line that states why a program failed: npm's first error, else the first
 * line that names an error, else the last line. Adds uv's root cause. Quotes both, which could
 * otherwise look like a message of PML. Returns "" if there is no output.
 */
export function causeIn(text: string): string {
  const lines = linesOf(text).map((line) => line.trim());
  const index = errorIndex(lines);
  const cause = index === undefined
    ? lines.findLast(Boolean)
    : lines[index]?.replace(NPM_PREFIX, "");
  const rootCause = lines.slice(index).findLast((line) => UV_PREFIX.test(line));
  return [cause, rootCause?.replace(UV_PREFIX, "")]
    .map((line) => line === undefined ? "" : `: ${quoted(line, CAUSE_MAX)}`).join("");
}

/**
 * Returns an output without colours, at most `max` characters of it. It begins with the first line
 * that names an error; the lines before that line come last. Without such a line, the end is kept.
 */
export function putErrorFirst(text: string, max: number): string {
  const lines = linesOf(text.trim());
  const index = errorIndex(lines.map((line) => line.trim()));
  if (index === undefined) return visibleLines(lines.join("\n").slice(-max), max);
  const fromError = lines.slice(index).join("\n").slice(0, max);
  const before = lines.slice(0, index).join("\n").trim();
  const space = max - fromError.length - BEFORE_HEADING.length;
  const rest = before === "" || space <= 0 ? "" : BEFORE_HEADING + before.slice(-space);
  return visibleLines(fromError + rest, max);
}

function linesOf(text: string): readonly string[] {
  return withoutColours(text).split(/\r\n?|\n/);
}

/** Returns the index of the first line that names an error; undefined if there is none. */
function errorIndex(lines: readonly string[]): number | undefined {
  const tests = [
    (line: string) => NPM_PREFIX.test(line) && !NPM_NOISE.test(line.replace(NPM_PREFIX, "")),
    (line: string) => ERROR_WITH_COLON.test(line) && !CODE_OR_STACK.test(line),
    (line: string) => ERROR_WORD_FIRST.test(line),
  ];
  return tests.map((test) => lines.findIndex(test)).find((index) => index >= 0);
}
