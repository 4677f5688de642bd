/**
 * Finds parts of kept outputs: lines of a text by their numbers, and lines or values that contain a
 * text. Outputs can be large, so other work has its turn between parts.
 *
 * @module
 */

import { isExactNumber } from "../core/exact_number.ts";
import { isLonger } from "../core/json_length.ts";
import type { Json, JsonObject } from "../core/json.ts";
import { quoted } from "../core/json.ts";
import { yieldTurn } from "../io/waiting.ts";
import { bad, isList } from "./_refs.ts";
import { sampleOf } from "./_sample.ts";

/** The maximum number of characters of lines in one answer. */
const LINES_MAX = 16_000;
/** The same for the lines or values that contain a text. */
const FOUND_MAX = 4_000;
const LINE_MAX = 400;
/** The same for matches with lines around them. */
const AROUND_MAX = 2_000;
/** How many lines around each match are shown, if all of them fit. */
const AROUND = [12, 6, 3, 1, 0];
/** How many matches are kept. Further ones are counted. */
const MATCHES_MAX = 2_000;
/** How many lines or values are looked at in one turn. */
const TURN = 20_000;
/** The maximum length of an object that is shown whole for a match in it. */
const PARENT_MAX = 700;

/** A range of lines: the numbers of the first and the last one. A negative `from` counts from the end. */
export interface LineRange {
  readonly from: number;
  readonly to: number | undefined;
}

/** The place of a line in a text. */
interface Line {
  readonly number: number;
  readonly start: number;
  readonly end: number;
}

/** Parses `20-40`, `20` or `-40` (the last 40). */
export function lineRangeOf(text: string): LineRange {
  const [, from, dash, to] = /^(-?[1-9]\d{0,8})(?:(-)([1-9]\d{0,8})?)?$/.exec(text) ?? [];
  if (from === undefined) throw bad('`lines` is not like "20-40", "20" or "-40"');
  const first = Number(from);
  const last = to === undefined ? undefined : Number(to);
  if (first < 0 && dash !== undefined || last !== undefined && last < first) {
    throw bad('`lines` is not like "20-40", "20" or "-40"');
  }
  return { from: first, to: last ?? (dash === undefined && first > 0 ? first : undefined) };
}

/** Counts the lines of a text. A line end after the last line does not count. */
export async function countLines(text: string): Promise<number> {
  let count = 0;
  await eachLine(text, () => {
    count++;
    return true;
  });
  return count;
}

/** Returns lines of a text, after a line that names them and the next ones. */
export async function linesOf(text: string, { from, to = Infinity }: LineRange): Promise<string> {
  const total = await countLines(text);
  const first = from < 0 ? Math.max(total + from + 1, 1) : from;
  const last = Math.min(to, total);
  if (first > total) throw bad(`it has ${total} lines`);
  const lines: string[] = [];
  let remaining = LINES_MAX;
  await eachLine(text, ({ number, start, end }) => {
    if (number < first) return true;
    // A single line may be longer than an answer.
    const line = cut(text.slice(start, Math.min(end, start + LINES_MAX)), end - start, LINES_MAX);
    if (number > last || line.length > remaining && lines.length > 0) return false;
    remaining -= line.length + 1;
    lines.push(line);
    return true;
  });
  const shown = first + lines.length - 1;
  const next = shown < last ? `; next: lines=${shown + 1}-${last}` : "";
  return `lines ${first} to ${shown} of ${total}${next}\n${lines.join("\n")}`;
}

/** Returns the first lines of a text that fit, and the last ones. */
export function endsOf(
  text: string,
  { head, tail }: { readonly head: number; readonly tail: number },
): { readonly first: readonly string[]; readonly last: readonly string[] } {
  const first = fitting(text.slice(0, head * 4).split("\n"), head);
  const whole = text.endsWith("\n") ? text.slice(0, -1) : text;
  const end = whole.slice(-tail * 4).split("\n");
  // The first of them may be the end of a longer line.
  const last = fitting(end.slice(whole.length > tail * 4 ? 1 : 0).reverse(), tail).toReversed();
  return { first, last };
}

/** Returns the lines of a text that contain another text. */
export async function grepText(
  text: string,
  { needle, offset }: { readonly needle: string; readonly offset: number },
): Promise<string> {
  const has = matcher(needle);
  const matches: Line[] = [];
  let count = 0;
  let total = 0;
  await eachLine(text, (line) => {
    total++;
    if (!has(text.slice(line.start, line.end))) return true;
    if (count >= offset && matches.length < MATCHES_MAX) matches.push(line);
    count++;
    return true;
  });
  const head = `${count} of ${total} lines contain ${quoted(needle)}`;
  if (matches.length === 0) return head;
  for (const around of AROUND) {
    const shown = withAround(text, { matches, around, has });
    const all = shown.join("\n");
    if (all.length <= AROUND_MAX && matches.length + offset === count) return `${head}\n${all}`;
  }
  const shown = fitting(withAround(text, { matches, around: 0, has }), FOUND_MAX);
  return `${head}${nextHint(offset + shown.length, count)}\n${shown.join("\n")}`;
}

