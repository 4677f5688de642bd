/**
 * The grammar of rules: which tools a rule covers, and with which arguments. Only this file parses
 * rules.
 *
 * @module
 */

import { PmlError } from "./errors.ts";
import { withEqualNumbers, withRoundedNumbers } from "./exact_number.ts";
import { canonical, isObject, type JsonObject, quoted } from "./json.ts";
import { isServerName, isToolName, splitToolId, type ToolId } from "./tool_id.ts";
import { parseExact } from "./exact_json.ts";
import { nodePath, type PathRules, PATHS, POSIX } from "./paths.ts";

/** The parts of MCP, besides tools, that a rule can name. */
export const PART_RULE_NAMES = [
  "@resources",
  "@prompts",
  "@skills",
  "@sampling",
  "@elicitation",
  "@roots",
] as const;

/** The tools of a server that PML itself knows to only read, in the place of a tool. */
export const READS_RULE_NAME = "@reads";

/** A part of MCP that is not a tool. */
export type PartRuleName = typeof PART_RULE_NAMES[number];

/** The grammar of a rule, for messages. */
export const GRAMMAR =
  '"*", "server:*", "server:@reads", "server:tool", "server:tool(name=glob, ...)" or ' +
  '"server:tool({JSON})"';

/** A method that is not one of MCP itself, in the place of a tool. */
const METHOD = /^@method\([\w./$-]{1,128}\)$/;

/** The largest length of a rule, in characters. */
export const RULE_MAX = 4_096;

/** The largest size of a file with rules, in bytes. */
export const RULES_FILE_MAX = 1_000_000;

/** A condition on one argument. */
export interface Condition {
  /** The name of the argument. */
  readonly name: string;
  /** The glob that must match the text of the argument. */
  readonly glob: string;
}

/** The tool that a rule names. */
export interface NamedTool {
  /** The text that the user wrote. */
  readonly text: string;
  /** The name of the server. */
  readonly server: string;
  /** The name of the tool. */
  readonly tool: string;
}

/** A parsed rule. `text` is the rule as the user wrote it. */
export type Pattern =
  | { readonly kind: "any"; readonly text: string }
  | { readonly kind: "server"; readonly text: string; readonly server: string }
  | { readonly kind: "reads"; readonly text: string; readonly server: string }
  | NamedTool & { readonly kind: "exact" }
  | NamedTool & { readonly kind: "conditions"; readonly conditions: readonly Condition[] }
  | NamedTool & {
    readonly kind: "arguments";
    readonly canonical: string;
    /** The same text with numbers as the platform rounds them; undefined if one is infinite. */
    readonly rounded: string | undefined;
  };

/** How narrow a pattern is. A larger number wins over a smaller one. */
const NARROWNESS = { any: 0, server: 1, reads: 2, exact: 3, conditions: 4, arguments: 4 } as const;

const CONDITIONS_MAX = 16;
const PLAIN = String.raw`(?:[^\\,() \p{Cc}]|\\[\\*,() ])`;
const CONDITION = String.raw`([\w$.\-]{1,64})=((?:${PLAIN}(?: *${PLAIN})*)?)`;
const CONDITIONS = new RegExp(`^${CONDITION}(?:, ?${CONDITION})*$`, "u");
const EACH = new RegExp(`${CONDITION}(?:, ?|$)`, "gu");
/** A condition, of which only the end is certain. */
const ROUGHLY = /([\w$.\-]{1,64})=((?:\\.|[^\\,])*)/gsu;
const PATH_NAME =
  /(?:path|file|file_?name|dir|directory|folder|cwd)$|(?:^|[^a-z\d])(?:source|src|destination|dest|target|from|to|repo)$/i;

/**
 * Returns the name that rules have for a method which is not one of MCP itself, for example
 * `@method(skills/list)`; undefined if no rule can name it.
 */
export function methodRuleName(method: string): string | undefined {
  const name = `@method(${method})`;
  return METHOD.test(name) ? name : undefined;
}

/** Returns whether rules know this as a method which is not one of MCP itself. */
export function isMethodRuleName(name: string): boolean {
  return METHOD.test(name);
}

/** Parses a rule, with paths as a system has them. Throws CONFIG_INVALID if it is not valid. */
export function parsePattern(text: string, rules: PathRules = PATHS): Pattern {
  const pattern = text.length <= RULE_MAX ? read(text, rules) : undefined;
  if (pattern !== undefined) return pattern;
  throw new PmlError("CONFIG_INVALID", `Cannot read the rule ${quoted(text)}`, {
    hint: `Write ${GRAMMAR}; docs/rules.md has examples`,
  });
}

/**
 * Returns whether a pattern covers a tool with at least some arguments. `isReader` is whether PML
 * knows that the tool only reads.
 */
