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
  if (source.length > LONGEST || !isPattern(source)) return undefined;
  const reader = new PatternReader(source);
  const read = reader.alternatives();
  if (read === undefined || read.size > MOST_INSTRUCTIONS) return undefined;
  const isAnchored = source.startsWith("^");
  const isPlain = !reader.hasGroups && read.size <= MOST_PLAIN &&
    reader.variable <= Number(isAnchored);
  return isPlain ? plain(source, read.size) : linear(read);
}

function isPattern(source: string): boolean {
  try {
    new RegExp(source, "u");
    return true;
  } catch {
    return false; // it may be one of another language
  }
}

/** Without groups and with one repetition at most, each instruction is tried once at a place. */
function plain(source: string, size: number): Pattern {
  let made: RegExp | undefined;
  return {
    isLinear: false,
    preparing: 20 + size,
    steps: (length) => 1 + Math.ceil(size * length / 16),
    test: (text) => (made ??= new RegExp(source, "u")).test(text),
  };
}

function linear({ text: pattern, size }: Piece): Pattern {
  let made: RE2JS | undefined;
  return {
    isLinear: true,
    preparing: 500 + size * 100,
    steps: (length) => size * (length + 2) * 3,
    test: (text, engine) => {
      if (engine === undefined) throw new Error("the linear engine was not loaded");
      made ??= engine.RE2JS.compile(pattern);
      return made.test(text);
    },
  };
}

/** A part of a pattern in the words of the linear engine, and how many instructions it makes. */
interface Piece {
  readonly text: string;
  readonly size: number;
  /** How often something in it is written out. */
  readonly times?: number;
}

type Ranges = readonly (readonly [number, number])[];

const LAST = 0x10ffff;
const DIGITS: Ranges = [[0x30, 0x39]];
const WORDS: Ranges = [[0x30, 0x39], [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]];
const LINE_ENDS: Ranges = [[0xa, 0xa], [0xd, 0xd], [0x2028, 0x2029]];
const BLANKS: Ranges = [
  [0x9, 0xd],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];
const CLASSES: Readonly<Record<string, Ranges>> = {
  d: DIGITS,
  D: allBut(DIGITS),
  w: WORDS,
  W: allBut(WORDS),
  s: BLANKS,
  S: allBut(BLANKS),
};
const CONTROLS: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 };

/**
 * Reads what the platform's engine takes as a pattern, and writes it for the linear one, which means
 * something else by `.`, `\s` and others. Undefined is what it cannot do.
 */
class PatternReader {
  /** Whether there is a group or a choice. */
  hasGroups = false;
  /** How many repetitions are of no fixed number. */
  variable = 0;
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  /** Reads as far as the end of the group or of the pattern. */
  alternatives(): Piece | undefined {
    let text = "";
    let size = 1;
    let times = 1;
    while (this.#at < this.#source.length && this.#peek() !== ")") {
      if (this.#take("|")) {
        this.hasGroups = true;
        text += "|";
        size += 1;
        continue;
      }
      const atom = this.#atom();
      const piece = atom && this.#repeated(atom);
      if (piece === undefined) return undefined;
      text += piece.text;
      size += piece.size;
      times = Math.max(times, piece.times ?? 1);
    }
    return { text, size, times };
  }

