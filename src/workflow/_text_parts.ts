/**
 * Finds parts of kept outputs: lines of a text by their numbers, and lines or values that contain a
 * text. Outputs can be large, so each search yields to other work regularly.
 *
 * @module
 */

import { isExactNumber } from "../core/exact_number.ts";
import { isLonger } from "../core/json_length.ts";
import type { Json, JsonObject } from "../core/json.ts";
import { quoted } from "../core/json.ts";
import { yieldTurn } from "../io/waiting.ts";
import { badRequestError, isList } from "./_refs.ts";
import { sampleOf } from "./_sample.ts";

/** The maximum number of characters of lines in one answer. */
const LINES_MAX = 16_000;
/** The maximum number of characters of the lines or values that contain a text. */
const MATCHES_TEXT_MAX = 4_000;
/** The maximum length of one line or value that contains a text. */
const LINE_MAX = 400;
/** The maximum number of characters of matches with lines around them. */
const CONTEXT_TEXT_MAX = 2_000;
/** The numbers of lines around each match that are tried. The first number that fits is used. */
const CONTEXT_LINES = [12, 6, 3, 1, 0];
/** The maximum number of matches that are kept. Further matches are only counted. */
const MATCHES_MAX = 2_000;
/** The number of lines or values that are searched before other work continues. */
const TURN_LENGTH = 20_000;
/** The maximum length of an object that is shown completely because it contains a match. */
const PARENT_MAX = 700;

/** A range of lines: the first and the last line. A negative `from` counts from the end. */
export interface LineRange {
  readonly from: number;
  readonly to: number | undefined;
}

/** The position of a line in a text. */
interface Line {
  readonly number: number;
  readonly start: number;
  readonly end: number;
}