export function matches(pattern: Pattern, id: ToolId, isReader = false): boolean {
  if (pattern.kind === "any") return true;
  const { server, tool } = splitToolId(id);
  if (pattern.server !== server) return false;
  if (!("tool" in pattern)) return pattern.kind === "server" || isReader;
  return [tool, widerRuleName(tool)].includes(pattern.tool);
}

/**
 * Returns the part of MCP whose rules also apply to another part: the files of skills are resources.
 * Undefined for all others.
 */
export function widerRuleName(tool: string): PartRuleName | undefined {
  return tool === "@skills" ? "@resources" : undefined;
}

/** Returns whether one of these patterns covers a tool, whatever its arguments are. */
export function covers(patterns: readonly Pattern[], id: ToolId): boolean {
  return patterns.some((pattern) => matches(pattern, id));
}

/**
 * Returns how narrow a pattern is: `*`, `server:*`, `server:@reads`, `server:tool`, and a tool with
 * arguments, in this order.
 */
export function narrowness(pattern: Pattern): number {
  return NARROWNESS[pattern.kind];
}

/** Returns the rule that covers a tool with exactly these arguments; undefined if no rule can. */
export function argumentsRule(id: ToolId, args: JsonObject): string | undefined {
  try {
    const { text } = parsePattern(`${id}(${canonical(withEqualNumbers(args))})`);
    return text;
  } catch {
    return undefined; // too long, or not valid JSON: the user is asked each time
  }
}

/** Returns whether two texts are the same rule. The white space of its JSON does not matter. */
export function isSameRule(one: unknown, rule: string): boolean {
  if (one === rule || typeof one !== "string") return one === rule;
  const pattern = one.length <= RULE_MAX ? read(one) : undefined;
  return pattern?.kind === "arguments" &&
    `${pattern.server}:${pattern.tool}(${pattern.canonical})` === rule;
}

/** Returns whether an argument is a path, judged by its name. */
export function isPathName(name: string): boolean {
  return PATH_NAME.test(name.replace(/(?<=[a-z\d])(?=[A-Z])/g, "_"));
}

function read(text: string, rules: PathRules = PATHS): Pattern | undefined {
  if (text === "*") return { kind: "any", text };
  const [, of = "", method = ""] = /^([^:(]*):(@method\([^()]*\))$/.exec(text) ?? [];
  if (METHOD.test(method)) {
    return isServerName(of) ? { kind: "exact", text, server: of, tool: method } : undefined;
  }
  const [, server = "", tool = "", condition] = /^([^:(]*):([^(]*)(\([^]*\))?$/.exec(text) ?? [];
  if (!isServerName(server)) return undefined;
  if (condition !== undefined) {
    const within = condition.slice(1, -1);
    if (!isToolName(tool)) return undefined;
    return /^\{[^]*\}$/.test(within)
      ? withArguments({ text, server, tool }, within)
      : withConditions({ text, server, tool }, slashed(within, rules));
  }
  if (tool === "*") return { kind: "server", text, server };
  if (tool === READS_RULE_NAME) return { kind: "reads", text, server };
  return isToolName(tool) || (PART_RULE_NAMES as readonly string[]).includes(tool)
    ? { kind: "exact", text, server, tool }
    : undefined;
}

function withArguments(named: NamedTool, json: string): Pattern | undefined {
  try {
    const value: unknown = parseExact(json);
    if (!isObject(value)) return undefined;
    const text = canonical(withEqualNumbers(value as JsonObject));
    const near = withRoundedNumbers(value as JsonObject);
    return {
      ...named,
      kind: "arguments",
      canonical: text,
      rounded: near === value ? text : canonicalOf(near),
    };
  } catch {
    return undefined; // the caller reports the error
  }
}

function canonicalOf(value: JsonObject): string | undefined {
  try {
    return canonical(value);
  } catch {
    return undefined; // a number is infinite
  }
}

/** Returns conditions with `/` between the names of their paths. */
function slashed(conditions: string, rules: PathRules): string {
  if (rules === POSIX) return conditions;
  return conditions.replace(
    ROUGHLY,
    (all, name, glob) => isPathName(name) ? `${name}=${rules.glob(glob)}` : all,
  );
}

function withConditions(named: NamedTool, text: string): Pattern | undefined {
  if (!CONDITIONS.test(text)) return undefined;
  const conditions = Array.from(
    text.matchAll(EACH),
    ([, name = "", glob = ""]) => ({ name, glob }),
  );
  // Paths are compared in their plain form, so a rule with another form would never match.
  const plain = conditions.every(({ name, glob }) =>
    !isPathName(name) || nodePath().posix.normalize(glob) === glob
  );
  if (!plain || conditions.length > CONDITIONS_MAX) return undefined;
  return { ...named, kind: "conditions", conditions };
}
