/**
 * Finds names in a module's text that the sandbox denies when the module runs.
 *
 * @module
 */

import { placeAt, type TextPlace } from "../core/errors.ts";
import { DENIED } from "../sandbox/denied_names.ts";

/** A name that the sandbox denies, the place where it first occurs, and the alternative. */
export interface DeniedName extends TextPlace {
  readonly name: string;
  readonly instead: string;
}

/** The alternative to each denied name. The names are written as in a module: `Deno.run`. */
const ALTERNATIVES: ReadonlyMap<string, string> = new Map([
  ...namesOf(DENIED.inDeno, "Deno."),
  ...namesOf(DENIED.global),
  ...["Deno.env", "process.env"].map((name) => [name, "use host.env, with an env grant"] as const),
]);
const NAMES = [
  String.raw`(?:Deno|process)\.\w+`,
  // A method or a tool may also be named "fetch", so only calls of the global function are matched.
  String.raw`fetch(?=\s*\()(?<=(?:\bawait|\breturn|=|=>|[([:?])\s*fetch)`,
  ...namesOf(DENIED.global).map(([name]) => String.raw`${name}(?<=\bnew\s+\w+)`),
].join("|");
/**
 * Matches comments and strings, because a name in them is not used. Each match reaches to the end
 * of the comment or string, so that no text is searched twice.
 */
const COMMENTS_AND_STRINGS = new RegExp(
  [
    String.raw`\/\*[\s\S]*?(?:\*\/|$)|\/\/.*`,
    ...['"', "'"].map((quote) => String.raw`${quote}(?:\\.|[^${quote}\\\n])*${quote}?`),
    "`(?:\\\\[\\s\\S]|[^`\\\\])*[`\\\\]?",
  ].join("|"),
  "g",
);

/** Finds each denied name once. Leaves out a name that the module declares itself. */
export function findDenied(text: string): readonly DeniedName[] {
  const code = text.replace(COMMENTS_AND_STRINGS, (match) => match.replace(/[^\n]/g, " "));
  const names = new Map<string, DeniedName | undefined>();
  for (const match of code.matchAll(new RegExp(String.raw`(?<![\w$.#])(?:${NAMES})\b`, "g"))) {
    const [name] = match;
    const alternative = ALTERNATIVES.get(name);
    if (alternative === undefined || names.has(name)) continue;
    const instead = alternative.replace(/^./, (first) => first.toUpperCase());
    const place = placeAt(text, match.index);
    names.set(name, isDeclaredHere(code, name) ? undefined : { name, instead, ...place });
  }
  return [...names.values()].filter((one) => one !== undefined);
}

/** Returns whether the module declares something with that name itself. */
function isDeclaredHere(code: string, name: string): boolean {
  const declared = String.raw`\b(?:function\s*\*?|class|const|let|var)\s*${name}\b`;
  const bound = String.raw`[(,{]\s*${name}\s*[:,=)}]`;
  return !name.includes(".") && new RegExp(`${declared}|${bound}`).test(code);
}

function namesOf(lists: Readonly<Record<string, string>>, before = "") {
  return Object.entries(lists).flatMap(([why, list]) =>
    list.split(" ").map((name) => [before + name, why] as const)
  );
}
