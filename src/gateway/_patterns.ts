/**
 * Runs the patterns of others' schemas in time that is known before: plain ones on the platform's
 * engine, others on a linear one, and those that neither can run safely not at all.
 *
 * @module
 */

import type { RE2JS } from "re2js";

/** The linear engine, which is loaded when a pattern needs it. */
export type LinearEngine = typeof import("re2js");

/** A pattern that can be run. */
export interface Pattern {
  /** Whether it needs the linear engine. */
  readonly isLinear: boolean;
  /** How many steps it takes to prepare it, which its first test does. */
  readonly preparing: number;
  /** How many steps a text of a length takes. */
  steps(length: number): number;
  /** Tells whether a text matches; throws for a pattern that the engine cannot run after all. */
  test(text: string, engine: LinearEngine | undefined): boolean;
}

const LONGEST = 1_000;
/** How many instructions a pattern may have once its repetitions are written out. */
const MOST_INSTRUCTIONS = 5_000;
/** How many a plain one may have: where each may be tried at each place, that is not much. */
const MOST_PLAIN = 500;
/** The linear engine writes no more repetitions out. */
const MOST_REPEATED = 1_000;
/** A class of Unicode has many ranges. */
const UNICODE_CLASS = 40;

/** Reads a pattern; undefined for one that cannot be run safely, or is none. */
export function readPattern(source: string): Pattern | undefined {
  const read = source.length <= LONGEST && isPattern(source) ? translated(source) : undefined;
  if (read === undefined || read.size > MOST_INSTRUCTIONS) return undefined;
  const { size } = read;
  // Without groups and with one repetition at most, each instruction is tried once at a place.
  const isLinear = read.hasGroups || size > MOST_PLAIN ||
    read.variable > Number(source.startsWith("^"));
  let made: RegExp | RE2JS;
  return {
    isLinear,
    preparing: isLinear ? 500 + size * 100 : 20 + size,
    steps: (length) => isLinear ? size * (length + 2) * 3 : 1 + Math.ceil(size * length / 16),
    test: (text, engine) => {
      made ??= isLinear ? compiled(read.text, engine) : new RegExp(source, "u");
      return made.test(text);
    },
  };
}

/** Tells whether the platform takes a text as a pattern. */
export function isPattern(source: string): boolean {
  try {
    new RegExp(source, "u");
    return true;
  } catch {
    return false; // it may be one of another language
  }
}

function compiled(pattern: string, engine: LinearEngine | undefined): RE2JS {
  if (engine === undefined) throw new Error("the linear engine was not loaded");
  return engine.RE2JS.compile(engine.RE2JS.translateRegExp(pattern));
}

/** A pattern for the linear engine, and what it consists of. */
interface Translated {
  readonly text: string;
  /** How many instructions it makes. */
  readonly size: number;
  /** Whether there is a group or a choice. */
  readonly hasGroups: boolean;
  /** How many repetitions are of no fixed number. */
  readonly variable: number;
}

/** A part of a pattern. */
interface Piece {
  readonly size: number;
  /** How often something in it is written out. */
  readonly times: number;
}

/** Two escapes may be the halves of one character. */
const ESCAPE = String.raw`\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u[^{]{4}|[upP]\{[^}]*\}|c?.)`;
const IN_CLASS = new RegExp(String.raw`${ESCAPE}|(?<!^)\[`, "gsu");
/** Classes, escapes, what opens a group, repetitions, and other characters. */
const TOKENS = new RegExp(
  String.raw`\[(?:\\.|[^\]\\])*\]|${ESCAPE}|\((?:\?(?::|<[^=!][^>]*>)?)?|` +
    String.raw`(?<repeat>[*+?]|\{(?<least>\d+)(?<comma>,?)(?<most>\d*)\})\??|.`,
  "gsu",
);
/** What looks around, sets flags, repeats a group, or is a class of Unicode by another name. */
const IMPOSSIBLE =
  /^\(\?$|^\\[1-9k]|\\p\{(?!(?:(?:gc|General_Category)=)?[A-Z][a-z]?\}|(?:sc|Script)=\w+\})/i;
const BLANKS = String.raw`\t-\r \xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}` +
  String.raw`\x{3000}\x{feff}`;
const NO_BLANKS = String.raw`\x00-\x08\x0e-\x1f!-\x9f\xa1-\x{167f}\x{1681}-\x{1fff}` +
  String.raw`\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}` +
  String.raw`\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`;

/** Writes what the platform's engine takes as a pattern for the linear one, if that can do it. */
function translated(source: string): Translated | undefined {
  const outer: Piece[][] = [];
  let pieces: Piece[] = [];
  let [text, variable, hasGroups] = ["", 0, false];
  for (const { 0: token, groups = {} } of source.matchAll(TOKENS)) {
    if (IMPOSSIBLE.test(token)) return undefined;
    const { repeat, least, comma, most } = groups;
    if (repeat !== undefined) {
      if (least === undefined || comma !== "" && most !== least) variable++;
      const often = Math.max(1, Number(least ?? 1) + Number(comma === "," && !most), Number(most));
      const piece = repeated(pieces.pop(), often);
      if (piece.times > MOST_REPEATED) return undefined;
      pieces.push(piece);
      text += token;
    } else if (token.startsWith("(")) {
      hasGroups = true;
      outer.push(pieces);
      pieces = [];
      text += "(?:";
    } else if (token === ")") {
      pieces = [...outer.pop() ?? [], together(pieces)];
      text += token;
    } else {
      hasGroups ||= token === "|";
      pieces.push({ size: sizeOf(token), times: 1 });
      text += written(token);
    }
  }
  return { text, size: together(pieces).size, hasGroups, variable };
}

function repeated({ size, times }: Piece = { size: 1, times: 1 }, often: number): Piece {
  return { size: (size + 1) * often, times: times * often };
}

function together(pieces: readonly Piece[]): Piece {
  return {
    size: pieces.reduce((sum, { size }) => sum + size, 1),
    times: Math.max(1, ...pieces.map(({ times }) => times)),
  };
}

function sizeOf(token: string): number {
  const unicode = token.split(/\\p\{/i).length - 1;
  return Math.max(1, unicode * UNICODE_CLASS) + (token.startsWith("[") ? token.length / 32 : 0);
}

/** Writes what means something else to the linear engine, even translated by it. */
function written(token: string): string {
  if (token.startsWith("[")) return token.replace(IN_CLASS, inClass);
  if (token === ".") return String.raw`[^\n\r\x{2028}\x{2029}]`;
  if (token === "\\b") return token;
  const inside = inClass(token);
  return /^\\s$/i.test(token) ? `[${inside}]` : inside;
}

/** Writes an escape that stands in a class. */
function inClass(token: string): string {
  switch (token.slice(0, 2)) {
    case "[":
      return "\\[";
    case "\\s":
      return BLANKS;
    case "\\S":
      return NO_BLANKS;
    case "\\b":
      return "\\x08";
    case "\\p":
    case "\\P":
      return token.replace(/\w+=/, "");
  }
  // The halves of a character.
  const point = token.length === 12 ? JSON.parse(`"${token}"`).codePointAt(0) : undefined;
  return point === undefined ? token : `\\x{${point.toString(16)}}`;
}