/** Parses `20-40`, `20` or `-40` (the last 40). */
export function parseLineRange(text: string): LineRange {
  const [, from, dash, to] = /^(-?[1-9]\d{0,8})(?:(-)([1-9]\d{0,8})?)?$/.exec(text) ?? [];
  if (from === undefined) throw badRequestError('`lines` is not like "20-40", "20" or "-40"');
  const first = Number(from);
  const last = to === undefined ? undefined : Number(to);
  if (first < 0 && dash !== undefined || last !== undefined && last < first) {
    throw badRequestError('`lines` is not like "20-40", "20" or "-40"');
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

/** Returns lines of a text, after a line with their numbers and the range of the next lines. */
export async function linesOf(text: string, { from, to = Infinity }: LineRange): Promise<string> {
  const total = await countLines(text);
  const first = from < 0 ? Math.max(total + from + 1, 1) : from;
  const last = Math.min(to, total);
  if (first > total) throw badRequestError(`the text has ${total} lines`);
  const lines: string[] = [];
  let remaining = LINES_MAX;
  await eachLine(text, ({ number, start, end }) => {
    if (number < first) return true;
    // A single line may be longer than an answer.
    const line = truncate(
      text.slice(start, Math.min(end, start + LINES_MAX)),
      end - start,
      LINES_MAX,
    );
    if (number > last || line.length > remaining && lines.length > 0) return false;
    remaining -= line.length + 1;
    lines.push(line);
    return true;
  });
  const lastShown = first + lines.length - 1;
  const next = lastShown < last ? `; next: lines=${lastShown + 1}-${last}` : "";
  return `lines ${first} to ${lastShown} of ${total}${next}\n${lines.join("\n")}`;
}

/** Returns the first and the last lines of a text, at most `head` and `tail` characters. */
export function firstAndLastLines(
  text: string,
  { head, tail }: { readonly head: number; readonly tail: number },
): { readonly first: readonly string[]; readonly last: readonly string[] } {
  const first = takeFitting(text.slice(0, head * 4).split("\n"), head);
  const whole = text.endsWith("\n") ? text.slice(0, -1) : text;
  const end = whole.slice(-tail * 4).split("\n");
  // The first of these lines may be only the end of a line.
  const last = takeFitting(end.slice(whole.length > tail * 4 ? 1 : 0).reverse(), tail).toReversed();
  return { first, last };
}

/** Returns the lines of a text that contain another text. */
export async function grepText(
  text: string,
  { needle, offset }: { readonly needle: string; readonly offset: number },
): Promise<string> {
  const isMatch = matcher(needle);
  const matches: Line[] = [];
  let count = 0;
  let total = 0;
  await eachLine(text, (line) => {
    total++;
    if (!isMatch(text.slice(line.start, line.end))) return true;
    if (count >= offset && matches.length < MATCHES_MAX) matches.push(line);
    count++;
    return true;
  });
  const head = `${count} of ${total} lines contain ${quoted(needle)}`;
  if (matches.length === 0) return head;
  for (const contextLines of CONTEXT_LINES) {
    const shown = matchLines(text, { matches, contextLines, isMatch });
    const all = shown.join("\n");
    if (all.length <= CONTEXT_TEXT_MAX && matches.length + offset === count) {
      return `${head}\n${all}`;
    }
  }
  const shown = takeFitting(
    matchLines(text, { matches, contextLines: 0, isMatch }),
    MATCHES_TEXT_MAX,
  );
  return `${head}${nextHint(offset + shown.length, count)}\n${shown.join("\n")}`;
}

/** Returns the values that contain a text, or whose names contain it, with their JSON pointers. */
export async function grepValue(
  root: Json,
  { needle, offset }: { readonly needle: string; readonly offset: number },
): Promise<string> {
  const isMatch = matcher(needle);
  const matches: Node[] = [];
  let count = 0;
  let visited = 0;
  const stack: Node[] = [{ value: root }];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (++visited % TURN_LENGTH === 0) await yieldTurn();
    const { value, key } = node;
    const isContainer = typeof value === "object" && value !== null && !isExactNumber(value);
    const isNameMatch = typeof key === "string" && isMatch(key);
    if (
      isNameMatch ||
      !isContainer && isMatch(typeof value === "string" ? value : JSON.stringify(value))
    ) {
      if (count >= offset && matches.length < MATCHES_MAX) matches.push(node);
      count++;
    }
    if (isContainer) { for (const child of childrenOf(node)) stack.push(child); }
  }
  const head = `${count} values or names contain ${quoted(needle)}`;
  const hasAllMatches = matches.length + offset === count;
  const linesWithParents = [...new Set(matches.map(findSmallParent))].map((node) =>
    nodeLine(node, PARENT_MAX, isMatch)
  );
  if (hasAllMatches && linesWithParents.join("\n").length <= MATCHES_TEXT_MAX) {
    return [head, ...linesWithParents].join("\n");
  }
  const shown = takeFitting(
    matches.map((node) => nodeLine(node, LINE_MAX, isMatch)),
    MATCHES_TEXT_MAX,
  );
  return [`${head}${nextHint(offset + shown.length, count)}`, ...shown].join("\n");
}

/** A value in an output, with its key and its parent. */
interface Node {
  readonly value: Json;
  readonly key?: string | number;
  readonly parent?: Node;
}

/** Returns the members in reverse order, because a stack reverses the order again. */
function childrenOf(parent: Node): readonly Node[] {
  const { value } = parent;
  const children = isList(value as Json)
    ? (value as readonly Json[]).map((item, key) => ({ value: item, key, parent }))
    : Object.entries(value as JsonObject).map(([key, member]) => ({ value: member, key, parent }));
  return children.reverse();
}

/**
 * Returns the object that contains a match if it is small, because its other members explain the
 * match; otherwise the match itself.
 */
function findSmallParent(node: Node): Node {
  const { parent } = node;
  const isShown = parent?.parent !== undefined && !isList(parent.value) &&
    !isLonger(parent.value, PARENT_MAX);
  return isShown ? parent : node;
}

function nodeLine(node: Node, max: number, isMatch: (text: string) => boolean): string {
  const { value } = node;
  const text = typeof value === "string" && value.length > max
    ? excerpt(value, max, isMatch)
    : undefined;
  return `${pointerOf(node) || "(whole)"}: ${text ?? sampleOf(value, max)}`;
}

/** Returns the part of a long text around its first match: the line with the lines next to it. */
function excerpt(text: string, max: number, isMatch: (text: string) => boolean): string {
  const lines = text.split("\n", TURN_LENGTH);
  const index = lines.findIndex(isMatch);
  const part = lines.slice(Math.max(index - 1, 0), index + 3).join("\n");
  return `…${
    JSON.stringify(truncate(part, part.length, max).toWellFormed())
  }… (${text.length} characters)`;
}

function pointerOf(node: Node): string {
  const keys: string[] = [];
  for (let part: Node | undefined = node; part?.key !== undefined; part = part.parent) {
    keys.push(String(part.key).replaceAll("~", "~0").replaceAll("/", "~1"));
  }
  return keys.reverse().map((key) => `/${key}`).join("");
}

/** Returns a test for texts that contain `needle`. Without a capital letter in it, ignores case. */
function matcher(needle: string): (text: string) => boolean {
  const lower = needle.toLowerCase();
  return lower === needle
    ? (text) => text.toLowerCase().includes(lower)
    : (text) => text.includes(needle);
}

/** Returns the matches and `contextLines` lines before and after each match, with their numbers. */
function matchLines(
  text: string,
  { matches, contextLines, isMatch }: {
    readonly matches: readonly Line[];
    readonly contextLines: number;
    readonly isMatch: (text: string) => boolean;
  },
): readonly string[] {
  const lines = new Map<number, string>();
  let size = 0;
  for (const match of matches) {
    for (const { number, start, end } of linesAround(text, match, contextLines)) {
      if (lines.has(number)) continue;
      const line = text.slice(start, end);
      const shown = `${number}${isMatch(line) ? ":" : "-"} ${
        truncate(line, line.length, LINE_MAX)
      }`;
      size += shown.length + 1;
      lines.set(number, shown);
    }
    if (size > MATCHES_TEXT_MAX * 2) break; // the caller shows fewer lines around each match
  }
  return [...lines].sort(([one], [other]) => one - other).map(([, line]) => line);
}

function linesAround(text: string, line: Line, contextLines: number): readonly Line[] {
  const before: Line[] = [];
  for (let { number, start } = line; before.length < contextLines && start > 0; number--) {
    const end = start - 1;
    start = text.lastIndexOf("\n", end - 1) + 1;
    if (end === 0) start = 0;
    before.unshift({ number: number - 1, start, end });
  }
  const after: Line[] = [];
  for (let { number, end } = line; after.length < contextLines && end < text.length - 1; number++) {
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
    if (number % TURN_LENGTH === 0) await yieldTurn();
    start = end + 1;
  }
}

/** Returns the first lines that fit, but at least one line. Long lines are truncated. */
function takeFitting(lines: readonly string[], max: number): readonly string[] {
  const shown: string[] = [];
  let remaining = max;
  for (const line of lines) {
    const part = truncate(line, line.length, Math.min(LINE_MAX, max));
    if (part.length > remaining && shown.length > 0) break;
    shown.push(part);
    remaining -= part.length + 1;
  }
  return shown;
}

function truncate(text: string, length: number, max: number): string {
  return length > max ? `${text.slice(0, max)}… (${length} characters)` : text;
}

function nextHint(next: number, count: number): string {
  return next < count ? `; next: offset=${next}` : "";
}
