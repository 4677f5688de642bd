/**
 * Fills the arguments of a tool with the literals of a step, and with outputs of earlier tasks.
 *
 * @module
 */

import { isExactNumber, numberText } from "../core/exact_number.ts";
import { isObject, type Json, type JsonObject, listOf, objectOf, textOf } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { IntentStep, Literal } from "./_steps.ts";

/** A required argument without a known value. */
export interface OpenArgument {
  readonly argument: string;
  readonly type: string;
}

/** The known arguments of a tool. */
export interface Filled {
  readonly arguments: JsonObject;
  readonly open: readonly OpenArgument[];
  /** The number of literals of the step that fill an argument. */
  readonly used: number;
}

/** An earlier task, and the JSON Schema of its output; undefined if it is unknown. */
export interface Source {
  readonly id: string;
  readonly output: JsonObject | undefined;
}

/** Names of arguments that accept literals of a kind. */
const NAMES: Readonly<Record<Literal["kind"], RegExp>> = {
  url: /ur[il]|link|href|site|address/i,
  email: /mail|recipient|^(?:to|cc|bcc|from)$/i,
  path: /path|file|folder|dir|source|destination/i,
  date: /date|day|time|since|until|start|end|^(?:from|to)$/i,
  number: /^/,
  text: /^(?!.*(?:ur[il]|mail|path|file|folder|_?id$|date|time|token|key))/i,
};
const QUERY =
  /^(?:q|query|queries|search|search_?(?:query|term|text)|keywords?|terms?|question|topic)$/i;
const ABOUT = /\b(?:for|about|on|regarding)\s+(.+)$/i;
const CONTENT = /^(?:content|contents|text|body|message|data|input|value|markdown|html)$/i;

/**
 * The maximum number of arguments, and of literals of a step. Intents do not
 * describe longer calls.
 */
const MOST = 100;
const NONE: JsonObject = {};

/** The members of an output by plain name and type; the first wins. */
const membersOf = memoized((output: JsonObject) =>
  new Map(
    Object.entries(objectOf(output.properties)).toReversed()
      .map(([name, schema]) => [`${plain(name)} ${typeText(schema)}`, name]),
  )
);

/** Fills the arguments of a tool with literals. Other required arguments stay open. */
export function withLiterals(tool: ToolDefinition, { literals, text }: IntentStep): Filled {
  const schema = tool.inputSchema;
  const properties = objectOf(schema.properties);
  const required = new Set(listOf(schema.required));
  const unusedLiterals = literals.length > MOST ? [] : [...literals];
  const { length: taken } = unusedLiterals;
  const words = new Set(text.toLowerCase().split(/[^\p{L}\p{N}_-]+/u));
  const args: Record<string, Json> = {};
  // Required arguments come first, then optional ones whose name matches the kind of literal.
  const names = Object.keys(properties)
    .sort((one, other) => Number(required.has(other)) - Number(required.has(one)))
    .slice(0, MOST);
  for (const name of names) {
    const needed = required.has(name);
    const value = valueFor(name, {
      schema: objectOf(properties[name]),
      literals: unusedLiterals,
      needed,
      text,
      words,
    });
    if (value !== undefined) args[name] = value;
  }
  const open = [...required].slice(0, MOST).flatMap((name) => {
    if (typeof name !== "string" || Object.hasOwn(args, name)) return [];
    const property = objectOf(properties[name]);
    return property.default === undefined ? { argument: name, type: typeText(property) } : [];
  });
  return { arguments: args, open, used: taken - unusedLiterals.length };
}

/**
 * Returns a reference to an output that matches an open argument, and whether it is a guess;
 * undefined if no output matches. The latest source comes last.
 */
export function referenceFor(
  { argument, type }: OpenArgument,
  sources: readonly Source[],
): { readonly ref: JsonObject; readonly isGuess: boolean } | undefined {
  for (const { id, output } of sources.toReversed()) {
    const member = membersOf(output ?? NONE).get(`${plain(argument)} ${type}`);
    const pointer = member?.replaceAll("~", "~0").replaceAll("/", "~1");
    if (pointer !== undefined) return { ref: { $ref: `${id}#/${pointer}` }, isGuess: false };
    const mayBeText = output === undefined || [output.type].flat().includes("string");
    if (CONTENT.test(argument) && type === "string" && mayBeText) {
      return { ref: { $ref: `${id}#` }, isGuess: output?.type !== "string" };
    }
  }
  return undefined;
}

interface WantedArgument {
  readonly schema: JsonObject;
  /** The literals that fill no argument yet. */
  readonly literals: Literal[];
  readonly needed: boolean;
  readonly text: string;
  /** The words of the text. */
  readonly words: ReadonlySet<string>;
}

function valueFor(name: string, argument: WantedArgument): Json | undefined {
  const { schema, literals, needed, text, words } = argument;
  const type = typeText(schema);
  const { const: only } = schema;
  // An object could be a reference to another server's output.
  const isScalar = typeof only !== "object" || isExactNumber(only);
  if (only !== undefined) return needed && isScalar ? only : undefined;
  if (Array.isArray(schema.enum)) return needed ? namedIn(words, schema.enum) : undefined;
  if (type === "array" && typeText(schema.items) === "string") {
    const own = { ...argument, schema: objectOf(schema.items), needed: false };
    const values: Json[] = [];
    for (let value = one(name, own); value !== undefined; value = one(name, own)) {
      values.push(value);
    }
    return values.length > 0 ? values : undefined;
  }
  const value = one(name, argument);
  if (value !== undefined || !needed || type !== "string" || literals.length > 0) return value;
  return QUERY.test(name) ? ABOUT.exec(text)?.[1] : undefined;
}

/** Removes and returns the first literal that matches an argument. */
function one(name: string, { schema, literals, needed }: WantedArgument): Json | undefined {
  const type = typeText(schema);
  const at = literals.findIndex(({ kind }) => {
    // A number or a text matches almost every argument, so it fills only required ones.
    if (kind === "number") return needed && (type === "number" || type === "integer");
    if (type !== "string" || schema.enum !== undefined) return false;
    if (kind === "text") return needed && NAMES.text.test(name);
    return NAMES[kind].test(name) || textOf(schema.format) === (kind === "url" ? "uri" : kind);
  });
  const [literal] = at < 0 ? [] : literals.splice(at, 1);
  if (literal === undefined) return undefined;
  return literal.kind === "number" ? Number(literal.value) : literal.value;
}

/** Returns the value of a list that the words name; undefined unless it is the only one. */
function namedIn(words: ReadonlySet<string>, values: readonly Json[]): Json | undefined {
  const named = values.filter((value) =>
    words.has((numberText(value) ?? String(value)).toLowerCase())
  );
  return named.length === 1 ? named[0] : undefined;
}

function typeText(schema: unknown): string {
  const type = isObject(schema) ? schema.type : undefined;
  return typeof type === "string" ? type : "any";
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}
