/**
 * Finds the literals of TypeScript: texts, numbers, true and false, outside of comments and of
 * regular expressions. It reads code, and runs none.
 *
 * @module
 */

import type { Json } from "../core/json.ts";

/** A literal of code. */
export interface Literal {
  readonly value: Json;
  readonly start: number;
  readonly end: number;
  /** Whether it is the name of a member in an object: `{"name": 1}`. */
  readonly isKey: boolean;
}

/** What was found in code. */
export interface CodeParts {
  readonly literals: readonly Literal[];
  /** The code with blanks in the place of texts, comments and regular expressions. */
  readonly bare: string;
}

const TOKEN = new RegExp(
  [
    String.raw`(?<comment>\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))`,
    String.raw`(?<text>"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*')`,
    String.raw`(?<tick>` + "`)",
    String
      .raw`(?<number>(?:0[xXoObB][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)n?)`,
    String.raw`(?<word>[\p{ID_Start}$_][\p{ID_Continue}$_\u200c\u200d]*)`,
    String.raw`(?<slash>\/)`,
    String.raw`(?<sign>[^\s])`,
  ].join("|"),
  "uy",
);
const REGULAR = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
/** After these words a slash begins a regular expression. */
const BEFORE_REGULAR = /^(?:return|typeof|case|in|of|do|else|void|delete|await|yield|throw|new)$/;

/** Finds the literals of code. */
export function codeParts(code: string): CodeParts {
  return new Scanner(code).parts();
}

class Scanner {
  readonly #code: string;
  readonly #literals: Literal[] = [];
  readonly #bare: string[];
  #at = 0;
  #before = "";

  constructor(code: string) {
    this.#code = code;
    this.#bare = [...code.split("")];
  }

  parts(): CodeParts {
    this.#scan(false);
    return { literals: this.#literals, bare: this.#bare.join("") };
  }

  /** Reads to the end, or within a template to the brace that ends its expression. */
  #scan(isInTemplate: boolean): void {
    const code = this.#code;
    for (let depth = 0; this.#at < code.length;) {
      const start = this.#at;
      if (/\s/.test(code[start] ?? "")) {
        this.#at++;
        continue;
      }
      TOKEN.lastIndex = start;
      const { 0: token = code[start] ?? "", groups = {} } = TOKEN.exec(code) ?? {};
      if (isInTemplate && token === "}" && depth === 0) return;
      depth += token === "{" ? 1 : token === "}" ? -1 : 0;
      this.#at = start + token.length;
      if (groups.comment !== undefined) {
        this.#blank(start, this.#at);
        continue;
      }
      if (groups.tick !== undefined) this.#template(start);
      else if (groups.slash !== undefined) this.#slash(start);
      else this.#token(start, { token, groups });
      this.#before = groups.tick === undefined ? token : "`";
    }
  }

  #token(
    start: number,
    { token, groups }: {
      readonly token: string;
      readonly groups: Readonly<Record<string, string | undefined>>;
    },
  ): void {
    if (groups.text !== undefined) {
      this.#blank(start, this.#at);
      this.#add(start, unescaped(token.slice(1, -1)));
    } else if (groups.number !== undefined && !token.endsWith("n")) {
      const value = Number(token.replaceAll("_", ""));
      const isMember = this.#before === ".";
      if (Number.isFinite(value) && !isMember) this.#add(start, value);
    } else if ((token === "true" || token === "false") && this.#before !== ".") {
      this.#add(start, token === "true");
    }
  }

  #template(start: number): void {
    const code = this.#code;
    const isTagged = /[\w$)\]]$/.test(this.#before) && !BEFORE_REGULAR.test(this.#before);
    let isWhole = true;
    let from = start;
    while (this.#at < code.length && code[this.#at] !== "`") {
      if (code[this.#at] === "\\") this.#at += 2;
      else if (code.startsWith("${", this.#at)) {
        isWhole = false;
        this.#blank(from, this.#at);
        this.#at += 2;
        this.#before = "{";
        this.#scan(true);
        from = ++this.#at;
      } else this.#at++;
    }
    this.#at = Math.min(this.#at + 1, code.length);
    this.#blank(from, this.#at);
    if (isWhole && !isTagged) this.#add(start, unescaped(code.slice(start + 1, this.#at - 1)));
  }

  #slash(start: number): void {
    const isDivision = /[\w$)\]}"'`]$/.test(this.#before) && !BEFORE_REGULAR.test(this.#before);
    if (isDivision) return;
    REGULAR.lastIndex = start;
    const found = REGULAR.exec(this.#code);
    if (found === null) return;
    this.#at = start + found[0].length;
    this.#blank(start, this.#at);
  }

  #add(start: number, value: Json | undefined): void {
    if (value === undefined) return;
    const isKey = /^[{,]$/.test(this.#before) && /^\s*:/.test(this.#code.slice(this.#at));
    this.#literals.push({ value, start, end: this.#at, isKey });
  }

  #blank(start: number, end: number): void {
    for (let at = start; at < end; at++) this.#bare[at] = this.#code[at] === "\n" ? "\n" : " ";
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  b: "\b",
  f: "\f",
  v: "\v",
  "0": "\0",
  "\n": "",
};

function unescaped(text: string): string {
  return text.replace(
    /\\(?:u\{([\da-fA-F]{1,6})\}|u([\da-fA-F]{4})|x([\da-fA-F]{2})|([\s\S]))/g,
    (whole, long?: string, short?: string, byte?: string, one?: string) => {
      if (one !== undefined) return ESCAPES[one] ?? one;
      const point = Number.parseInt(long ?? short ?? byte ?? "", 16);
      return point <= 0x10_ffff ? String.fromCodePoint(point) : whole;
    },
  );
}
