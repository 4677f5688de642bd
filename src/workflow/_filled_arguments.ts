/**
 * Fills the arguments of a tool with the literals of a step, and with outputs of earlier tasks.
 *
 * @module
 */

import { isExactNumber, numberText } from "../core/exact_number.ts";
import { isObject, type Json, type JsonObject, listOf, objectOf, textOf } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { termsOf } from "../search/terms.ts";
import type { IntentStep, Literal } from "./_steps.ts";

/** A required argument without a known value, or an optional argument that a text may belong to. */
export interface OpenArgument {
  readonly argument: string;
  readonly type: string;
}

/** The known arguments of a tool. */
export interface FilledArguments {
  readonly arguments: JsonObject;
  readonly openArguments: readonly OpenArgument[];
  /** The numbers of literals of the step that fill an argument, and that fill no argument. */
  readonly usedCount: number;
  readonly unusedCount: number;
  /** Whether a value is a word of the step, not a literal, so that it may be wrong. */
  readonly isGuess: boolean;
}

/** An earlier task whose output may fill an argument. */
export interface Source {
  readonly id: string;
  /** The JSON Schema of its output; undefined if it is unknown. */
  readonly output: JsonObject | undefined;
}

/** Names of arguments that accept literals of a kind. */
const NAMES: Readonly<Record<Literal["kind"], RegExp>> = {
  url: /ur[il]|link|href|site|address/i,
  email: /mail|recipient|^(?:to|cc|bcc|from)$/i,
  path: /path|file|folder|dir|source|destination/i,
  glob: /pattern|glob|filter|query|name/i,
  name: /path|file|folder|dir|source|destination|zone|branch|target|ref|revision|commit|sha/i,
  time: /time(?!_?zone|out)/i,
  date: /date|day|time|since|until|start|end|^(?:from|to)$/i,
  number: /^/,
  text: /^(?!.*(?:ur[il]|mail|path|file|folder|_?id$|date|time|token|key))/i,
};
/** Names of arguments that accept a search query. */
const QUERY =
  /^(?:q|query|queries|search|search_?(?:query|term|text)|keywords?|terms?|question|topic)$/i;
/** The longest name of an argument that is compared with the words of a step. */
const NAME_MAX = 64;
/** Finds the topic of a step, after a preposition, "named" or "called". */
const ABOUT = /\b(?:for|about|on|regarding|named|called)\s+(.+)$/i;
/** Names of arguments that accept a whole text, such as the content of a file. */
const CONTENT = /^(?:content|contents|text|body|message|data|input|value|markdown|html)$/i;

/**
 * The maximum number of arguments of a tool, and of literals of a step. Intents do not describe
 * calls with more.
 */
const MOST = 100;
/** The maximum length of a step in which words next to a value are looked for, in characters. */
const NEAR_MAX = 1_000;
const EMPTY: JsonObject = {};

/** The names of an output's members by normalized name and type. The first member is kept. */
const membersOf = memoized((output: JsonObject) =>
  new Map(
    Object.entries(objectOf(output.properties)).toReversed()
      .map(([name, schema]) => [`${normalizeName(name)} ${typeText(schema)}`, name]),
  )
);

