/**
 * Reads a `.env` file: `NAME=value`, one on each line.
 *
 * `export` may precede the name. A value in single quotes is used unchanged; in double quotes
 * `\n`, `\r`, `\t`, `\\`, `\"` and `\$` have their usual meaning; both may have several lines. A
 * value without quotes ends at the end of its line, or at a space and `#`. No variables are
 * replaced: a value that contains `${` counts as unset, as in the environment. If a name occurs
 * twice, its last value is used.
 *
 * @module
 */

/** The values of a `.env` file, and the lines that could not be read. */
export interface Dotenv {
  readonly values: ReadonlyMap<string, string>;
  /** The numbers of the lines that are neither blank, nor a comment, nor a value. */
  readonly invalid: readonly number[];
}

const HEAD = /[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*/y;
const NOTHING = /[ \t]*(?:#[^\n]*)?(?:\r?\n|$)/y;
const PLAIN = /[^\n]*/y;
const QUOTED: Readonly<Record<string, RegExp>> = {
  "'": /'([^']*)'/y,
  '"': /"((?:[^"\\]|\\[^])*)"/y,
};
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };

/** Parses the text of a `.env` file. */
export function parseDotenv(text: string): Dotenv {
  const values = new Map<string, string>();
  const invalidLines: number[] = [];
  let at = text.startsWith("\uFEFF") ? 1 : 0;
  let [line, counted] = [1, 0];
  const take = (pattern: RegExp) => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match !== null) at = pattern.lastIndex;
    return match;
  };
  while (at < text.length) {
    const begin = at;
    if (take(NOTHING) !== null) continue;
    const name = take(HEAD)?.[1];
    const quote = text[at] ?? "";
    const quotedPattern = QUOTED[quote];
    const value = quotedPattern === undefined
      ? unquotedValue(take(PLAIN)?.[0] ?? "")
      : take(quotedPattern)?.[1];
    if (name !== undefined && value !== undefined && take(NOTHING) !== null) {
      values.set(name, quote === '"' ? decodeEscapes(value) : value);
      continue;
    }
    line += text.slice(counted, begin).split("\n").length - 1;
    counted = begin;
    invalidLines.push(line);
    // If a quote has no end, the rest of the file cannot be parsed.
    if (name !== undefined && value === undefined) break;
    at = begin;
    take(PLAIN);
    at += 1;
  }
  return { values, invalid: invalidLines };
}

function unquotedValue(rest: string): string {
  return (rest.split(/(?:^|[ \t])#/, 1)[0] ?? "").trim();
}

function decodeEscapes(value: string): string {
  return value.replace(
    /\\([nrt\\"$])/g,
    (_, character: string) => ESCAPES[character] ?? character,
  );
}
