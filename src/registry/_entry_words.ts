/**
 * What may stand in a registry entry: names, values and texts that mean nothing else to a program, a
 * loader, a terminal or a person who reads them.
 *
 * @module
 */

import { isObject } from "../core/json.ts";
import { isSteering } from "../core/steering.ts";

/** How many of one kind an entry may hold, and lines of warnings. */
export const MOST = { tools: 1_000, texts: 100, lines: 20 };
const LONGEST = { text: 2_000, line: 300 };

const CONTROL = /\p{Cc}/u;
/** What is not seen, or changes what else is seen. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]+/gu;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const REFERENCE = /\$\{([A-Za-z_]\w*)(?::-[^}]*)?\}/g;
/** Headers that say how a request is carried, or that are PML's to send. */
const CARRYING =
  /^(?:host|connection|keep-alive|te|trailer|upgrade|expect|transfer-encoding|proxy-.*|content-.*|accept|accept-encoding|mcp-.*|x-pml-.*)$/i;
const HEADER = /^[\w!#$%&'*+.^`|~-]{1,128}$/;
const PROGRAM = /^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}$/;
/** What Windows runs through its shell, and shells themselves: arguments would become commands. */
const SHELL =
  /(?:\.(?:bat|cmd|com|ps1|vbs|vbe|js|jse|wsf|msc|lnk|scr|sh)|^(?:(?:ba|z|da|fi|k|c|tc|a)?sh|cmd|powershell|pwsh|env|sudo|doas|su|xargs|eval|exec)(?:\.exe)?)$/i;

/** Gives a text in one line, without what is not seen, and bounded. */
export function shownText(text: string | undefined, max = LONGEST.text): string | undefined {
  return text?.slice(0, max).replace(UNSEEN, " ").trim().toWellFormed();
}

/** Tells whether a text has no control character, and is not too long. */
export function isPlain(text: string): boolean {
  return text.length <= LONGEST.text && !CONTROL.test(text);
}

/** Tells whether a server may ask for a variable, or set it. */
export function isVariable(name: string): boolean {
  return VARIABLE.test(name) && !isSteering(name);
}

/** Tells whether a server may have a header of this name sent. */
export function isHeader(name: string): boolean {
  return HEADER.test(name) && !CARRYING.test(name);
}

/** Tells whether a value can be filled in, by variables that may be asked for. */
export function isTemplate(value: unknown): boolean {
  return typeof value === "string" && isPlain(value) && referencesOf(value).every(isVariable) &&
    !value.replace(REFERENCE, "").includes("${");
}

/** Gives the names of the variables that a value is filled in with. */
export function referencesOf(value: string): readonly string[] {
  return [...value.matchAll(REFERENCE)].map(([, name = ""]) => name);
}

/** Gives the names of the variables without a default in a value. */
export function neededIn(value: string): readonly string[] {
  return [...value.matchAll(REFERENCE)].filter(([text]) => !text.includes(":-"))
    .map(([, name = ""]) => name);
}

/** Gives each name once, in order. */
export function sorted(names: readonly string[]): readonly string[] {
  return [...new Set(names)].sort();
}

/** Tells whether a value can be hashed and walked: not too deep, numbers and texts as JSON has them. */
export function isSound(value: unknown, depth: number): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 &&
    Object.entries(value).every(([key, inner]) => key.isWellFormed() && isSound(inner, depth - 1));
}

/** Gives lines of whatever form the warnings have. */
export function warningsOf(said: unknown): readonly string[] {
  const word = (value: unknown) => typeof value === "string" ? value : JSON.stringify(value) ?? "";
  const listed = (value: unknown) =>
    Array.isArray(value) ? value.map(word).join(", ") : word(value);
  const lines = isObject(said)
    ? Object.entries(said).filter(([, value]) => value !== false && value !== null)
      .map(([key, value]) => {
        const about = key.replaceAll("_", " ");
        return value === true ? about : `${about}: ${listed(value)}`;
      })
    : Array.isArray(said)
    ? said.map(listed)
    : [word(said)];
  const shown = lines.map((line) => shownText(line, LONGEST.line) ?? "").filter((line) =>
    line !== ""
  );
  if (shown.length <= MOST.lines) return shown;
  return [...shown.slice(0, MOST.lines), `and ${shown.length - MOST.lines} more`];
}

/** Tells whether a text is the name of a program that is no shell. */
export function isProgram(name: string): boolean {
  return PROGRAM.test(name) && !SHELL.test(name);
}
