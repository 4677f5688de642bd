/**
 * Replaces literals of code or a plan by parameters: in code by `args.NAME`, in a plan by
 * a reference to the arguments. It inserts only checked names, and never a value.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { isExactNumber } from "../core/exact_number.ts";
import { canonicalJson, isObject, type Json, type JsonObject, quoted } from "../core/json.ts";
import { parseExact } from "../core/exact_json.ts";
import type { Capability } from "../servers/capability/capability.ts";

/** Code or a plan with parameters. */
export interface ParametrizedText {
  readonly text: string;
  /** The JSON Schema of the arguments. */
  readonly parameters: JsonObject;
  /** Notes for the user about the replacements, one per line. */
  readonly notes: readonly string[];
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
/** A reference to an output of an earlier run, which PML keeps only for a limited time. */
const EARLIER_OUTPUT = /^[\w-]+\.[\w-]+(?:#|$)/;
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
const TOOL_CALL = new RegExp(String.raw`(?<![\w$.])mcp${MEMBER}${MEMBER}`, "g");

/** The result of replacing literals. */
interface ReplacedLiterals {
  readonly text: string;
  /** The number of replacements by name. */
  readonly counts: Map<string, number>;
  /** The parameters that the text already uses, such as NAME in `args.NAME`. */
  readonly usedNames: readonly string[];
  /** The literals that are not replaced. */
  readonly remaining: readonly string[];
}

/**
 * Returns the names `server:tool` that the text of a capability contains. It does not find names
 * that code computes; the run reports the tools that it called.
 */
export function findToolNames(
  { kind, text }: Pick<Capability, "kind" | "text">,
): readonly string[] {
  if (kind === "plan") return tasksOf(text).map(({ tool }) => `${tool}`);
  const withoutComments = text.replace(TOKEN, (token) => token.startsWith("/") ? " " : token);
  return [...withoutComments.matchAll(TOOL_CALL)].map((
    [, server, quotedServer, tool, quotedTool],
  ) => `${server ?? quotedServer}:${tool ?? quotedTool}`);
}

/**
 * Replaces literals by parameters. `literals` contains the literal of each parameter, by its name.
 * Throws BAD_ARGUMENTS if a literal does not occur or is ambiguous.
 */
export function parametrize(
  { kind, text }: Pick<Capability, "kind" | "text">,
  literals: JsonObject,
): ParametrizedText {
  const values = Object.entries(literals) as [string, Json][];
  const names = new Map<string, string>();
  for (const [name, value] of values) {
    // guard: capability-parameter
    if (!NAME.test(name) || name === "__proto__") {
      throw parameterError(name, "use letters, digits and _");
    }
    const duplicate = names.get(canonicalJson(value));
    if (duplicate !== undefined) {
      throw parameterError(name, `${quoted(duplicate)} has the same value`);
    }
    names.set(canonicalJson(value), name);
  }
  const nameOf = (value: Json) => names.get(canonicalJson(value));
  const { counts, usedNames, remaining, ...replaced } = kind === "code"
    ? replaceInCode(text, nameOf)
    : replaceInPlan(text, nameOf);
  const notes = values.flatMap(([name, value]) => {
    const count = counts.get(name) ?? 0;
    const literal = quoted(typeof value === "string" ? value : JSON.stringify(value));
    const longerCount = remaining.filter((each) =>
      typeof value === "string" && each.includes(value)
    ).length;
    if (count === 0 && !usedNames.includes(name)) {
      throw parameterError(
        name,
        `${literal} ${
          longerCount > 0 ? "occurs only inside a longer text" : `is not a literal of the ${kind}`
        }`,
      );
    }
    // Equal texts usually have the same meaning; equal numbers and booleans rarely do.
    if (typeof value !== "string" && count > 1) {
      throw parameterError(name, `${literal} occurs ${count} times, so it is ambiguous`);
    }
    return [
      ...(count > 1 ? [`${name}: ${literal} is replaced in ${count} places`] : []),
      ...(longerCount > 0 ? [`${name}: ${literal} stays inside longer texts: ${longerCount}`] : []),
    ];
  });
  const unnamed = usedNames.find((name) => !Object.hasOwn(literals, name));
  if (unnamed !== undefined) {
    throw parameterError(unnamed, `the text uses it, but no parameter has this name`);
  }
  const properties = Object.fromEntries(values.map(([name, value]) => [name, schemaOf(value)]));
  const required = Object.keys(literals);
  const rest = { ...(required.length > 0 && { required }), additionalProperties: false };
  return { ...replaced, parameters: { type: "object", properties, ...rest }, notes };
}

type NameOf = (value: Json) => string | undefined;

function replaceInCode(code: string, nameOf: NameOf): ReplacedLiterals {
  const counts = new Map<string, number>();
  const remaining: string[] = [];
  // Ignores the text of strings, comments and regular expressions.
  const codeWithoutTexts = code.replace(TOKEN, (token) => /^["'/]/.test(token) ? " " : token);
  const usedNames = [...codeWithoutTexts.matchAll(/(?<![\w$.])args\s*\??\.\s*([A-Za-z_$][\w$]*)/g)]
    .map(([, name = ""]) => name);
  const declaresArgs = /(?<![\w$.])(?:const|let|var|class|function)\s+args\b/.test(
    codeWithoutTexts,
  );
  const text = code.replace(TOKEN, (token, _quote, at: number) => {
    const value = valueOf(token);
    if (value === undefined || /[\w$)\]]$/.test(token[0] === "`" ? code[at - 1] ?? "" : "")) {
      return token;
    }
    const name = nameOf(value);
    if (name === undefined) {
      remaining.push(`${value}`);
      return token;
    }
    if (declaresArgs) throw parameterError(name, "the code declares its own variable `args`");
    count(counts, name);
    const isKey = /[{,]$/.test(code.slice(0, at).trimEnd().slice(-1)) &&
      code.slice(at + token.length).trimStart().startsWith(":");
    return isKey ? `[args.${name}]` : `args.${name}`;
  });
  return { text, counts, usedNames, remaining };
}

/** Returns the value of a literal; undefined for other tokens and templates with expressions. */
function valueOf(token: string): Json | undefined {
  const [quote = ""] = token;
  if (quote === "/" || quote === "`" && token.includes("${")) return undefined;
  if (!/["'`]/.test(quote)) return /^[tf]/.test(token) ? token === "true" : numberOf(token);
  // Converts the escapes of JavaScript to the escapes of JSON, which escapes only double quotes.
  const inner = token.slice(1, -1).replaceAll("\n", "\\n")
    .replace(/\\?(["'`])|\\[^]/g, (all, own) => own === '"' ? '\\"' : own ?? all);
  try {
    return JSON.parse(`"${inner}"`);
  } catch {
    // The token contains an escape that JSON does not have.
    return undefined;
  }
}

function numberOf(token: string): number | undefined {
  const value = Number(token.replaceAll("_", ""));
  return Number.isFinite(value) ? value : undefined;
}

function replaceInPlan(text: string, nameOf: NameOf): ReplacedLiterals {
  const counts = new Map<string, number>();
  const usedNames: string[] = [];
  const remaining: string[] = [];
  const replace = (value: Json): Json => {
    const name = nameOf(value);
    if (name !== undefined) {
      count(counts, name);
      return { $ref: `$params#/${name}` };
    }
    if (typeof value === "string") remaining.push(value);
    if (Array.isArray(value)) return value.map(replace);
    if (!isObject(value)) return value;
    const { $ref, $literal } = value as JsonObject;
    if ($literal !== undefined) {
      return nameOf($literal) === undefined ? value as Json : replace($literal);
    }
    if (typeof $ref !== "string") return replaceIn(value as JsonObject, Object.keys(value));
    if (EARLIER_OUTPUT.test($ref)) {
      throw new PmlError(
        "BAD_ARGUMENTS",
        `Cannot save the plan: ${quoted($ref)} is an output of an earlier run`,
        {
          hint: "Add the task that returns it to the plan",
        },
      );
    }
    const [, usedName] = /^\$params#\/([^/]+)/.exec($ref) ?? [];
    if (usedName !== undefined) usedNames.push(usedName);
    return value as JsonObject;
  };
  const replaceIn = (value: JsonObject, keys: readonly string[]): JsonObject => ({
    ...value,
    ...Object.fromEntries(
      keys.flatMap((key) => value[key] === undefined ? [] : [[key, replace(value[key])]]),
    ),
  });
  const tasks = tasksOf(text).map((task) => replaceIn(task, ["arguments", "for_each", "when"]));
  const plan = { ...parseExact(text), tasks };
  return { text: JSON.stringify(plan, null, 2), counts, usedNames, remaining };
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

function parameterError(name: string, why: string): PmlError {
  return new PmlError("BAD_ARGUMENTS", `Cannot make a parameter ${quoted(name)}: ${why}`, {
    hint: 'Name each value exactly as one literal of what ran, such as {"city": "Paris"}',
  });
}
