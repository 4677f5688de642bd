/**
 * The grammar of rules: which tools a rule covers, and with which arguments. Only this file parses
 * rules.
 *
 * @module
 */

import { PmlError } from "./errors.ts";
import { withEqualNumbers, withRoundedNumbers } from "./exact_number.ts";
import { canonicalJson, isObject, type JsonObject, quoted } from "./json.ts";
import { isServerName, isToolName, splitToolId, type ToolId, toolId, toolSlug } from "./tool_id.ts";
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

/** The name in rules for all tools of a server that only read, as far as PML itself can be sure. */
export const READS_RULE_NAME = "@reads";

/** A part of MCP that is not a tool. */
export type PartRuleName = typeof PART_RULE_NAMES[number];

/** The grammar of a rule, for messages. */
export const GRAMMAR =
  '"*", "server:*", "server:@reads", "server:tool", "server:tool(name=glob, ...)" or ' +
  '"server:tool({JSON})"';

/** The name in rules for a method that MCP does not define. */
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
    /** The canonical JSON of the arguments. */
    readonly canonical: string;
    /** The same with numbers as the platform rounds them; undefined if a number is infinite. */
    readonly rounded: string | undefined;
  };

/** How narrow each kind of pattern is. A narrower pattern (larger number) has priority. */
const NARROWNESS = { any: 0, server: 1, reads: 2, exact: 3, conditions: 4, arguments: 4 } as const;

const CONDITIONS_MAX = 16;
const GLOB_CHARACTER = String.raw`(?:[^\\,() \p{Cc}]|\\[\\*,() ])`;
const CONDITION = String.raw`([\w$.\-]{1,64})=((?:${GLOB_CHARACTER}(?: *${GLOB_CHARACTER})*)?)`;
const CONDITIONS = new RegExp(`^${CONDITION}(?:, ?${CONDITION})*$`, "u");
const EACH_CONDITION = new RegExp(`${CONDITION}(?:, ?|$)`, "gu");
/**
 * A text that looks like a condition. Paths of Windows need changes before they match `CONDITION`.
 */
const CONDITION_LIKE = /([\w$.\-]{1,64})=((?:\\.|[^\\,])*)/gsu;
const PATH_NAME =
  /(?:paths?|files?|file_?name|dir|directory|folder|cwd)$|(?:^|[^a-z\d])(?:source|src|destination|dest|target|from|to|repo)$/i;

/**
 * Returns the name in rules for a method that MCP does not define, for example
 * `@method(skills/list)`; undefined if no rule can name the method.
 */
export function methodRuleName(method: string): string | undefined {
  const name = `@method(${method})`;
  return METHOD.test(name) ? name : undefined;
}

/** Returns whether a name in a rule means a method that MCP does not define. */
export function isMethodRuleName(name: string): boolean {
  return METHOD.test(name);
}

/** Parses a rule, with paths in the form of a system. Throws CONFIG_INVALID if it is not valid. */
export function parsePattern(text: string, rules: PathRules = PATHS): Pattern {
  const pattern = text.length <= RULE_MAX ? parseRule(text, rules) : undefined;
  if (pattern !== undefined) return pattern;
  throw new PmlError("CONFIG_INVALID", `Cannot read the rule ${quoted(text)}`, {
    hint: `Write ${validRules(text)}; \`pml allow --help\` has examples`,
  });
}

