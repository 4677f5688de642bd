/**
 * Finds what a module's text names and the sandbox denies when it runs.
 *
 * @module
 */

import { lineAt } from "../modules/imports.ts";
import { DENIED } from "../sandbox/denied_names.ts";

/** Something that will be denied, where it is first named, and what to use. */
export interface DeniedName {
  readonly name: string;
  readonly line: number;
  readonly instead: string;
}

/** Why each name is denied, by the name as a module writes it. */
const WHY: ReadonlyMap<string, string> = new Map([
  ...namesOf(DENIED.inDeno, "Deno."),
  ...namesOf(DENIED.global),
  ...["Deno.env", "process.env"].map((name) => [name, "use host.env, with an env grant"] as const),
]);
const NAMES = [
  String.raw`(?:Deno|process)\.\w+`,
  // A method or a tool may bear the name: only what is surely a call is one.
  String.raw`fetch(?=\s*\()(?<=(?:\bawait|\breturn|=|=>|[([:?])\s*fetch)`,
  ...namesOf(DENIED.global).map(([name]) => String.raw`${name}(?<=\bnew\s+\w+)`),
].join("|");
/**
 * Comments and texts, in which a name is only told. Each matches to the end of what it has begun, so
 * that no text is looked through twice.
 */
const TOLD = new RegExp(
  [
    String.raw`\/\*[\s\S]*?(?:\*\/|$)|\/\/.*`,
    ...['"', "'"].map((quote) => String.raw`${quote}(?:\\.|[^${quote}\\\n])*${quote}?`),
    "`(?:\\\\[\\s\\S]|[^`\\\\])*[`\\\\]?",
  ].join("|"),
  "g",
);

/** Finds each denied name once. It stays silent rather than tell of what only looks like one. */
export function findDenied(text: string): readonly DeniedName[] {
  const code = text.replace(TOLD, (told) => told.replace(/[^\n]/g, " "));
  const found = new Map<string, DeniedName | undefined>();
  for (const match of code.matchAll(new RegExp(String.raw`(?<![\w$.#])(?:${NAMES})\b`, "g"))) {
    const [name] = match;
    const why = WHY.get(name);
    if (why === undefined || found.has(name)) continue;
    const instead = why.replace(/^./, (first) => first.toUpperCase());
    const line = lineAt(text, match.index);
    found.set(name, isOwn(code, name) ? undefined : { name, line, instead });
  }
  return [...found.values()].filter((one) => one !== undefined);
}

/** A module may have something of its own of that name. */
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
