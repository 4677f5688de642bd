/**
 * Prepares the output of a program for a user: without colours, and with the line that states why
 * the program failed.
 *
 * @module
 */

import { stripVTControlCharacters } from "node:util";
import { visible, visibleLines } from "./json.ts";

const MAX = 300;
const BEFORE = "\nBefore that:\n";
/** How npm begins the lines of an error. */
const OF_NPM = /^npm (?:error|ERR!) */;
/** How uv begins the lines of the reasons of an error; the last one is the first reason. */
const OF_UV = /^[├╰]─▶ */;
/** Lines of npm that do not state the cause. */
const NOISE = /^(?:code |errno |syscall |\d+$|A complete log of this run|$)/;

/** Lines that name an error, such as "TypeError: x is undefined" and "fatal: no repository". */
const ERROR = /\b(?:\w*(?:error|exception)|fatal|panic(?:ked)?)\b[^:]{0,60}:\s*\S/i;
/** Lines that name an error without a colon, such as "[ERROR] no token" and "error no token". */
const MARKED = /^\W{0,20}(?:\d[\d:.,TZ+-]{3,40}\W{1,5})?(?:error|err!|fatal|panic|failed)\b/i;
/** Lines of code that Node.js prints before the error, and lines of its stack. */
const CODE = /^(?:throw |at )/;

/** Returns a text without the escape sequences that colour it or move the cursor. */
export function withoutColours(text: string): string {
  return stripVTControlCharacters(text);
}

/**
 * Returns ": " and that line: npm's first error, else the first line that names an error, else the
 * last line; "" if the program printed nothing.
 */
export function causeIn(text: string): string {
  const lines = linesOf(text).map((line) => line.trim());
  const at = errorAt(lines);
  const cause = at === undefined ? lines.findLast(Boolean) : lines[at]?.replace(OF_NPM, "");
  const reason = lines.slice(at).findLast((line) => OF_UV.test(line));
  return [cause, reason?.replace(OF_UV, "")]
    .map((one) => one === undefined ? "" : `: ${visible(one, MAX)}`).join("");
}

/**
 * Returns an output without colours, at most `max` characters of it. It begins with the first line
 * that names an error; the lines before that line come last. Without such a line, the end is kept.
 */
export function errorFirst(text: string, max: number): string {
  const lines = linesOf(text.trim());
  const at = errorAt(lines.map((line) => line.trim()));
  if (at === undefined) return visibleLines(lines.join("\n").slice(-max), max);
  const from = lines.slice(at).join("\n").slice(0, max);
  const before = lines.slice(0, at).join("\n").trim();
  const space = max - from.length - BEFORE.length;
  const rest = before === "" || space <= 0 ? "" : BEFORE + before.slice(-space);
  return visibleLines(from + rest, max);
}

function linesOf(text: string): readonly string[] {
  return withoutColours(text).split(/\r\n?|\n/);
}

/** Returns the index of the first line that names an error. */
function errorAt(lines: readonly string[]): number | undefined {
  const tests = [
    (line: string) => OF_NPM.test(line) && !NOISE.test(line.replace(OF_NPM, "")),
    (line: string) => ERROR.test(line) && !CODE.test(line),
    (line: string) => MARKED.test(line),
  ];
  return tests.map((test) => lines.findIndex(test)).find((at) => at >= 0);
}
