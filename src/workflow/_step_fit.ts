/**
 * Compares the main word of a step, usually its verb, with the words of a tool.
 *
 * @module
 */

import { memoized } from "../core/memo.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { runsOf, stem, termsOf } from "../search/terms.ts";

/** How well a tool matches the main word of a step. */
export type MainWordFit = "name" | "description" | "none";

/** Words before the main word, which say nothing about a tool. */
const FILLERS = new Set(
  ("please can could you me us we i the a an to now just then also first next finally want need " +
    "would like let lets help give tell show what which when where who why how is are was were do " +
    "does did has have had there if it its this that in on at of for from all some any my our your")
    .split(" "),
);
/** For verbs of users, the verbs that tools use instead. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  change: ["edit", "update", "replace"],
  compare: ["diff"],
  display: ["read", "list", "get", "show"],
  download: ["fetch", "get"],
  drop: ["delete", "remove"],
  erase: ["delete", "remove"],
  find: ["search", "find"],
  forget: ["delete", "remove"],
  get: ["read", "fetch", "get"],
  look: ["search", "find", "get"],
  make: ["create", "write", "add"],
  mkdir: ["create", "directory"],
  modify: ["edit", "update"],
  new: ["create"],
  open: ["read", "open"],
  preview: ["edit"],
  put: ["write", "store", "put"],
  remember: ["create", "add", "store"],
  remove: ["delete"],
  rename: ["move"],
  replace: ["edit"],
  save: ["write", "store"],
  stage: ["add"],
  store: ["write"],
  switch: ["checkout"],
  unstage: ["reset"],
  update: ["edit"],
};
/** Words after which a step means something that its arguments cannot express. */
const LIMITING = /\b(?:not|never|without|except|but|unless|don't|do not|leave out|instead of)\b/i;

/** The part of a description that is compared, in characters. */
const LOOKED_AT = 2_000;

interface ToolWords {
  readonly name: ReadonlySet<string>;
  readonly description: ReadonlySet<string>;
}

const wordsOf = memoized((tool: ToolDefinition): ToolWords => ({
  name: new Set(runsOf(tool.name.replace(/_|(?<=[a-z0-9])(?=[A-Z])/g, " ")).map(lower)),
  description: new Set(runsOf((tool.description ?? "").slice(0, LOOKED_AT)).map(lower)),
}));

/** Returns the main word of a step, in lower case; undefined if it has none. */
export function mainWord(text: string): string | undefined {
  return runsOf(text).map(lower).find((word) => !FILLERS.has(word) && !/^\d+$/.test(word));
}

/** Returns the place where a tool has a word, one of its forms, or a synonym. */
export function fitOf(word: string, tool: ToolDefinition): MainWordFit {
  const { name, description } = wordsOf(tool);
  const own = [word, ...SYNONYMS[word] ?? []];
  if (own.some((each) => isIn(each, name))) return "name";
  // A description contains many words by chance, so only the word itself counts there.
  return isIn(word, description) ? "description" : "none";
}

/** Returns the number of words in the name of a tool that a step does not contain. */
export function otherWords({ name }: ToolDefinition, query: string): number {
  const terms = new Set(termsOf(query));
  return termsOf(name).filter((term) => !terms.has(term)).length;
}

/** Returns whether a step excludes something. */
export function isLimited(text: string): boolean {
  return LIMITING.test(text);
}

/** A participle such as "unstaged" does not match its verb: it names a state. */
function isIn(word: string, words: ReadonlySet<string>): boolean {
  if (words.has(word) || words.has(`${word}s`) || words.has(`${word}es`)) return true;
  if (word.endsWith("s") && words.has(word.slice(0, -1))) return true;
  const root = stem(word);
  return [...words].some((each) => !each.endsWith("ed") && stem(each) === root);
}

function lower(text: string): string {
  return text.toLowerCase();
}
