/**
 * Compares the main word of a step, usually its verb, with the words of a tool.
 *
 * @module
 */

import { type JsonObject, objectOf } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { SearchHit } from "../search/search.ts";
import { runsOf, stem, termsOf } from "../search/terms.ts";
import type { IntentStep } from "./_steps.ts";

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
  find: ["search"],
  forget: ["delete", "remove"],
  get: ["read", "fetch"],
  look: ["search", "find", "get"],
  make: ["create", "write", "add"],
  mkdir: ["create", "directory"],
  modify: ["edit", "update"],
  new: ["create"],
  open: ["read"],
  preview: ["edit"],
  put: ["write", "store"],
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
const LIMITING =
  /\b(?:not|never|without|except|but|unless|don't|do not|leave out|instead of|if|only|avoid|stop|skip|besides|other than|apart from|exclud(?:e|es|ing)|every|each)\b/i;
/** Words between the values of a step, and nouns of values that tools name in many ways. */
const LINKS = new Set(
  "with by as into than and or called named using file files folder directory text word"
    .split(" "),
);
/** The words of a request around its action. Questions, such as "how do I …", have others. */
const POLITE = new Set(
  ("please can could you me us we i the a an to now just then also first next finally want need " +
    "would like lets this that in on at of for from my our your").split(" "),
);
/** Words of names of arguments, and the words before a value that contradict them. */
const OPPOSED = [
  {
    names: ["to", "recipient", "recipients", "destination", "target"],
    before: /\b(?:from|of|by)$/i,
  },
  { names: ["from", "sender", "source", "origin"], before: /\b(?:to|into|for)$/i },
];
/** A word before a value that is not the last one, and one before a value that is not the first. */
const BEFORE = { notLast: /\b(?:to|into|in|as|with|by)$/i, notFirst: /\b(?:from|of|in)$/i };

/** The part of a description that is compared, in characters. */
const LOOKED_AT = 2_000;
/** The maximum number of arguments whose names are compared. */
const ARGUMENTS_MAX = 100;

interface ToolWords {
  readonly name: ReadonlySet<string>;
  readonly description: ReadonlySet<string>;
  /** The words of the name, of the first sentence of the description, and of the arguments. */
  readonly beginning: ReadonlySet<string>;
}

const wordsOf = memoized((tool: ToolDefinition): ToolWords => {
  const name = wordsIn(tool.name);
  const description = (tool.description ?? "").slice(0, LOOKED_AT);
  const names = Object.keys(objectOf(tool.inputSchema.properties)).slice(0, ARGUMENTS_MAX);
  const [first = ""] = description.split(/[.\n]/, 1);
  const own = [...name, ...runsOf(first).map(lower), ...names.flatMap(wordsIn)];
  return {
    name: new Set(name),
    description: new Set(runsOf(description).map(lower)),
    beginning: new Set(own),
  };
});

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

/**
 * Returns whether a tool that may change something has all words of a step that are not its values:
 * "write "x" to a.txt twice" says more than a call can.
 */
export function isExplained(
  { text, literals }: IntentStep,
  { tool, server }: Pick<SearchHit, "tool" | "server">,
  args: JsonObject,
): boolean {
  if (tool.annotations?.readOnlyHint === true) return true;
  const words = Object.values(args).filter((value) => typeof value === "string");
  const values = [...literals.map(({ value }) => value), ...words].map(lower);
  const rest = values.reduce((all, value) => all.replace(value, () => " "), lower(text));
  const { name, beginning } = wordsOf(tool);
  const ofServer = new Set(wordsIn(server.name));
  // guard: intent-explained
  return runsOf(rest).every((word) =>
    POLITE.has(word) || LINKS.has(word) || isIn(word, beginning) || isIn(word, ofServer) ||
    (SYNONYMS[word] ?? []).some((each) => isIn(each, name))
  );
}

/**
 * Returns whether the word before a value contradicts its place: values of one kind in another order
 * than calls have ("move to b from a"), or an argument with the opposite meaning.
 */
export function isMisplaced({ text, literals }: IntentStep, args: JsonObject): boolean {
  let rest = text;
  const all = literals.map(({ kind, value }) => {
    const at = Math.max(rest.indexOf(value), 0);
    const before = rest.slice(0, at).replace(/["“`'\s]+$/, "");
    rest = rest.slice(at + value.length);
    return { kind, value, before };
  });
  // guard: intent-misplaced
  return all.some(({ kind, value, before }, at) => {
    const isSame = (one: { readonly kind: string }) => one.kind === kind;
    return all.slice(at + 1).some(isSame) && BEFORE.notLast.test(before) ||
      all.slice(0, at).some(isSame) && BEFORE.notFirst.test(before) ||
      isOpposed(Object.keys(args).filter((name) => args[name] === value), before);
  });
}

function isOpposed(names: readonly string[], before: string): boolean {
  const words = names.flatMap(wordsIn);
  return OPPOSED.some((one) =>
    one.before.test(before) && one.names.some((name) => words.includes(name))
  );
}

/** A participle such as "unstaged" does not match its verb: it names a state. */
function isIn(word: string, words: ReadonlySet<string>): boolean {
  if (words.has(word) || words.has(`${word}s`) || words.has(`${word}es`)) return true;
  if (word.endsWith("s") && words.has(word.slice(0, -1))) return true;
  const root = stem(word);
  return [...words].some((each) => !each.endsWith("ed") && stem(each) === root);
}

/** Returns the words of a name such as `read_file` or `readFile`. */
function wordsIn(name: string): readonly string[] {
  return runsOf(name.replace(/_|(?<=[a-z0-9])(?=[A-Z])/g, " ")).map(lower);
}

function lower(text: string): string {
  return text.toLowerCase();
}
