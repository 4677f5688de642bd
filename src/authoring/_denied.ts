/**
 * Finds names in a module's text that the sandbox denies when the module runs.
 *
 * @module
 */

import { placeAt, type TextPlace } from "../core/errors.ts";
import { DENIED } from "../sandbox/denied_names.ts";

/** A name that will be denied, the place where it first occurs, and what to use instead. */
export interface DeniedName extends TextPlace {
  readonly name: string;
  readonly instead: string;
}

/** The reason for each denied name, as a module writes it. */
const WHY: ReadonlyMap<string, string> = new Map([
  ...namesOf(DENIED.inDeno, "Deno."),
  ...namesOf(DENIED.global),
  ...["Deno.env", "process.env"].map((name) => [name, "use host.env, with an env grant"] as const),
]);
const NAMES = [
  String.raw`(?:Deno|process)\.\w+`,
  // A method or a tool may have this name, so only a certain call is matched.
  String.raw`fetch(?=\s*\()(?<=(?:\bawait|\breturn|=|=>|[([:?])\s*fetch)`,
  ...namesOf(DENIED.global).map(([name]) => String.raw`${name}(?<=\bnew\s+\w+)`),
].join("|");
/**
 * Matches comments and strings, because a name in them is not used. Each match reaches to the end of
 * the comment or string, so that no text is searched twice.
 */
const TOLD = new RegExp(
  [
    String.raw`\/\*[\s\S]*?(?:\*\/|$)|\/\/.*`,
    ...['"', "'"].map((quote) => String.raw`${quote}(?:\\.|[^${quote}\\\n])*${quote}?`),
    "`(?:\\\\[\\s\\S]|[^`\\\\])*[`\\\\]?",
  ].join("|"),
  "g",
);

/** Finds each denied name once. In doubt it reports nothing. */
export function findDenied(text: string): readonly DeniedName[] {
  const code = text.replace(TOLD, (match) => match.replace(/[^\n]/g, " "));
  const names = new Map<string, DeniedName | undefined>();
  for (const match of code.matchAll(new RegExp(String.raw`(?<![\w$.#])(?:${NAMES})\b`, "g"))) {
    const [name] = match;
    const why = WHY.get(name);
    if (why === undefined || names.has(name)) continue;
    const instead = why.replace(/^./, (first) => first.toUpperCase());
    const place = placeAt(text, match.index);
    names.set(name, isOwn(code, name) ? undefined : { name, instead, ...place });
  }
  return [...names.values()].filter((one) => one !== undefined);
}

/** Returns whether the module declares something with that name itself. */
function isOwn(code: string, name: string): boolean {
  const declared = String.raw`\b(?:function\s*\*?|class|const|let|var)\s*${name}\b`;
  const bound = String.raw`[(,{]\s*${name}\s*[:,=)}]`;
  return !name.includes(".") && new RegExp(`${declared}|${bound}`).test(code);
}

function namesOf(lists: Readonly<Record<string, string>>, before = "") {
  return Object.entries(lists).flatMap(([why, list]) =>
    list.split(" ").map((name) => [before + name, why] as const)
  );
}
