/**
 * Makes parameters of the literals that a person or a model names: in code `args.NAME`, in a plan a
 * reference to the arguments. Only names that were checked are put in, and never a value.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { isExactNumber } from "../core/exact_number.ts";
import { canonical, isObject, type Json, type JsonObject, quoted } from "../core/json.ts";
import { parseExact } from "../core/exact_json.ts";
import type { Capability } from "../servers/capability/capability.ts";

/** What is made of code or a plan. */
export interface Parametrized {
  readonly text: string;
  /** The JSON Schema of the arguments. */
  readonly parameters: JsonObject;
  /** What the person has to know of it, one line each. */
  readonly notes: readonly string[];
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
/** A reference to an output of an earlier run, which is not kept for ever. */
const OF_RUN = /^[\w-]+\.[\w-]+(?:#|$)/;
/**
 * Comments, texts, regular expressions, and values: what code is made of beside words and signs. The
 * time is linear: no text is read again and again, and of a character class only the beginning.
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

/** What is found while literals are replaced. */
interface Found {
  readonly text: string;
  /** How often each name is put in. */
  readonly counts: Map<string, number>;
  /** The names that were read before. */
  readonly read: readonly string[];
  /** The texts that stay. */
  readonly left: readonly string[];
}

/**
 * Returns the names `server:tool` in the text of a capability, as far as they stand there. What code
 * puts together when it runs is not found; what it called is known from the run.
 */
export function namedTools({ kind, text }: Pick<Capability, "kind" | "text">): readonly string[] {
  if (kind === "plan") return tasksOf(text).map(({ tool }) => `${tool}`);
  const said = text.replace(TOKEN, (token) => token.startsWith("/") ? " " : token);
  return [...said.matchAll(CALLED)].map(([, one, two, three, four]) =>
    `${one ?? two}:${three ?? four}`
  );
}

/** Replaces the named literals. Throws BAD_ARGUMENTS if one is not found, or not clear. */
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
    const said = quoted(typeof value === "string" ? value : JSON.stringify(value));
    const longer = left.filter((each) => typeof value === "string" && each.includes(value)).length;
    if (count === 0 && !read.includes(name)) {
      throw wrong(
        name,
        `${said} ${
          longer > 0 ? "stands only inside a longer text" : `is no literal of the ${kind}`
        }`,
      );
    }
    // A text means the same wherever it stands; a number or a truth value seldom does.
    if (typeof value !== "string" && count > 1) {
      throw wrong(name, `${said} stands ${count} times: it is not clear which is meant`);
    }
    return [
      ...(count > 1 ? [`${name}: ${said} is replaced in ${count} places`] : []),
      ...(longer > 0 ? [`${name}: ${said} stays inside longer texts: ${longer}`] : []),
    ];
  });
  const unnamed = read.find((name) => !Object.hasOwn(named, name));
  if (unnamed !== undefined) throw wrong(unnamed, `it is read, and no parameter has this name`);
  const properties = Object.fromEntries(values.map(([name, value]) => [name, schemaOf(value)]));
  const required = Object.keys(named);
  const rest = { ...(required.length > 0 && { required }), additionalProperties: false };
  return { ...made, parameters: { type: "object", properties, ...rest }, notes };
}

type NameOf = (value: Json) => string | undefined;

function inCode(code: string, nameOf: NameOf): Found {
  const counts = new Map<string, number>();
  const left: string[] = [];
  // A text in a template, a comment or a regular expression is none of the code's.
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
      left.push(`${value}`);
      return token;
    }
    if (isTaken) throw wrong(name, "the code has a variable `args` of its own");
    count(counts, name);
    const isKey = /[{,]$/.test(code.slice(0, at).trimEnd().slice(-1)) &&
      code.slice(at + token.length).trimStart().startsWith(":");
    return isKey ? `[args.${name}]` : `args.${name}`;
  });
  return { text, counts, read, left };
}

/** Returns the value of a literal; undefined for what has none, or none that can be named. */
function valueOf(token: string): Json | undefined {
  const [quote = ""] = token;
  if (quote === "/" || quote === "`" && token.includes("${")) return undefined;
  if (!/["'`]/.test(quote)) return /^[tf]/.test(token) ? token === "true" : numberOf(token);
  // As JSON writes it: with no quote escaped but its own.
  const inner = token.slice(1, -1).replaceAll("\n", "\\n")
    .replace(/\\?(["'`])|\\[^]/g, (all, own) => own === '"' ? '\\"' : own ?? all);
  try {
    return JSON.parse(`"${inner}"`);
  } catch {
    // An escape that JSON does not have.
    return undefined;
  }
}

function numberOf(token: string): number | undefined {
  const value = Number(token.replaceAll("_", ""));
  return Number.isFinite(value) ? value : undefined;
}

function inPlan(text: string, nameOf: NameOf): Found {
  const counts = new Map<string, number>();
  const read: string[] = [];
  const left: string[] = [];
  const replaced = (value: Json): Json => {
    const name = nameOf(value);
    if (name !== undefined) {
      count(counts, name);
      return { $ref: `$params#/${name}` };
    }
    if (typeof value === "string") left.push(value);
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
          hint: "Put the task that gives it into the plan",
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
  return { text: JSON.stringify(plan, null, 2), counts, read, left };
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
    hint: 'Name each value as it is in what ran: one literal, such as {"city": "Paris"}',
  });
}
