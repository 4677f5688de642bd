/**
 * Finds the expression that ends code. Its value is the result if the code returns no value. The
 * search has no parser: it tries each position where a statement may begin, and lets the engine
 * compile the parts. The code does not run.
 *
 * @module
 */

/** Returns whether a text is a valid body of an async function. */
export type Compiles = (body: string) => boolean;

/** A part of a text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** The time limit of the search, in milliseconds. */
const SEARCH_MS = 250;
// Each alternative has its own beginning and one possible end, so matching takes linear time.
const SPACE = String.raw`\s|//[^\n]*(?:\n|$)|/\*(?:[^*]|\*(?!/))*\*/`;
const LEADING = new RegExp(`^(?:${SPACE})*`);
const ONLY_SPACE = new RegExp(`^(?:${SPACE}|;)*$`);
/** Matches text that is a declaration as a statement, but an expression elsewhere. */
const DECLARATION = /^(?:async\s+function|function|class)\b/;

/** Returns the position of the expression that ends the code; undefined if a statement ends it. */
export function lastExpression(code: string, compiles: Compiles): Span | undefined {
  // A part of invalid code could look like an expression.
  if (!compiles(code)) return undefined;
  const until = performance.now() + SEARCH_MS;
  for (let start = code.length - 1; start >= 0; start--) {
    if (start > 0 && !"\n;}".includes(code[start - 1] ?? "")) continue;
    if (performance.now() > until) return undefined;
    const end = expressionEnd(code, start, compiles);
    if (end !== undefined && isBoundary(code, start, compiles)) return { start, end };
  }
  return undefined;
}

/** Returns the end of the expression that begins at `start`, if no code follows it. */
function expressionEnd(code: string, start: number, compiles: Compiles): number | undefined {
  const text = code.slice(start);
  if (DECLARATION.test(text.replace(LEADING, ""))) return undefined;
  const isExpression = (end: number) => compiles(`(${text.slice(0, end)}\n)`);
  if (isExpression(text.length)) return code.length;
  for (let at = text.lastIndexOf(";"); at > 0; at = text.lastIndexOf(";", at - 1)) {
    if (ONLY_SPACE.test(text.slice(at + 1)) && isExpression(at)) return start + at;
  }
  return undefined;
}

/** Returns whether one statement ends and another begins at `start`. */
function isBoundary(code: string, start: number, compiles: Compiles): boolean {
  const before = code.slice(0, start);
  if (start === 0) return true;
  if (!compiles(before)) return false;
  const core = withoutSpace(before, compiles);
  if (core === undefined) return false;
  // A name can follow on the same line only if a semicolon or a block has ended the statement.
  if (core === "" || compiles(`${core} $`)) return true;
  // A line break ends a statement only if the next line cannot continue it.
  return before.slice(core.length).includes("\n") && !compiles(`${core} ${code.slice(start)}`);
}

/** Returns a text without trailing space and comments; undefined if it ends in a comment. */
function withoutSpace(text: string, compiles: Compiles): string | undefined {
  let isLine = !/\n\s*$/.test(text);
  for (let core = text.trimEnd();; isLine = false) {
    const from = core.endsWith("*/") ? core.lastIndexOf("/*") : lineComment(core, compiles);
    if (from < 0 || !compiles(core.slice(0, from))) return core;
    if (isLine && !core.endsWith("*/")) return undefined;
    core = core.slice(0, from).trimEnd();
  }
}

/** Returns where a line comment begins in the last line; -1 if there is none. */
function lineComment(text: string, compiles: Compiles): number {
  let at = text.indexOf("//", text.lastIndexOf("\n") + 1);
  // If `//` is inside a string, the text before it has an open string.
  while (at >= 0 && !compiles(text.slice(0, at))) at = text.indexOf("//", at + 1);
  return at;
}