/** Returns the values that contain a text, or whose name does, with their JSON pointers. */
export async function grepValue(
  root: Json,
  { needle, offset }: { readonly needle: string; readonly offset: number },
): Promise<string> {
  const has = matcher(needle);
  const matches: Node[] = [];
  let count = 0;
  let seen = 0;
  const stack: Node[] = [{ value: root }];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (++seen % TURN === 0) await yieldTurn();
    const { value, key } = node;
    const isInner = typeof value === "object" && value !== null && !isExactNumber(value);
    const isNamed = typeof key === "string" && has(key);
    if (isNamed || !isInner && has(typeof value === "string" ? value : JSON.stringify(value))) {
      if (count >= offset && matches.length < MATCHES_MAX) matches.push(node);
      count++;
    }
    if (isInner) { for (const child of childrenOf(node)) stack.push(child); }
  }
  const head = `${count} values or names contain ${quoted(needle)}`;
  const isAll = matches.length + offset === count;
  const whole = [...new Set(matches.map(smallParent))].map((node) =>
    nodeLine(node, PARENT_MAX, has)
  );
  if (isAll && whole.join("\n").length <= FOUND_MAX) return [head, ...whole].join("\n");
  const shown = fitting(matches.map((node) => nodeLine(node, LINE_MAX, has)), FOUND_MAX);
  return [`${head}${nextHint(offset + shown.length, count)}`, ...shown].join("\n");
}

/** A value in an output, with its place. */
interface Node {
  readonly value: Json;
  readonly key?: string | number;
  readonly parent?: Node;
}

/** Returns the members in the order in which a stack reverses them. */
function childrenOf(parent: Node): readonly Node[] {
  const { value } = parent;
  const children = isList(value as Json)
    ? (value as readonly Json[]).map((one, key) => ({ value: one, key, parent }))
    : Object.entries(value as JsonObject).map(([key, one]) => ({ value: one, key, parent }));
  return children.reverse();
}

/** Returns the object that contains a match, if it is small. Its other members explain the match. */
function smallParent(node: Node): Node {
  const { parent } = node;
  const isShown = parent?.parent !== undefined && !isList(parent.value) &&
    !isLonger(parent.value, PARENT_MAX);
  return isShown ? parent : node;
}

function nodeLine(node: Node, max: number, has: (text: string) => boolean): string {
  const { value } = node;
  const text = typeof value === "string" && value.length > max
    ? around(value, max, has)
    : undefined;
  return `${pointerOf(node) || "(whole)"}: ${text ?? sampleOf(value, max)}`;
}

/** Returns the part of a long text around the match: its line, or its beginning. */
function around(text: string, max: number, has: (text: string) => boolean): string {
  const lines = text.split("\n", TURN);
  const at = lines.findIndex(has);
  const part = lines.slice(Math.max(at - 1, 0), at + 3).join("\n");
  return `…${
    JSON.stringify(cut(part, part.length, max).toWellFormed())
  }… (${text.length} characters)`;
}

function pointerOf(node: Node): string {
  const keys: string[] = [];
  for (let one: Node | undefined = node; one?.key !== undefined; one = one.parent) {
    keys.push(String(one.key).replaceAll("~", "~0").replaceAll("/", "~1"));
  }
  return keys.reverse().map((key) => `/${key}`).join("");
}

/** Returns a test of texts. It ignores case unless the searched text has a capital letter. */
function matcher(needle: string): (text: string) => boolean {
  const lower = needle.toLowerCase();
  return lower === needle
    ? (text) => text.toLowerCase().includes(lower)
    : (text) => text.includes(needle);
}

/** Returns lines with their numbers, and some lines around each. */
function withAround(
  text: string,
  { matches, around, has }: {
    readonly matches: readonly Line[];
    readonly around: number;
    readonly has: (text: string) => boolean;
  },
): readonly string[] {
  const lines = new Map<number, string>();
  let size = 0;
  for (const one of matches) {
    for (const { number, start, end } of neighbours(text, one, around)) {
      if (lines.has(number)) continue;
      const line = text.slice(start, end);
      const shown = `${number}${has(line) ? ":" : "-"} ${cut(line, line.length, LINE_MAX)}`;
      size += shown.length + 1;
      lines.set(number, shown);
    }
    if (size > FOUND_MAX * 2) break; // it does not fit
  }
  return [...lines].sort(([one], [other]) => one - other).map(([, line]) => line);
}

function neighbours(text: string, line: Line, around: number): readonly Line[] {
  const before: Line[] = [];
  for (let { number, start } = line; before.length < around && start > 0; number--) {
    const end = start - 1;
    start = text.lastIndexOf("\n", end - 1) + 1;
    if (end === 0) start = 0;
    before.unshift({ number: number - 1, start, end });
  }
  const after: Line[] = [];
  for (let { number, end } = line; after.length < around && end < text.length - 1; number++) {
    const start = end + 1;
    const next = text.indexOf("\n", start);
    end = next < 0 ? text.length : next;
    after.push({ number: number + 1, start, end });
  }
  return [...before, line, ...after];
}

/** Visits the lines of a text until a visit returns false. */
async function eachLine(text: string, visit: (line: Line) => boolean): Promise<void> {
  let number = 0;
  for (let start = 0; start < text.length;) {
    const next = text.indexOf("\n", start);
    const end = next < 0 ? text.length : next;
    if (!visit({ number: ++number, start, end })) return;
    if (number % TURN === 0) await yieldTurn();
    start = end + 1;
  }
}

/** Returns the first lines that fit, but at least one; long ones are cut. */
function fitting(lines: readonly string[], max: number): readonly string[] {
  const shown: string[] = [];
  let remaining = max;
  for (const line of lines) {
    const part = cut(line, line.length, Math.min(LINE_MAX, max));
    if (part.length > remaining && shown.length > 0) break;
    shown.push(part);
    remaining -= part.length + 1;
  }
  return shown;
}

function cut(text: string, length: number, max: number): string {
  return length > max ? `${text.slice(0, max)}… (${length} characters)` : text;
}

function nextHint(next: number, count: number): string {
  return next < count ? `; next: offset=${next}` : "";
}
