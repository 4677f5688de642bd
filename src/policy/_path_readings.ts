/**
 * Computes the paths that a server may expand a path to: variables, percent codes, braces,
 * backslashes, quotes, other forms of letters. A server may do all of these expansions or none.
 *
 * @module
 */

import { type PathRules, PATHS, POSIX } from "../core/paths.ts";

/**
 * Returns the values that a variable may have for a server: undefined if PML does not set it, and
 * an empty list if PML sets it but does not know its value yet.
 */
export type PathVariables = (name: string) => readonly string[] | undefined;

/** The paths that a text may be expanded to. */
export interface PathReadings {
  /** The path as written, and its possible expansions. */
  readonly texts: readonly string[];
  /** Whether the list is complete. */
  readonly isCertain: boolean;
}

/**
 * The maximum number of expansions of one path. If there are more, the meaning of the path is not
 * certain.
 */
const READINGS_MAX = 24;
/** The longest expansion in characters. */
const TEXT_MAX = 4_096;
/** Parts of a path whose meaning PML does not know. */
const UNDECIDABLE: readonly RegExp[] = [
  // Commands and their separators.
  /`|\$\(|[;|<>]|&(?=.*\s|\{)/,
  // Unusual forms of variables, and quoted texts with escapes.
  /\$env:|\$0|\$['"]|\{env[:.]|\{\{/i,
  /\{[A-Z_][A-Z\d_]*\}|![A-Z_][A-Z\d_]*!/,
  // Character codes.
  /\\x[\da-f]{2}|\\u[\da-f{]|\\[0-7]{3}|%u[\da-f]{4}/i,
  // Ranges and patterns with parentheses.
  /\{[^{},]*\.\.[^{},]*\}|[@+!?*]\(/,
  // Options, and file names from which tools read arguments.
  /^\s*[@|-]/,
];
const VARIABLE = /\$(?:([a-z_]\w*)|\{(\w+)\}|[\d@*#?$!-])/gi;
const BRACED = /\$\{(?!\w+\})/;
const PERCENT_VARIABLE = /%([a-z_][^%/\\]*)%/gi;
const PERCENT_CODES = /(?:%[\da-f]{2})+/gi;
/** The usual form of an environment variable's name. */
const ENVIRONMENT = /^[A-Z_][A-Z\d_]*$/;
/** Variables for folders that some shells define themselves. */
const SHELL_FOLDER = /^(?:home|pwd|cwd|pshome|psscriptroot)$/i;
/** Characters that look like `/` and that no Unicode normalization converts to `/`. */
const SLASHES = /[\u2044\u2215\u29f8\u2571]/g;
/** Invisible characters. Some servers remove them. */
const UNSEEN = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;
/** A part of a path that a shell may expand to `..`. */
const DOT_PATTERN = /(?<=^|\/)\.[^/]*[*?[][^/]*(?=\/|$)/g;

/** Returns the possible meanings of a path for a server with these variables, on a system. */
export function readingsOf(
  text: string,
  variables: PathVariables,
  rules: PathRules = PATHS,
): PathReadings {
  // On Windows a backslash is a separator and does not escape the next character.
  const plain = (each: string) => rules === POSIX ? each : each.replaceAll("\\", "/");
  const readings = new Set([plain(text)]);
  let isCertain = true;
  // The loop also visits the expansions that it adds to the set.
  for (const each of readings) {
    isCertain &&= isDecidable(each, variables);
    for (const next of expansionsOf(each, variables).map(plain)) {
      if (readings.has(next)) continue;
      if (readings.size >= READINGS_MAX || next.length > TEXT_MAX) isCertain = false;
      else readings.add(next);
    }
  }
  return { texts: [...readings], isCertain };
}

function isDecidable(text: string, variables: PathVariables): boolean {
  if (BRACED.test(text) || UNDECIDABLE.some((form) => form.test(text))) return false;
  if (text.matchAll(PERCENT_CODES).some(([codes]) => tryDecode(codes) === undefined)) return false;
  const isKnown = ([, plain, braced]: RegExpExecArray) => {
    const name = plain ?? braced;
    if (name === undefined) return true;
    const values = valuesOf(name, variables);
    // Names such as `$id` are usual in file names and are not environment variables.
    return values === undefined
      ? braced === undefined && !ENVIRONMENT.test(name) && !SHELL_FOLDER.test(name)
      : values.length > 0;
  };
  const isKnownPercent = ([, name = ""]: RegExpExecArray) =>
    /^[\da-f]{2}$/i.test(name) || (valuesOf(name, variables)?.length ?? 0) > 0;
  return text.matchAll(VARIABLE).every(isKnown) &&
    text.matchAll(PERCENT_VARIABLE).every(isKnownPercent);
}

function* expansionsOf(text: string, variables: PathVariables): Generator<string> {
  yield* withValues(text, variables);
  yield text.replace(PERCENT_CODES, decodeCodes);
  yield text.replaceAll("\\", "/");
  // In shells and file name patterns, a backslash escapes the next character.
  yield text.replace(/\\(.)/gu, "$1");
  yield text.replace(/['"()]/g, "");
  yield text.trim();
  yield text.replace(UNSEEN, "").normalize("NFKC").replace(SLASHES, "/");
  yield text.replace(DOT_PATTERN, "..");
  yield* alternativesOf(text);
}

/**
 * Returns the text with each variable replaced by its first value, then with each replaced by its
 * second value. A variable has at most two; see `pathVariables()`.
 */
function withValues(text: string, variables: PathVariables): readonly string[] {
  const fill = (valueIndex: number) => {
    const value = (name: string | undefined) => {
      const values = name === undefined ? undefined : valuesOf(name, variables);
      return values?.[Math.min(valueIndex, values.length - 1)];
    };
    return text
      .replace(VARIABLE, (_, plain, braced) => value(plain ?? braced) ?? "")
      .replace(PERCENT_VARIABLE, (whole, name) => value(name) ?? whole);
  };
  return [fill(0), fill(1)];
}

function valuesOf(name: string, variables: PathVariables): readonly string[] | undefined {
  // Windows and PowerShell ignore the case of names.
  return variables(name) ?? variables(name.toUpperCase());
}

function decodeCodes(codes: string): string {
  // Invalid UTF-8 bytes may occur between ASCII bytes.
  return tryDecode(codes) ??
    codes.replace(/%[0-7][\da-f]/gi, (code) => decodeURIComponent(code));
}

/** Decodes percent codes; undefined if their bytes are not UTF-8. */
function tryDecode(codes: string): string | undefined {
  try {
    return decodeURIComponent(codes);
  } catch {
    return undefined;
  }
}

/** Expands the first braces that contain alternatives. */
function alternativesOf(text: string): readonly string[] {
  for (let start = text.indexOf("{"); start >= 0; start = text.indexOf("{", start + 1)) {
    const parts = partsFrom(text, start);
    if (parts === undefined || parts.texts.length < 2) continue;
    const [head, tail] = [text.slice(0, start), text.slice(parts.end)];
    return parts.texts.map((part) => head + part + tail);
  }
  return [];
}

/** Returns the parts between braces at a position, and their end; undefined if none. */
function partsFrom(
  text: string,
  start: number,
): { readonly texts: readonly string[]; readonly end: number } | undefined {
  const texts: string[] = [];
  let [depth, from] = [0, start + 1];
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (character === "{") depth++;
    else if (character === "}") depth--;
    const isEnd = depth === 0;
    if (!isEnd && !(character === "," && depth === 1)) continue;
    texts.push(text.slice(from, at));
    from = at + 1;
    if (isEnd) return { texts, end: from };
  }
  return undefined;
}
