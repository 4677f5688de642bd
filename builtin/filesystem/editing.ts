/**
 * Edits text, and returns the difference.
 *
 * @module
 */

import type { Edit } from "./call.ts";
import { fail } from "./failure.ts";

/**
 * A text that is being edited: its lines, and for each the number of its line in the file (-1 if it
 * is new).
 */
export interface Draft {
  readonly lines: readonly string[];
  readonly origins: readonly number[];
}

/** Splits a text into lines, which keep their line ends. */
export function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+/g) ?? [];
}

/** Returns a text with one edit. Throws if `oldText` is not found or is found twice. */
export function amend(what: string, text: string, edit: Edit): string {
  const old = edit.oldText.replaceAll("\r\n", "\n");
  const fresh = edit.newText.replaceAll("\r\n", "\n");
  const first = text.indexOf(old);
  if (first < 0) return amendLines(what, linesOf(text), { oldText: old, newText: fresh });
  const second = text.indexOf(old, first + 1);
  if (second < 0) return text.slice(0, first) + fresh + text.slice(first + old.length);
  throw twice(what, [first, second].map((at) => text.slice(0, at).split("\n").length));
}

function twice(what: string, lines: readonly number[]): Error {
  const where = lines.join(" and ");
  return fail(what, `oldText occurs more than once (lines ${where}); add lines around it`);
}

/** Replaces the lines that equal those of `oldText`, apart from spaces at their start and end. */
function amendLines(
  what: string,
  lines: readonly string[],
  { oldText, newText }: Edit,
): string {
  const have = lines.map((line) => line.trim());
  const old = linesOf(oldText);
  const want = old.map((line) => line.trim());
  const starts: number[] = [];
  for (let at = 0; at + want.length <= have.length && starts.length < 2; at++) {
    if (want.every((line, index) => line === have[at + index])) starts.push(at);
  }
  const [start] = starts;
  if (start === undefined || want.join("") === "") {
    throw fail(what, "oldText is not in the file; read the file again");
  }
  if (starts.length > 1) throw twice(what, starts.map((at) => at + 1));
  const found = lines.slice(start, start + old.length);
  const ending = found.at(-1)?.endsWith("\n") && !oldText.endsWith("\n") ? "\n" : "";
  const indents = new Map<string, string>();
  for (const [index, line] of found.entries()) {
    const key = indentOf(old[index] ?? "");
    if (line.trim() !== "" && !indents.has(key)) indents.set(key, indentOf(line));
  }
  const fresh = linesOf(newText + ending).map((line) => indented(line, indents));
  return [...lines.slice(0, start), ...fresh, ...lines.slice(start + old.length)].join("");
}

function indentOf(line: string): string {
  return /^[^\S\n]*/.exec(line)?.[0] ?? "";
}

/**
 * Indents a new line as the file does where `oldText` has the same indentation, or the nearest one.
 */
function indented(line: string, indents: ReadonlyMap<string, string>): string {
  if (line.trim() === "") return line;
  const own = indentOf(line);
  const near = [...indents].filter(([old]) => own.startsWith(old));
  const [old, file] = near.sort(([a], [b]) => b.length - a.length)[0] ?? [...indents][0] ??
    [own, own];
  if (own.startsWith(old)) return file + line.slice(old.length);
  // It is less indented than all of `oldText`, so it is also less indented than all found lines.
  const alike = file.includes("\t") === old.includes("\t");
  const deep = alike
    ? file.length + own.length - old.length
    : file.length * own.length / old.length;
  return file.slice(0, Math.max(0, deep)) + line.slice(own.length);
}

/**
 * Returns the draft with an edited text. The lines before and after the change keep their origins.
 */
export function track({ lines: old, origins }: Draft, text: string): Draft {
  const lines = linesOf(text);
  const most = Math.min(old.length, lines.length);
  let [head, tail] = [0, 0];
  while (head < most && old[head] === lines[head]) head++;
  while (tail < most - head && old.at(-1 - tail) === lines.at(-1 - tail)) tail++;
  const fresh = Array<number>(lines.length - head - tail).fill(-1);
  const kept = origins.slice(old.length - tail);
  return { lines, origins: [...origins.slice(0, head), ...fresh, ...kept] };
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

/** Returns every line of both texts once, marked " ", "-" or "+". */
export function rowsOf(before: readonly string[], { lines, origins }: Draft): string[] {
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
export function unified(rows: readonly string[]): string[] {
  const near = new Set<number>();
  for (const [index, row] of rows.entries()) {
    for (let at = -3; !row.startsWith(" ") && at <= 3; at++) near.add(index + at);
  }
  const out: string[] = [];
  const seen = { "-": 0, "+": 0 };
  for (let at = 0, end = 0; at < rows.length; at = end) {
    while (end < rows.length && near.has(end) === near.has(at)) end++;
    const run = rows.slice(at, end);
    const spans = (["-", "+"] as const).map((mark) => {
      const count = run.filter((row) => row.startsWith(" ") || row.startsWith(mark)).length;
      const start = seen[mark] + Number(count > 0);
      seen[mark] += count;
      return `${mark}${start},${count}`;
    });
    if (!near.has(at)) continue;
    out.push(`@@ ${spans.join(" ")} @@`);
    for (const row of run) {
      out.push(row.endsWith("\n") ? row.slice(0, -1) : `${row}\n\\ No newline at end of file`);
    }
  }
  return out;
}
