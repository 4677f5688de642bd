/**
 * Edits text, and returns the difference.
 *
 * @module
 */

import type { Edit } from "./call.ts";
import { fail } from "./failure.ts";

/**
 * A text with edits. `origins` has the index of each line in the file; -1 for a new line.
 */
export interface Draft {
  readonly lines: readonly string[];
  readonly origins: readonly number[];
}

/** Splits a text into lines, which keep their line ends. */
export function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+/g) ?? [];
}

/** Applies one edit to a text. Throws if `oldText` does not occur exactly once. */
export function applyEdit(what: string, text: string, edit: Edit): string {
  const old = edit.oldText.replaceAll("\r\n", "\n");
  const replacement = edit.newText.replaceAll("\r\n", "\n");
  const first = text.indexOf(old);
  if (first < 0) return applyLineEdit(what, linesOf(text), { oldText: old, newText: replacement });
  const second = text.indexOf(old, first + 1);
  if (second < 0) return text.slice(0, first) + replacement + text.slice(first + old.length);
  throw ambiguousError(what, [first, second].map((at) => text.slice(0, at).split("\n").length));
}

function ambiguousError(what: string, lines: readonly number[]): Error {
  const where = lines.join(" and ");
  return fail(what, `oldText occurs more than once (lines ${where}); add lines around it`);
}

/** Replaces the lines that equal the lines of `oldText`, except for spaces at both ends. */
function applyLineEdit(
  what: string,
  lines: readonly string[],
  { oldText, newText }: Edit,
): string {
  const fileLines = lines.map((line) => line.trim());
  const old = linesOf(oldText);
  const wantedLines = old.map((line) => line.trim());
  const starts: number[] = [];
  for (let at = 0; at + wantedLines.length <= fileLines.length && starts.length < 2; at++) {
    if (wantedLines.every((line, index) => line === fileLines[at + index])) starts.push(at);
  }
  const [start] = starts;
  if (start === undefined || wantedLines.join("") === "") {
    throw fail(what, "oldText is not in the file; read the file again");
  }
  if (starts.length > 1) throw ambiguousError(what, starts.map((at) => at + 1));
  const matchedLines = lines.slice(start, start + old.length);
  const ending = matchedLines.at(-1)?.endsWith("\n") && !oldText.endsWith("\n") ? "\n" : "";
  const indents = new Map<string, string>();
  for (const [index, line] of matchedLines.entries()) {
    const key = indentOf(old[index] ?? "");
    if (line.trim() !== "" && !indents.has(key)) indents.set(key, indentOf(line));
  }
  const replacement = linesOf(newText + ending).map((line) => reindent(line, indents));
  return [...lines.slice(0, start), ...replacement, ...lines.slice(start + old.length)].join("");
}

function indentOf(line: string): string {
  return /^[^\S\n]*/.exec(line)?.[0] ?? "";
}

/**
 * Indents a new line like the lines of the file whose indentation in `oldText` is the same, or nearest.
 */
function reindent(line: string, indents: ReadonlyMap<string, string>): string {
  if (line.trim() === "") return line;
  const indent = indentOf(line);
  const candidates = [...indents].filter(([old]) => indent.startsWith(old));
  const [old, file] = candidates.sort(([a], [b]) => b.length - a.length)[0] ?? [...indents][0] ??
    [indent, indent];
  if (indent.startsWith(old)) return file + line.slice(old.length);
  // The line is less indented than all lines of `oldText`, so the result is less indented than the
  // lines of the file.
  const isSameUnit = file.includes("\t") === old.includes("\t");
  const length = isSameUnit
    ? file.length + indent.length - old.length
    : file.length * indent.length / old.length;
  return file.slice(0, Math.max(0, length)) + line.slice(indent.length);
}

/**
 * Returns the draft with a new text. The lines before and after the change keep their origins.
 */
export function trackOrigins({ lines: old, origins }: Draft, text: string): Draft {
  const lines = linesOf(text);
  const most = Math.min(old.length, lines.length);
  let [head, tail] = [0, 0];
  while (head < most && old[head] === lines[head]) head++;
  while (tail < most - head && old.at(-1 - tail) === lines.at(-1 - tail)) tail++;
  const replacement = Array<number>(lines.length - head - tail).fill(-1);
  const tailOrigins = origins.slice(old.length - tail);
  return { lines, origins: [...origins.slice(0, head), ...replacement, ...tailOrigins] };
}

/**
 * Returns the text with the line ends of the file. New lines get the line end of the first line.
 */
export function withEndings(raw: string, { lines, origins }: Draft): string {
  const endings = linesOf(raw).map((line) => line.endsWith("\r\n"));
  return lines.map((line, index) => {
    const crlf = endings[origins[index] ?? -1] ?? endings[0];
    return crlf ? line.replace(/\n$/, "\r\n") : line;
  }).join("");
}

/** Returns each line of both texts once, with the mark " ", "-" or "+". */
export function diffRows(before: readonly string[], { lines, origins }: Draft): string[] {
  const rows: string[] = [];
  let [at, added]: [number, string[]] = [0, []];
  for (const [index, origin] of [...origins, before.length].entries()) {
    if (origin < 0) added.push(`+${lines[index]}`);
    if (origin < 0) continue;
    while (at < origin) rows.push(`-${before[at++]}`);
    for (const row of added) rows.push(row);
    added = [];
    if (at < before.length) rows.push(` ${before[at++]}`);
  }
  return rows;
}

/** Returns the changed rows as hunks with three lines around each change. */
export function toHunks(rows: readonly string[]): string[] {
  const shownRows = new Set<number>();
  for (const [index, row] of rows.entries()) {
    for (let at = -3; !row.startsWith(" ") && at <= 3; at++) shownRows.add(index + at);
  }
  const hunks: string[] = [];
  const counts = { "-": 0, "+": 0 };
  for (let at = 0, end = 0; at < rows.length; at = end) {
    while (end < rows.length && shownRows.has(end) === shownRows.has(at)) end++;
    const run = rows.slice(at, end);
    const spans = (["-", "+"] as const).map((mark) => {
      const count = run.filter((row) => row.startsWith(" ") || row.startsWith(mark)).length;
      const start = counts[mark] + Number(count > 0);
      counts[mark] += count;
      return `${mark}${start},${count}`;
    });
    if (!shownRows.has(at)) continue;
    hunks.push(`@@ ${spans.join(" ")} @@`);
    for (const row of run) {
      hunks.push(row.endsWith("\n") ? row.slice(0, -1) : `${row}\n\\ No newline at end of file`);
    }
  }
  return hunks;
}
