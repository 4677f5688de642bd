/**
 * Judges calls by the user's allow, ask and deny rules.
 *
 * @module
 */

import type { Verdict } from "../protocol/verdict.ts";
import { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { type JsonObject, quoted, visible } from "../core/json.ts";
import { dropOldest } from "../core/memo.ts";
import { READS_RULE_NAME, widerRuleName } from "../core/pattern.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { type PathSystem, SeenArguments } from "./_arguments.ts";
import type { PathVariables } from "./_path_readings.ts";
import { type Rule, RuleIndex } from "./_rule_index.ts";

export type { PathVariables } from "./_path_readings.ts";
export type { Rule } from "./_rule_index.ts";

const ASKS: Verdict = { kind: "ask", rule: "no rule", source: "defaults" };
const FOLLOWS: Verdict = { kind: "allow", rule: "approved with its server", source: "defaults" };
/**
 * The verdicts for other features of MCP if no rule matches: they are approved together with their
 * server. Sampling is not, because it sends text to the client.
 */
const UNNAMED: Readonly<Record<string, Verdict>> = {
  "@resources": FOLLOWS,
  "@prompts": FOLLOWS,
  "@skills": FOLLOWS,
  "@elicitation": FOLLOWS,
  "@roots": FOLLOWS,
  // Listing the tools of a server. No rule can name it.
  "@tools": FOLLOWS,
};

/** The other features of MCP that an ask rule `*` covers. */
const COVERED_BY_ANY: readonly string[] = ["@resources", "@prompts", "@skills"];

/** The maximum number of argument-dependent rules that a verdict lists. */
const SHOWN = 5;
/** The maximum number of cached verdicts. */
const FIXED_MAX = 10_000;

/** The three lists of rules. The order within a list has no meaning. */
export interface RuleSet {
  readonly deny: readonly Rule[];
  readonly ask: readonly Rule[];
  readonly allow: readonly Rule[];
}

/**
 * Returns the verdict of the rules for a call. Without arguments, the verdict is valid for any
 * arguments: a deny rule with conditions is ignored, and an allow rule with conditions asks.
 * `given` are the arguments without those that the user fixed.
 */
export type Judge = (id: ToolId, args?: JsonObject, given?: JsonObject) => Verdict;

/** Derives from the permissions of modules which tools only read. `Directory` implements it. */
export interface Readers {
  /** Returns whether PML derives that a tool only reads. */
  isReader(id: ToolId): boolean;
}

/** The options of `makeJudge`. */
export interface JudgeOptions {
  /**
   * Returns whether a server is built in or was approved before, or this tool of it was. If
   * missing, no server is known.
   */
  readonly known?: (server: string, id: ToolId) => boolean;
  /** The real path of the folder that paths are relative to. If missing, no path is certain. */
  readonly workspace?: string;
  /**
   * Returns the variables of a server that may expand the paths it gets; undefined if its paths are
   * literal, as those of all servers are if this is missing.
   */
  readonly variablesOf?: (server: string) => PathVariables | undefined;
  /** The tools that PML knows to only read; none if it is missing. */
  readonly readers?: Readers;
  /** The file system that resolves paths; by default that of this machine. */
  readonly system?: PathSystem;
  /** Whether other rules may name the variables of a program. Then these rules deny none of them. */
  readonly isPart?: boolean;
}

/**
 * Returns the judge of a set of rules. Any matching deny rule wins; then the narrowest of the allow
 * and ask rules, and ask if two are equal. A bare `*` in allow covers neither `shell` nor the first
 * use of a server.
 */
export function makeJudge(rules: RuleSet, options: JudgeOptions = {}): Judge {
  const deny = new RuleIndex(rules.deny);
  const ask = new RuleIndex(rules.ask);
  const allow = new RuleIndex(rules.allow);
  const lists = [deny, ask, allow];
  const plainly = (id: ToolId): Verdict => {
    const { server, tool } = splitToolId(id);
    const isMethod = tool.startsWith("@");
    for (const scope of scopesOf(id, isReader(id, lists, options.readers))) {
      const isUncovered = isMethod && scope === "*" && !COVERED_BY_ANY.includes(tool);
      const asking = isUncovered ? undefined : ask.plain(scope);
      if (asking) return verdict("ask", asking);
      if (isMethod && scope === "*") return UNNAMED[tool] ?? ASKS;
      const allowing = allow.plain(scope);
      if (allowing && (scope !== "*" || server !== "shell" && options.known?.(server, id))) {
        return verdict("allow", allowing);
      }
    }
    const rule = !allow.plain("*") ? "no rule" : server === "shell" ? "shell asks" : "first use";
    return { kind: "ask", rule, source: "defaults" };
  };
  const judge: Judge = (id, args) => {
    const variables = options.variablesOf?.(splitToolId(id).server);
    const { workspace, system } = options;
    const seen = args && new SeenArguments(args, { workspace, variables, system });
    for (const scope of scopesOf(id, isReader(id, lists, options.readers))) {
      const rule = deny.plain(scope);
      if (rule) return verdict("deny", rule);
    }
    if (seen === undefined) return unseen(id, { deny, ask, allow, plain: plainly(id) });
    const denying = deny.perhaps(id, seen);
    if (denying) return verdict("deny", denying);
    const [steering] = id.startsWith("shell:") && !options.isPart ? seen.steering : [];
    if (steering !== undefined && ![ask, allow].some((list) => list.names(id, seen))) {
      const rule = `no rule names ${quoted(steering)}`;
      return { kind: "deny", rule, source: "defaults", steering };
    }
    const asking = ask.perhaps(id, seen) ?? deny.undecided(id, seen) ?? ask.undecided(id, seen);
    if (asking) return verdict("ask", asking);
    const allowing = allow.surely(id, seen);
    return allowing ? { ...verdict("allow", allowing), isConditional: true } : plainly(id);
  };
  const fixed = new Map<ToolId, Verdict>();
  return (id, args) => {
    const fixedVerdict = fixed.get(id);
    if (fixedVerdict !== undefined) return fixedVerdict;
    const found = judge(id, args);
    // Most verdicts depend neither on arguments nor on modules that can be loaded later.
    const isFixed = !id.startsWith("shell:") && !lists.some((list) => list.isNarrow(id)) &&
      !hasReadsRule(lists, id);
    if (isFixed) {
      // The cache is bounded because a model can name any number of missing tools.
      dropOldest(fixed, FIXED_MAX);
      fixed.set(id, found);
    }
    return found;
  };
}

/** Returns a hash of the rules that does not depend on their order. */
export function rulesVersion(rules: RuleSet): string {
  const texts = [rules.deny, rules.ask, rules.allow].map((list) =>
    list.map((rule) => JSON.stringify([rule.pattern.text, rule.source])).sort()
  );
  return sha256(JSON.stringify(texts));
}

/** Returns the error of a call that a deny rule matches. */
export function deniedByRule(id: ToolId, verdict: Verdict): PmlError {
  const { steering } = verdict;
  if (steering !== undefined) {
    const name = visible(steering);
    const why = `Cannot run ${quoted(id, 200)}: "${name}" in env changes what programs do`;
    return new PmlError("PERMISSION_DENIED", why, {
      hint: `Remove it, or request a rule that names it: ${id}(env=${name})`,
    });
  }
  const { rule, source } = verdict;
  const who = source.startsWith("the company") ? "the administrator of this machine" : "the user";
  return new PmlError("PERMISSION_DENIED", `Cannot run ${quoted(id, 200)}: a deny rule matches`, {
    hint: `The rule ${quoted(rule, 200)} in ${quoted(source, 200)} forbids it; ` +
      `only ${who} can change it`,
  });
}

/** Returns whether a rule names the tools of a server that only read, and this is a tool. */
function hasReadsRule(lists: readonly RuleIndex[], id: ToolId): boolean {
  const { server, tool } = splitToolId(id);
  const scope = `${server}:${READS_RULE_NAME}`;
  return !tool.startsWith("@") && lists.some((list) => list.plain(scope) !== undefined);
}

/** Returns whether rules for the tools of its server that read cover a tool. */
function isReader(id: ToolId, lists: readonly RuleIndex[], readers: Readers | undefined): boolean {
  // Most servers have no such rule. Then there is nothing to derive.
  return readers !== undefined && hasReadsRule(lists, id) && readers.isReader(id);
}

/** Returns the texts of rules that cover a tool, the narrowest first. */
function scopesOf(id: ToolId, isReader: boolean): readonly string[] {
  const { server, tool } = splitToolId(id);
  const wider = widerRuleName(tool);
  const own = wider === undefined ? [id] : [id, `${server}:${wider}`];
  const reads = isReader ? [`${server}:${READS_RULE_NAME}`] : [];
  return [...own, ...reads, `${server}:*`, "*"];
}

/** Returns the verdict for any arguments, with the rules that depend on them. */
function unseen(
  id: ToolId,
  { deny, ask, allow, plain }: Record<"deny" | "ask" | "allow", RuleIndex> & {
    readonly plain: Verdict;
  },
): Verdict {
  const [asks, allows] = [ask.narrow(id, SHOWN), allow.narrow(id, SHOWN)];
  const all = [...deny.narrow(id, SHOWN), ...asks, ...allows];
  if (all.length === 0) return plain;
  const [first] = plain.kind === "allow" ? asks : [...asks, ...allows];
  const asking = first === undefined ? plain : verdict("ask", first);
  return { ...asking, depends: all.slice(0, SHOWN).map(({ pattern }) => pattern.text) };
}

function verdict(kind: Verdict["kind"], { pattern, source }: Rule): Verdict {
  return { kind, rule: pattern.text, source };
}
