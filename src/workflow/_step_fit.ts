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

/** Words before the main word. They do not describe a tool. */
const FILLERS = new Set(
  ("please can could you me us we i the a an to now just then also first next finally want need " +
    "would like let lets help give tell show what which when where who why how is are was were do " +
    "does did has have had there if it its this that in on at of for from all some any my our your")
    .split(" "),
);
/** Verbs of users, with the verbs that tools use instead. */
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
/** Words that give a step a meaning that arguments cannot express. */
const LIMITING =
  /\b(?:not|never|without|except|but|unless|don't|do not|leave out|instead of|if|only|avoid|stop|skip|besides|other than|apart from|exclud(?:e|es|ing)|every|each)\b/i;
/** Words between the values of a step, and nouns for which tools use many different words. */
const LINKS = new Set(
  "with by as into than and or called named using file files folder directory text word"
    .split(" "),
);
/** The words of a request around its action. Words of questions are missing ("how do I …"). */
const POLITE = new Set(
  ("please can could you me us we i the a an to now just then also first next finally want need " +
    "would like lets this that in on at of for from my our your").split(" "),
);
/** Words in the names of arguments, and the words that contradict them before a value. */
const CONTRADICTIONS = [
  {
    names: ["to", "recipient", "recipients", "destination", "target"],
    before: /\b(?:from|of|by)$/i,
  },
  { names: ["from", "sender", "source", "origin"], before: /\b(?:to|into|for)$/i },
];
/** Words before the last value of a kind, and words before the first: "move FROM a TO b". */
const BEFORE = { last: /\b(?:to|into|in|as|with|by)$/i, first: /\b(?:from|of|in)$/i };

/** The length of the part of a description that is compared, in characters. */
const DESCRIPTION_MAX = 2_000;
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
  const description = (tool.description ?? "").slice(0, DESCRIPTION_MAX);
  const names = Object.keys(objectOf(tool.inputSchema.properties)).slice(0, ARGUMENTS_MAX);
  const [first = ""] = description.split(/[.\n]/, 1);
  const beginning = [...name, ...runsOf(first).map(toLower), ...names.flatMap(wordsIn)];
  return {
    name: new Set(name),
    description: new Set(runsOf(description).map(toLower)),
    beginning: new Set(beginning),
  };
});

/** Returns the main word of a step, in lower case; undefined if it has none. */
export function mainWord(text: string): string | undefined {
  return runsOf(text).map(toLower).find((word) => !FILLERS.has(word) && !/^\d+$/.test(word));
}

/**
 * Returns where a tool contains a word: in its name (also as another form or a synonym), in its
 * description (also as another form), or nowhere.
 */
export function mainWordFit(word: string, tool: ToolDefinition): MainWordFit {
  const { name, description } = wordsOf(tool);
  const words = [word, ...SYNONYMS[word] ?? []];
  if (words.some((each) => isIn(each, name))) return "name";
  // A description contains many words by chance, so only the word itself counts there.
  return isIn(word, description) ? "description" : "none";
}

/** Counts the words in the name of a tool that a step does not contain. */
export function countOtherWords({ name }: ToolDefinition, query: string): number {
  const terms = new Set(termsOf(query));
  return termsOf(name).filter((term) => !terms.has(term)).length;
}

/**
 * Returns whether a step contains a word such as "not" or "only", which arguments cannot express.
 */
export function hasLimitingWord(text: string): boolean {
  return LIMITING.test(text);
}

/**
 * Returns whether a call expresses a whole step: each word of the step is a value of the call, a
 * word of the tool, or a polite word. In `write "x" to a.txt twice`, "twice" is none of these.
 * Calls of read-only tools are harmless, so their words are not checked.
 */
export function areAllWordsExplained(
  { text, literals }: IntentStep,
  { tool, server }: Pick<SearchHit, "tool" | "server">,
  args: JsonObject,
): boolean {
  if (tool.annotations?.readOnlyHint === true) return true;
  const words = Object.values(args).filter((value) => typeof value === "string");
  const values = [...literals.map(({ value }) => value), ...words].map(toLower);
  const rest = values.reduce((all, value) => all.replace(value, () => " "), toLower(text));
  const { name, beginning } = wordsOf(tool);
  const ofServer = new Set(wordsIn(server.name));
  // guard: intent-explained
  return runsOf(rest).every((word) =>
    POLITE.has(word) || LINKS.has(word) || isIn(word, beginning) || isIn(word, ofServer) ||
    (SYNONYMS[word] ?? []).some((each) => isIn(each, name))
  );
}

/**
 * Returns whether the word before a value contradicts the argument that the value fills: two values
 * of one kind are in the opposite order ("move to b from a"), or the argument has the opposite
 * meaning.
 */
export function hasMisplacedValue({ text, literals }: IntentStep, args: JsonObject): boolean {
  let rest = text;
  const all = literals.map(({ kind, value }) => {
    const start = Math.max(rest.indexOf(value), 0);
    const before = rest.slice(0, start).replace(/["“`'\s]+$/, "");
    rest = rest.slice(start + value.length);
    return { kind, value, before };
  });
  // guard: intent-misplaced
  return all.some(({ kind, value, before }, index) => {
    const isSame = (other: { readonly kind: string }) => other.kind === kind;
    return all.slice(index + 1).some(isSame) && BEFORE.last.test(before) ||
      all.slice(0, index).some(isSame) && BEFORE.first.test(before) ||
      isContradicted(Object.keys(args).filter((name) => args[name] === value), before);
  });
}

function isContradicted(names: readonly string[], before: string): boolean {
  const words = names.flatMap(wordsIn);
  return CONTRADICTIONS.some((pair) =>
    pair.before.test(before) && pair.names.some((name) => words.includes(name))
  );
}

/**
 * Returns whether words contain a form of a word. A participle such as "unstaged" does not match
 * its verb, because it describes a state, not an action.
 */
function isIn(word: string, words: ReadonlySet<string>): boolean {
  if (words.has(word) || words.has(`${word}s`) || words.has(`${word}es`)) return true;
  if (word.endsWith("s") && words.has(word.slice(0, -1))) return true;
  const root = stem(word);
  return [...words].some((each) => !each.endsWith("ed") && stem(each) === root);
}

/** Returns the words of a name such as `read_file` or `readFile`. */
function wordsIn(name: string): readonly string[] {
  return runsOf(name.replace(/_|(?<=[a-z0-9])(?=[A-Z])/g, " ")).map(toLower);
}

function toLower(text: string): string {
  return text.toLowerCase();
}
