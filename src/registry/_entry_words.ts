/**
 * Checks the names, values and texts of a registry entry: none may have a special meaning for a
 * program, a loader, a terminal or a reader.
 *
 * @module
 */

import { isJsonNumber, numberOf } from "../core/exact_number.ts";
import { PmlError } from "../core/errors.ts";
import { isObject, quoted } from "../core/json.ts";
import { isSteering } from "../core/steering.ts";

/** The maximum number of tools, of texts of one list, and of warning lines of an entry. */
export const MOST = { tools: 1_000, texts: 100, lines: 20 };
const LONGEST = { text: 2_000, line: 300 };

const CONTROL = /\p{Cc}/u;
/** Characters that are invisible or change how other characters are shown. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]+/gu;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const REFERENCE = /\$\{([A-Za-z_]\w*)(?::-[^}]*)?\}/g;

/** Returns a text on one line, without invisible characters, truncated to `max` characters. */
export function shownText(text: string | undefined, max = LONGEST.text): string | undefined {
  return text?.slice(0, max).replace(INVISIBLE, " ").trim().toWellFormed();
}

/** Returns whether a text has no control characters and is not too long. */
export function isPlain(text: string): boolean {
  return text.length <= LONGEST.text && !CONTROL.test(text);
}

/** Returns whether a server may require or set a variable. */
export function isVariable(name: string): boolean {
  return VARIABLE.test(name) && !isSteering(name);
}

/** Returns whether a value is valid: it may refer only to variables that a server may require. */
export function isTemplate(value: unknown): boolean {
  return typeof value === "string" && isPlain(value) && referencesOf(value).every(isVariable) &&
    !value.replace(REFERENCE, "").includes("${");
}

/** Returns the names of the variables that a value refers to. */
export function referencesOf(value: string): readonly string[] {
  return [...value.matchAll(REFERENCE)].map(([, name = ""]) => name);
}

/** Returns the names of the variables in a value that have no default. */
export function requiredVariablesIn(value: string): readonly string[] {
  return [...value.matchAll(REFERENCE)].filter(([text]) => !text.includes(":-"))
    .map(([, name = ""]) => name);
}

/** Returns the names sorted, each once. */
export function sortedNames(names: readonly string[]): readonly string[] {
  return [...new Set(names)].sort();
}

/**
 * Returns whether a value can be hashed and traversed: not too deep, with valid numbers and texts
 * only.
 */
export function isSound(value: unknown, depth: number): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (isJsonNumber(value)) return Number.isFinite(numberOf(value));
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 &&
    Object.entries(value).every(([key, inner]) => key.isWellFormed() && isSound(inner, depth - 1));
}

/** Returns the warnings of an entry as lines. They may be an object, a list or a single value. */
export function entryWarnings(warnings: unknown): readonly string[] {
  const word = (value: unknown) => typeof value === "string" ? value : JSON.stringify(value) ?? "";
  const listed = (value: unknown) =>
    Array.isArray(value) ? value.map(word).join(", ") : word(value);
  const lines = isObject(warnings)
    ? Object.entries(warnings).filter(([, value]) => value !== false && value !== null)
      .map(([key, value]) => {
        const about = key.replaceAll("_", " ");
        return value === true ? about : `${about}: ${listed(value)}`;
      })
    : Array.isArray(warnings)
    ? warnings.map(listed)
    : [word(warnings)];
  const texts = lines.map((line) => shownText(line, LONGEST.line) ?? "").filter((line) =>
    line !== ""
  );
  if (texts.length <= MOST.lines) return texts;
  return [...texts.slice(0, MOST.lines), `and ${texts.length - MOST.lines} more`];
}

/** An invalid entry and the reason. */
export interface BadEntry {
  readonly name: string;
  /** The URL of its registry. */
  readonly url: string;
  readonly why: string;
  readonly hint?: string;
}

/** Creates the error for an invalid entry. */
export function badEntryError(
  { name, url, why, hint = "Report it to the registry's owner; PML did not use the entry" }:
    BadEntry,
): PmlError {
  const message = `Cannot use the entry ${quoted(name)} of ${quoted(url, 200)}: ${why}`;
  return new PmlError("REGISTRY_BAD_RESPONSE", message, { hint });
}