/** Fills the arguments of a tool with literals. Other required arguments stay open. */
export function fillLiterals(
  tool: ToolDefinition,
  { literals, text }: IntentStep,
): FilledArguments {
  const schema = tool.inputSchema;
  const properties = objectOf(schema.properties);
  const required = new Set(listOf(schema.required));
  const unusedLiterals = literals.length > MOST ? [] : [...literals];
  const words = new Set(text.toLowerCase().split(/[^\p{L}\p{N}_-]+/u));
  const args: Record<string, Json> = {};
  // Required arguments come first, then optional ones whose name matches the kind of literal.
  const names = Object.keys(properties)
    .sort((name, other) => Number(required.has(other)) - Number(required.has(name)))
    .slice(0, MOST);
  const toWanted = (name: string, isRequired: boolean): WantedArgument => ({
    ...{ schema: objectOf(properties[name]), literals: unusedLiterals, isRequired, text, words },
  });
  for (const name of names) {
    const value = takeValue(name, toWanted(name, required.has(name)));
    if (value !== undefined) args[name] = value;
  }
  let isGuess = false;
  const missing = names.filter((name) => required.has(name) && !Object.hasOwn(args, name));
  for (const name of missing) {
    const word = findNearWord(name, { ...toWanted(name, true), tool });
    if (word === undefined) continue;
    args[name] = word;
    isGuess = true;
  }
  const open = [...required].slice(0, MOST).flatMap((name) => {
    if (typeof name !== "string" || Object.hasOwn(args, name)) return [];
    const property = objectOf(properties[name]);
    return property.default === undefined ? { argument: name, type: typeText(property) } : [];
  });
  const texts = unusedLiterals.filter(({ kind }) => kind === "text");
  const optional = names.filter((name) =>
    !required.has(name) && !Object.hasOwn(args, name) && NAMES.text.test(name) &&
    typeText(properties[name]) === "string" && objectOf(properties[name]).enum === undefined
  );
  // An unused text of the step may belong to an optional argument, so the caller must decide.
  open.push(...optional.slice(0, texts.length).map((argument) => ({ argument, type: "string" })));
  const unusedCount = literals.length > MOST ? literals.length : unusedLiterals.length;
  const usedCount = literals.length - unusedCount;
  return { arguments: args, openArguments: open, usedCount, unusedCount, isGuess };
}

/**
 * Returns a reference to an output that matches an open argument, and whether it is a guess;
 * undefined if no output matches. Later sources are preferred.
 */
export function referenceFor(
  { argument, type }: OpenArgument,
  sources: readonly Source[],
): { readonly value: JsonObject; readonly isGuess: boolean } | undefined {
  for (const { id, output } of sources.toReversed()) {
    const member = membersOf(output ?? EMPTY).get(`${normalizeName(argument)} ${type}`);
    const pointer = member?.replaceAll("~", "~0").replaceAll("/", "~1");
    if (pointer !== undefined) return { value: { $ref: `${id}#/${pointer}` }, isGuess: false };
    const mayBeText = output === undefined || [output.type].flat().includes("string");
    if (CONTENT.test(argument) && type === "string" && mayBeText) {
      return { value: { $ref: `${id}#` }, isGuess: output?.type !== "string" };
    }
  }
  return undefined;
}

interface WantedArgument {
  readonly schema: JsonObject;
  /** The literals that fill no argument yet. */
  readonly literals: Literal[];
  readonly isRequired: boolean;
  readonly text: string;
  /** The words of the text. */
  readonly words: ReadonlySet<string>;
}

function takeValue(name: string, argument: WantedArgument): Json | undefined {
  const { schema, literals, isRequired, text, words } = argument;
  const type = typeText(schema);
  const { const: only } = schema;
  // Only scalars, because a plan would read an object with `$ref` as a reference to an output.
  const isScalar = typeof only !== "object" || isExactNumber(only);
  if (only !== undefined) return isRequired && isScalar ? only : undefined;
  if (Array.isArray(schema.enum)) return isRequired ? findNamed(words, schema.enum) : undefined;
  if (type === "boolean") return isRequired || !isSwitchedOn(name, argument) ? undefined : true;
  if (type === "array") return takeList(name, argument);
  const value = takeLiteral(name, argument) ??
    (isRequired ? undefined : takeNumber(name, argument));
  if (value !== undefined || !isRequired || type !== "string") return value;
  const quotedValue = findNamed(words, quotedValues(schema));
  if (quotedValue !== undefined || literals.length > 0) return quotedValue;
  return QUERY.test(name) ? ABOUT.exec(text)?.[1] : undefined;
}

/**
 * Fills a list of texts with all matching literals except destinations, and a list of objects with
 * one object.
 */
