/**
 * Replaces the named literals of code or a plan by parameters: in code by `args.NAME`, in a plan by
 * a reference to the arguments. It inserts only checked names, and never a value.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { isExactNumber } from "../core/exact_number.ts";
import { canonical, isObject, type Json, type JsonObject, quoted } from "../core/json.ts";
import { parseExact } from "../core/exact_json.ts";
import type { Capability } from "../servers/capability/capability.ts";

/** Code or a plan with parameters. */
export interface Parametrized {
  readonly text: string;
  /** The JSON Schema of the arguments. */
  readonly parameters: JsonObject;
  /** Notes for the user about the replacements, one per line. */
  readonly notes: readonly string[];
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
/** A reference to an output of an earlier run, which PML keeps only for a limited time. */
const OF_RUN = /^[\w-]+\.[\w-]+(?:#|$)/;
/**
 * Matches the comments, strings, regular expressions, numbers and booleans of code. The time is
 * linear: there is no backtracking over long texts, and character classes are limited in length.
 */
const TOKEN = new RegExp(
  [
    String.raw`\/\/.*|\/\*[^]*?(?:\*\/|$)`,
    String.raw`(["'])(?:\\[^]?|(?!\1)[^\\\n])*(?:\1|(?![^\n]))`,
    "`(?:\\\\[^]?|[^\\\\`])*(?:`|$)",
    String
      .raw`(?<=(?:[=(,:;!&|?{}[+>]|\breturn)\s*)\/(?:\\.|\[(?:\\.|[^\]\\\n]){0,200}\]|[^/\\[\n])+\/`,
    String.raw`(?<![\w$.])(?:\.?\d(?:[eE][+-]|[\w.])*|true|false)(?![\w$])`,
  ].join("|"),
  "g",
);
const MEMBER = String
  .raw`\s*(?:\??\.\s*([\w$]+)|(?:\?\.\s*)?\[\s*["'\x60]([^"'\x60\n]*)["'\x60]\s*\])`;
const CALLED = new RegExp(String.raw`(?<![\w$.])mcp${MEMBER}${MEMBER}`, "g");

/** The result of replacing literals. */
interface ReplacedLiterals {
  readonly text: string;
  /** The number of replacements by name. */
  readonly counts: Map<string, number>;
  /** The names of `args` that the text already uses. */
  readonly read: readonly string[];
  /** The literals that stay. */
  readonly left: readonly string[];
}

/**
 * Returns the names `server:tool` that the text of a capability contains. It does not find names
 * that code computes; the run reports the tools that it called.
 */
export function namedTools({ kind, text }: Pick<Capability, "kind" | "text">): readonly string[] {
  if (kind === "plan") return tasksOf(text).map(({ tool }) => `${tool}`);
  const withoutComments = text.replace(TOKEN, (token) => token.startsWith("/") ? " " : token);
  return [...withoutComments.matchAll(CALLED)].map(([, one, two, three, four]) =>
    `${one ?? two}:${three ?? four}`
  );
}

/** Replaces the named literals. Throws BAD_ARGUMENTS if one is not found or ambiguous. */
export function parametrized(
  { kind, text }: Pick<Capability, "kind" | "text">,
  named: JsonObject,
): Parametrized {
  const values = Object.entries(named) as [string, Json][];
  const names = new Map<string, string>();
  for (const [name, value] of values) {
    // guard: capability-parameter
    if (!NAME.test(name) || name === "__proto__") throw wrong(name, "use letters, digits and _");
    const twin = names.get(canonical(value));
    if (twin !== undefined) throw wrong(name, `${quoted(twin)} has the same value`);
    names.set(canonical(value), name);
  }
  const nameOf = (value: Json) => names.get(canonical(value));
  const { counts, read, left, ...made } = kind === "code"
    ? inCode(text, nameOf)
    : inPlan(text, nameOf);
  const notes = values.flatMap(([name, value]) => {
    const count = counts.get(name) ?? 0;
    const literal = quoted(typeof value === "string" ? value : JSON.stringify(value));
    const longer = left.filter((each) => typeof value === "string" && each.includes(value)).length;
    if (count === 0 && !read.includes(name)) {
      throw wrong(
        name,
        `${literal} ${
          longer > 0 ? "occurs only inside a longer text" : `is not a literal of the ${kind}`
        }`,
      );
    }
    // Equal texts usually have the same meaning; equal numbers and booleans rarely do.
    if (typeof value !== "string" && count > 1) {
      throw wrong(name, `${literal} occurs ${count} times, so it is ambiguous`);
    }
    return [
      ...(count > 1 ? [`${name}: ${literal} is replaced in ${count} places`] : []),
      ...(longer > 0 ? [`${name}: ${literal} stays inside longer texts: ${longer}`] : []),
    ];
  });
  const unnamed = read.find((name) => !Object.hasOwn(named, name));
  if (unnamed !== undefined) {
    throw wrong(unnamed, `the text uses it, but no parameter has this name`);
  }
  const properties = Object.fromEntries(values.map(([name, value]) => [name, schemaOf(value)]));
  const required = Object.keys(named);
  const rest = { ...(required.length > 0 && { required }), additionalProperties: false };
  return { ...made, parameters: { type: "object", properties, ...rest }, notes };
}

type NameOf = (value: Json) => string | undefined;

function inCode(code: string, nameOf: NameOf): ReplacedLiterals {
  const counts = new Map<string, number>();
  const problems: string[] = [];
  // Ignores the text of strings, comments and regular expressions.
  const bare = code.replace(TOKEN, (token) => /^["'/]/.test(token) ? " " : token);
  const read = [...bare.matchAll(/(?<![\w$.])args\s*\??\.\s*([A-Za-z_$][\w$]*)/g)]
    .map(([, name = ""]) => name);
  const isTaken = /(?<![\w$.])(?:const|let|var|class|function)\s+args\b/.test(bare);
  const text = code.replace(TOKEN, (token, _quote, at: number) => {
    const value = valueOf(token);
    if (value === undefined || /[\w$)\]]$/.test(token[0] === "`" ? code[at - 1] ?? "" : "")) {
      return token;
    }
    const name = nameOf(value);
    if (name === undefined) {
      problems.push(`${value}`);
      return token;
    }
    if (isTaken) throw wrong(name, "the code declares its own variable `args`");
    count(counts, name);
    const isKey = /[{,]$/.test(code.slice(0, at).trimEnd().slice(-1)) &&
      code.slice(at + token.length).trimStart().startsWith(":");
    return isKey ? `[args.${name}]` : `args.${name}`;
  });
  return { text, counts, read, left: problems };
}

/** Returns the value of a literal; undefined for other tokens and templates with expressions. */
function valueOf(token: string): Json | undefined {
  const [quote = ""] = token;
  if (quote === "/" || quote === "`" && token.includes("${")) return undefined;
  if (!/["'`]/.test(quote)) return /^[tf]/.test(token) ? token === "true" : numberOf(token);
  // Converts the escapes to those of JSON, where only double quotes are escaped.
  const inner = token.slice(1, -1).replaceAll("\n", "\\n")
    .replace(/\\?(["'`])|\\[^]/g, (all, own) => own === '"' ? '\\"' : own ?? all);
  try {
    return JSON.parse(`"${inner}"`);
  } catch {
    // JSON does not have this escape.
    return undefined;
  }
}

function numberOf(token: string): number | undefined {
  const value = Number(token.replaceAll("_", ""));
  return Number.isFinite(value) ? value : undefined;
}

function inPlan(text: string, nameOf: NameOf): ReplacedLiterals {
  const counts = new Map<string, number>();
  const read: string[] = [];
  const problems: string[] = [];
  const replaced = (value: Json): Json => {
    const name = nameOf(value);
    if (name !== undefined) {
      count(counts, name);
      return { $ref: `$params#/${name}` };
    }
    if (typeof value === "string") problems.push(value);
    if (Array.isArray(value)) return value.map(replaced);
    if (!isObject(value)) return value;
    const { $ref, $literal } = value as JsonObject;
    if ($literal !== undefined) {
      return nameOf($literal) === undefined ? value as Json : replaced($literal);
    }
    if (typeof $ref !== "string") return within(value as JsonObject, Object.keys(value));
    if (OF_RUN.test($ref)) {
      throw new PmlError(
        "BAD_ARGUMENTS",
        `Cannot save the plan: ${quoted($ref)} is an output of an earlier run`,
        {
          hint: "Add the task that returns it to the plan",
        },
      );
    }
    const [, own] = /^\$params#\/([^/]+)/.exec($ref) ?? [];
    if (own !== undefined) read.push(own);
    return value as JsonObject;
  };
  const within = (value: JsonObject, keys: readonly string[]): JsonObject => ({
    ...value,
    ...Object.fromEntries(
      keys.flatMap((key) => value[key] === undefined ? [] : [[key, replaced(value[key])]]),
    ),
  });
  const tasks = tasksOf(text).map((task) => within(task, ["arguments", "for_each", "when"]));
  const plan = { ...parseExact(text), tasks };
  return { text: JSON.stringify(plan, null, 2), counts, read, left: problems };
}

function tasksOf(text: string): readonly JsonObject[] {
  const { tasks }: { readonly tasks?: unknown } = parseExact(text);
  return Array.isArray(tasks) ? tasks.filter(isObject) as JsonObject[] : [];
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function schemaOf(value: Json): JsonObject {
  if (isExactNumber(value)) return { type: "number" };
  return { type: Array.isArray(value) ? "array" : value === null ? "null" : typeof value };
}

function wrong(name: string, why: string): PmlError {
  return new PmlError("BAD_ARGUMENTS", `Cannot make a parameter ${quoted(name)}: ${why}`, {
    hint: 'Name each value exactly as one literal of what ran, such as {"city": "Paris"}',
  });
}