  #atom(): Piece | undefined {
    if (this.#take("(")) return this.#group();
    if (this.#take("[")) return this.#class();
    if (this.#take(".")) return piece(classOf(allBut(LINE_ENDS)));
    if (this.#peek() === "^" || this.#peek() === "$") return piece(this.#next());
    if (!this.#take("\\")) return piece(character(this.#point()));
    if (/[bB]/.test(this.#peek())) return piece(`\\${this.#next()}`);
    const escaped = this.#escaped();
    if (typeof escaped === "number") return piece(character(escaped));
    return escaped === undefined ? undefined : piece(classOf(escaped));
  }

  #group(): Piece | undefined {
    this.hasGroups = true;
    const kind = /^\?(?::|<[^=!][^>]*>)/.exec(this.#source.slice(this.#at))?.[0] ?? "";
    // What looks around, or sets flags.
    if (kind === "" && this.#peek() === "?") return undefined;
    this.#at += kind.length;
    const inner = this.alternatives();
    this.#at++;
    return inner && { ...inner, text: `(?:${inner.text})` };
  }

  #class(): Piece | undefined {
    const isNot = this.#take("^");
    let inside = "";
    let size = 1;
    while (!this.#take("]")) {
      const from = this.#take("\\") ? this.#escaped(true) : this.#point();
      if (from === undefined) return undefined;
      if (typeof from !== "number") {
        inside += rangesText(from);
        if (typeof from === "string") size += UNICODE_CLASS;
        continue;
      }
      const isRange = this.#peek() === "-" && this.#source[this.#at + 1] !== "]";
      if (isRange) this.#at++;
      const to = isRange ? this.#take("\\") ? this.#escaped(true) : this.#point() : from;
      if (typeof to !== "number") return undefined;
      inside += rangesText([[from, to]]);
      size += 1 / 16;
    }
    if (inside === "") return piece(classOf(isNot ? [[0, LAST]] : allBut([[0, LAST]])));
    return { text: `[${isNot ? "^" : ""}${inside}]`, size };
  }

  /** Reads what follows a backslash: a character, ranges, or a class of Unicode as a text. */
  #escaped(isInClass = false): number | Ranges | string | undefined {
    const rest = this.#source.slice(this.#at);
    const hex = /^(?:x([0-9a-f]{2})|u\{0*([0-9a-f]+)\}|u([0-9a-f]{4}))/i.exec(rest);
    if (hex) {
      this.#at += hex[0].length;
      return this.#paired(Number.parseInt(hex[1] ?? hex[2] ?? hex[3] ?? "", 16), hex[3]);
    }
    const unicode = /^([pP])\{(?:(?:(?:gc|General_Category)=)?([A-Z][a-z]?)|(?:sc|Script)=(\w+))\}/
      .exec(rest);
    if (unicode) {
      this.#at += unicode[0].length;
      return `\\${unicode[1]}{${unicode[2] ?? unicode[3]}}`;
    }
    const name = this.#next();
    if (name === "c") return this.#next().charCodeAt(0) % 32;
    if (isInClass && name === "b") return 8;
    return CLASSES[name] ?? CONTROLS[name] ??
      (/[\^$\\.*+?()[\]{}|/-]/.test(name) ? name.charCodeAt(0) : undefined);
  }

  /** Two escapes may be the halves of one character. */
  #paired(first: number, half: string | undefined): number {
    const next = /^\\u(d[c-f][0-9a-f]{2})/i.exec(this.#source.slice(this.#at));
    if (half === undefined || first < 0xd800 || first > 0xdbff || !next) return first;
    this.#at += next[0].length;
    return 0x10000 + (first - 0xd800) * 0x400 + Number.parseInt(next[1] ?? "", 16) - 0xdc00;
  }

  #repeated(atom: Piece): Piece | undefined {
    const { text, size, times: inner = 1 } = atom;
    const found = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})/.exec(this.#source.slice(this.#at));
    if (!found) return atom;
    const [whole, least, comma, most] = found;
    this.#at += whole.length;
    this.#take("?"); // what is matched does not matter, only that it is
    if (least === undefined) {
      this.variable++;
      return { text: `${text}${whole}`, size: size + 1, times: inner };
    }
    const written = Math.max(Number(least) + Number(comma === "," && most === ""), Number(most));
    const times = Math.max(1, written) * inner;
    if (times > MOST_REPEATED) return undefined;
    if (comma === "," && most !== least) this.variable++;
    return { text: `${text}${whole}`, size: (size + 1) * Math.max(1, written), times };
  }

  #peek(): string {
    return this.#source[this.#at] ?? "";
  }

  #next(): string {
    return this.#source[this.#at++] ?? "";
  }

  #point(): number {
    const point = this.#source.codePointAt(this.#at) ?? 0;
    this.#at += point > 0xffff ? 2 : 1;
    return point;
  }

  #take(wanted: string): boolean {
    const isThere = this.#peek() === wanted;
    if (isThere) this.#at++;
    return isThere;
  }
}

function piece(text: string): Piece {
  return { text, size: text.includes("p{") || text.includes("P{") ? UNICODE_CLASS : 1 };
}

function character(point: number): string {
  return `\\x{${point.toString(16)}}`;
}

function classOf(ranges: Ranges | string): string {
  return typeof ranges === "string"
    ? ranges
    : ranges.length === 0
    ? `[^${rangesText([[0, LAST]])}]`
    : `[${rangesText(ranges)}]`;
}

function rangesText(ranges: Ranges | string): string {
  if (typeof ranges === "string") return ranges;
  return ranges.map(([from, to]) => `${character(from)}-${character(to)}`).join("");
}

function allBut(ranges: Ranges): Ranges {
  const ends = [-1, ...ranges.flat(), LAST + 1];
  const left: [number, number][] = [];
  for (let at = 0; at < ends.length; at += 2) {
    const [from = 0, to = 0] = [ends[at], ends[at + 1]];
    if (from + 1 <= to - 1) left.push([from + 1, to - 1]);
  }
  return left;
}