/** Describes the valid rules, and the one for the tool that an invalid rule seems to name. */
export function validRules(text: string): string {
  const [, server = "", tool = ""] = /^([^:(]*):([^(@*]*\p{L}[^(@*]*)$/u.exec(text) ?? [];
  if (!isServerName(server) || isToolName(tool)) return GRAMMAR;
  return `${quoted(toolId(server, toolSlug(tool)))} for this tool, or ${GRAMMAR}`;
}

/**
 * Returns whether a pattern covers a tool with any arguments. `isReader` is whether PML is sure
 * that the tool only reads.
 */
export function matches(pattern: Pattern, id: ToolId, isReader = false): boolean {
  if (pattern.kind === "any") return true;
  const { server, tool } = splitToolId(id);
  if (pattern.server !== server) return false;
  if (!("tool" in pattern)) return pattern.kind === "server" || isReader;
  return [tool, widerRuleName(tool)].includes(pattern.tool);
}

/**
 * Returns the part of MCP whose rules also apply to `tool`: rules for resources apply to skills,
 * because the files of skills are resources. Returns undefined for everything else.
 */
export function widerRuleName(tool: string): PartRuleName | undefined {
  return tool === "@skills" ? "@resources" : undefined;
}

/** Returns whether one of these patterns covers a tool with any arguments. */
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

/**
 * Returns the rule for a tool with exactly these arguments; undefined if no rule can express them.
 */
export function argumentsRule(id: ToolId, args: JsonObject): string | undefined {
  try {
    const { text } = parsePattern(`${id}(${canonicalJson(withEqualNumbers(args))})`);
    return text;
  } catch {
    return undefined; // too long, or not valid JSON: the user is asked each time
  }
}

/** Returns whether two texts are the same rule. The white space of its JSON does not matter. */
export function isSameRule(text: unknown, rule: string): boolean {
  if (text === rule || typeof text !== "string") return text === rule;
  const pattern = text.length <= RULE_MAX ? parseRule(text) : undefined;
  return pattern?.kind === "arguments" &&
    `${pattern.server}:${pattern.tool}(${pattern.canonical})` === rule;
}

/** Returns whether the name of an argument suggests that its value is a path. */
export function isPathName(name: string): boolean {
  return PATH_NAME.test(name.replace(/(?<=[a-z\d])(?=[A-Z])/g, "_"));
}

function parseRule(text: string, rules: PathRules = PATHS): Pattern | undefined {
  if (text === "*") return { kind: "any", text };
  const [, owner = "", method = ""] = /^([^:(]*):(@method\([^()]*\))$/.exec(text) ?? [];
  if (METHOD.test(method)) {
    return isServerName(owner) ? { kind: "exact", text, server: owner, tool: method } : undefined;
  }
  const [, server = "", tool = "", condition] = /^([^:(]*):([^(]*)(\([^]*\))?$/.exec(text) ?? [];
  if (!isServerName(server)) return undefined;
  if (condition !== undefined) {
    const inner = condition.slice(1, -1);
    if (!isToolName(tool)) return undefined;
    return /^\{[^]*\}$/.test(inner)
      ? withArguments({ text, server, tool }, inner)
      : withConditions({ text, server, tool }, withPlainPaths(inner, rules));
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
    const text = canonicalJson(withEqualNumbers(value as JsonObject));
    const rounded = withRoundedNumbers(value as JsonObject);
    return {
      ...named,
      kind: "arguments",
      canonical: text,
      rounded: rounded === value ? text : canonicalOf(rounded),
    };
  } catch {
    return undefined; // the caller reports the error
  }
}

function canonicalOf(value: JsonObject): string | undefined {
  try {
    return canonicalJson(value);
  } catch {
    return undefined; // a number is infinite
  }
}

/** Returns conditions with `/` between the names of their paths. */
function withPlainPaths(conditions: string, rules: PathRules): string {
  if (rules === POSIX) return conditions;
  return conditions.replace(
    CONDITION_LIKE,
    (all, name, glob) => isPathName(name) ? `${name}=${rules.glob(glob)}` : all,
  );
}

function withConditions(named: NamedTool, text: string): Pattern | undefined {
  if (!CONDITIONS.test(text)) return undefined;
  const conditions = Array.from(
    text.matchAll(EACH_CONDITION),
    ([, name = "", glob = ""]) => ({ name, glob }),
  );
  // Paths are compared in their plain form, so a rule with another form would never match.
  const arePlain = conditions.every(({ name, glob }) =>
    !isPathName(name) || nodePath().posix.normalize(glob) === glob
  );
  if (!arePlain || conditions.length > CONDITIONS_MAX) return undefined;
  return { ...named, kind: "conditions", conditions };
}