function takeList(name: string, argument: WantedArgument): Json | undefined {
  const items = objectOf(argument.schema.items);
  if (typeText(items) === "string") {
    const all = argument.literals.filter((literal, at) =>
      at === 0 || !isDestination(literal, argument.text)
    );
    const item = { ...argument, schema: items, isRequired: false, literals: [...all] };
    const values: Json[] = [];
    for (
      let value = takeLiteral(name, item);
      value !== undefined;
      value = takeLiteral(name, item)
    ) values.push(value);
    for (const used of all.filter((literal) => !item.literals.includes(literal))) {
      argument.literals.splice(argument.literals.indexOf(used), 1);
    }
    return values.length > 0 ? values : undefined;
  }
  const members = listOf(items.required).filter((member) => typeof member === "string");
  const texts = argument.literals.filter(({ kind }) => kind === "text");
  const areTexts = members.every((member) =>
    typeText(objectOf(items.properties)[member]) === "string"
  );
  if (!argument.isRequired || members.length < 2 || !areTexts || texts.length !== members.length) {
    return undefined;
  }
  for (const used of texts) argument.literals.splice(argument.literals.indexOf(used), 1);
  return [Object.fromEntries(members.map((member, at) => [member, texts[at]?.value ?? ""]))];
}

/** Returns whether a literal is the destination of the step: `b.txt` in "add a.txt to b.txt". */
function isDestination({ value }: Literal, text: string): boolean {
  return isSentence(text) &&
    /\b(?:to|into|onto)\s+["'`]?$/i.test(text.slice(0, text.lastIndexOf(value)));
}

/** Finds the texts in single quotes in an argument's description. They are often its values. */
function quotedValues(schema: JsonObject): readonly string[] {
  return [...descriptionOf(schema).matchAll(/'([a-z][\w-]{0,30})'/g)]
    .map(([, value = ""]) => value);
}

/**
 * Returns whether the words contain an optional argument's name, or its description's first verb.
 */
function isSwitchedOn(name: string, { schema, words }: WantedArgument): boolean {
  const [verb = ""] = descriptionOf(schema).toLowerCase().split(/\W/, 1);
  return words.has(name.toLowerCase()) || verb.length > 6 && words.has(verb);
}

/** Removes and returns the number of a step if the words next to it describe the argument. */
function takeNumber(name: string, argument: WantedArgument): Json | undefined {
  const { schema, literals, text } = argument;
  const type = typeText(schema);
  const index = literals.findIndex(({ kind }) => kind === "number");
  const { value = "" } = literals[index] ?? {};
  if (index < 0 || type !== "number" && type !== "integer" || !isSentence(text)) return undefined;
  // The match starts at the beginning of a word; otherwise long words would take quadratic time.
  const near = new RegExp(
    `(?<!\\p{L})(\\p{L}+)\\s+${escapeRegExp(value)}(?:\\s+(\\p{L}+))?`,
    "iu",
  ).exec(text);
  const [, before = "", after = ""] = near ?? [];
  const argumentTerms = new Set(termsOf(`${name} ${descriptionOf(schema)}`));
  const isCount = /^(?:max_?(?:count|results|items)|limit|count|top_?k|num(?:ber)?_?\w*)$/i.test(
    name,
  );
  const isNear = (word: string) => termsOf(word).some((term) => argumentTerms.has(term));
  // In "the last 5 lines", "last" must match too, because another argument may be for the first.
  const isPosition = /^(?:first|last|top|next)$/i.test(before);
  const isMatch = isPosition && !isCount && !argumentTerms.has("max")
    ? descriptionOf(schema).toLowerCase().includes(before.toLowerCase())
    : isCount && isPosition || isNear(after) || isNear(before);
  if (!isMatch) return undefined;
  literals.splice(index, 1);
  return Number(value);
}

/**
 * Finds the word next to a noun of an argument: "the branch main" names a `branch_name`, "in dist"
 * a `path`.
 */
function findNearWord(
  name: string,
  { schema, text, tool }: WantedArgument & { readonly tool: ToolDefinition },
): string | undefined {
  if (name.length > NAME_MAX || !isSentence(text)) return undefined;
  if (typeText(schema) !== "string" || schema.enum !== undefined) return undefined;
  const isPath = NAMES.path.test(name);
  const nouns = isPath
    ? ["folder", "directory", "file"]
    : /target|revision|^ref$/i.test(name)
    ? ["branch", "commit", "tag", "revision"]
    : name.split(/[_\W]|(?<=[a-z])(?=[A-Z])/).filter((part) =>
      part.length > 3 && !/^(?:name|type|text)$/i.test(part)
    );
  const noun = nouns.map(escapeRegExp).join("|");
  const ownTerms = new Set([...termsOf(tool.name), ...nouns.flatMap(termsOf), "name", "call"]);
  const patterns = [
    ...nouns.length === 0 ? [] : [
      new RegExp(`\\b(?:${noun})\\s+(?:called\\s+|named\\s+)?([\\w.-]+)`, "i"),
      new RegExp(`\\b(?:the|a|an|new|to|in)\\s+([\\w.-]+)\\s+(?:${noun})\\b`, "i"),
    ],
    ...isPath
      ? [
        /\b(?:in|of|below|under|inside|within)\s+(?:the\s+)?([\w.-]+)[.?!]?$/i,
        /^\w+\s+([\w-]+)[.?!]?$/,
      ]
      : [],
    ...NAMES.name.test(name) && !isPath ? [/\bto\s+([\w./-]+)[.?!]?$/i] : [],
  ];
  for (const pattern of patterns) {
    const [, word = ""] = pattern.exec(text) ?? [];
    const terms = termsOf(word);
    if (terms.length > 0 && !terms.some((term) => ownTerms.has(term))) return word;
  }
  return undefined;
}

/** Returns whether a step is short enough to look for the words next to a value. */
function isSentence(text: string): boolean {
  // guard: intent-words
  return text.length <= NEAR_MAX;
}

/** Returns the beginning of an argument's description. */
function descriptionOf({ description }: JsonObject): string {
  return textOf(description).slice(0, 500);
}

function escapeRegExp(text: string): string {
  return text.replace(/[^\p{L}\p{N}]/gu, "\\$&");
}

/** Removes and returns the first literal that matches an argument. */
function takeLiteral(
  name: string,
  { schema, literals, isRequired }: WantedArgument,
): Json | undefined {
  const type = typeText(schema);
  const isMatch = ({ kind }: Literal) => {
    // A number or a text matches almost every argument, so it fills only required ones.
    if (kind === "number") return isRequired && (type === "number" || type === "integer");
    if (type !== "string" || schema.enum !== undefined) return false;
    if (kind === "text") return isRequired && NAMES.text.test(name);
    return NAMES[kind].test(name) || textOf(schema.format) === (kind === "url" ? "uri" : kind);
  };
  // A bare name such as `feature/login` fills a path only if there is no path.
  const isSure = (literal: Literal) => literal.kind !== "name" && isMatch(literal);
  const sureIndex = literals.findIndex(isSure);
  const index = sureIndex < 0 ? literals.findIndex(isMatch) : sureIndex;
  const [literal] = index < 0 ? [] : literals.splice(index, 1);
  if (literal === undefined) return undefined;
  return literal.kind === "number" ? Number(literal.value) : literal.value;
}

/** Finds the value of a list that occurs in the words; undefined if none or several occur. */
function findNamed(words: ReadonlySet<string>, values: readonly Json[]): Json | undefined {
  const matches = values.filter((value) =>
    words.has((numberText(value) ?? String(value)).toLowerCase())
  );
  return matches.length === 1 ? matches[0] : undefined;
}

function typeText(schema: unknown): string {
  const type = isObject(schema) ? schema.type : undefined;
  return typeof type === "string" ? type : "any";
}

function normalizeName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}
