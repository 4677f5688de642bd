/**
 * Judges calls by the user's allow, ask and deny rules.
 *
 * @module
 */

import type { Verdict } from "../protocol/verdict.ts";
import { PmlError } from "../core/errors.ts";
import { type JsonObject, memberOf, quoted, visible } from "../core/json.ts";
import { dropOldest } from "../core/memo.ts";
import { READS_RULE_NAME, widerRuleName } from "../core/pattern.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { MatchableArguments, type PathSystem } from "./_arguments.ts";
import type { PathVariables } from "./_path_readings.ts";
import { type Rule, RuleIndex } from "./_rule_index.ts";

export type { PathVariables } from "./_path_readings.ts";
export type { Rule } from "./_rule_index.ts";

const ASK_BY_DEFAULT: Verdict = { kind: "ask", rule: "no rule", source: "defaults" };
const WITH_SERVER: Verdict = {
  kind: "allow",
  rule: "approved with its server",
  source: "defaults",
};
/**
 * The verdicts for features of MCP other than tools if no rule matches: they are approved together
 * with their server. Sampling is missing because it sends text to the client.
 */
const FEATURE_DEFAULTS: Readonly<Record<string, Verdict>> = {
  "@resources": WITH_SERVER,
  "@prompts": WITH_SERVER,
  "@skills": WITH_SERVER,
  "@elicitation": WITH_SERVER,
  "@roots": WITH_SERVER,
  // Listing the tools of a server. No rule can name it.
  "@tools": WITH_SERVER,
};

/** The features of MCP other than tools that an ask rule `*` covers. */
const COVERED_BY_ANY: readonly string[] = ["@resources", "@prompts", "@skills"];

/** The maximum number of argument-dependent rules that a verdict lists. */
const SHOWN_MAX = 5;
/** The maximum number of cached verdicts. */
const CACHED_MAX = 10_000;

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
   * Returns whether a server is built in, or the server or this tool was approved before. If
   * missing, no server is known.
   */
  readonly known?: (server: string, id: ToolId) => boolean;
  /** The real path of the folder that paths are relative to. If missing, no path is certain. */
  readonly workspace?: string;
  /**
   * Returns the variables of a server that may expand the paths it gets; undefined if its paths are
   * literal. If this function is missing, the paths of all servers are literal.
   */
  readonly variablesOf?: (server: string) => PathVariables | undefined;
  /** The tools that PML knows to only read; none if it is missing. */
  readonly readers?: Readers;
  /** The file system that resolves paths; by default this machine's. */
  readonly system?: PathSystem;
  /**
   * Whether these are only a part of the rules. Then a variable that changes how programs run is
   * allowed even if no rule of this part names it, because another part may name it.
   */
  readonly isPart?: boolean;
}

/** The argument of a server that names the folder where its other paths start. */
const PATH_BASES: Readonly<Record<string, string>> = { git: "repo" };

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
  const judgeAny = (id: ToolId): Verdict => {
    const { server, tool } = splitToolId(id);
    const isMethod = tool.startsWith("@");
    for (const scope of scopesOf(id, isReader(id, lists, options.readers))) {
      const isUncovered = isMethod && scope === "*" && !COVERED_BY_ANY.includes(tool);
      const askRule = isUncovered ? undefined : ask.findPlain(scope);
      if (askRule) return toVerdict("ask", askRule);
      if (isMethod && scope === "*") return FEATURE_DEFAULTS[tool] ?? ASK_BY_DEFAULT;
      const allowRule = allow.findPlain(scope);
      if (allowRule && (scope !== "*" || server !== "shell" && options.known?.(server, id))) {
        return toVerdict("allow", allowRule);
      }
    }
    const whyAnyAsks = server === "shell" ? "shell asks" : "first use";
    const rule = allow.findPlain("*") ? whyAnyAsks : "no rule";
    return { kind: "ask", rule, source: "defaults" };
  };
  const judge: Judge = (id, args) => {
    const { server } = splitToolId(id);
    const [base, variables] = [memberOf(PATH_BASES, server), options.variablesOf?.(server)];
    const { workspace, system } = options;
    const forms = args && new MatchableArguments(args, { workspace, variables, base, system });
    for (const scope of scopesOf(id, isReader(id, lists, options.readers))) {
      const rule = deny.findPlain(scope);
      if (rule) return toVerdict("deny", rule);
    }
    if (forms === undefined) return verdictForAny(id, { deny, ask, allow, plain: judgeAny(id) });
    const denyRule = deny.findPossible(id, forms);
    if (denyRule) return toVerdict("deny", denyRule);
    const [steering] = id.startsWith("shell:") && !options.isPart ? forms.steering : [];
    if (steering !== undefined && ![ask, allow].some((list) => list.namesVariables(id, forms))) {
      const rule = `no rule names ${quoted(steering)}`;
      return { kind: "deny", rule, source: "defaults", steering };
    }
    const askRule = ask.findPossible(id, forms) ?? deny.findUndecided(id, forms) ??
      ask.findUndecided(id, forms);
    if (askRule) return toVerdict("ask", askRule);
    const allowRule = allow.findCertain(id, forms);
    return allowRule ? { ...toVerdict("allow", allowRule), isConditional: true } : judgeAny(id);
  };
  const cache = new Map<ToolId, Verdict>();
  return (id, args) => {
    const cached = cache.get(id);
    if (cached !== undefined) return cached;
    const verdict = judge(id, args);
    // Most verdicts depend neither on arguments nor on modules that can be loaded later.
    const isNarrow = id.startsWith("shell:") || lists.some((list) => list.isNarrow(id));
    if (!isNarrow && !hasReadsRule(lists, id)) {
      // The cache is bounded because a model can name any number of missing tools.
      dropOldest(cache, CACHED_MAX);
      cache.set(id, verdict);
    }
    return verdict;
  };
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

/**
 * Returns whether a rule covers all tools of the server that only read, and the id belongs to a
 * tool and not to another feature of MCP.
 */
function hasReadsRule(lists: readonly RuleIndex[], id: ToolId): boolean {
  const { server, tool } = splitToolId(id);
  const scope = `${server}:${READS_RULE_NAME}`;
  return !tool.startsWith("@") && lists.some((list) => list.findPlain(scope) !== undefined);
}

/** Returns whether a tool only reads, and a rule covers all tools of its server that only read. */
function isReader(id: ToolId, lists: readonly RuleIndex[], readers: Readers | undefined): boolean {
  // Checked first, because most servers have no such rule, and `isReader()` takes time.
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

/** Returns the verdict for any arguments, with the rules that depend on the arguments. */
function verdictForAny(
  id: ToolId,
  { deny, ask, allow, plain }: Record<"deny" | "ask" | "allow", RuleIndex> & {
    readonly plain: Verdict;
  },
): Verdict {
  const [asks, allows] = [ask.findNarrow(id, SHOWN_MAX), allow.findNarrow(id, SHOWN_MAX)];
  const all = [...deny.findNarrow(id, SHOWN_MAX), ...asks, ...allows];
  if (all.length === 0) return plain;
  const [first] = plain.kind === "allow" ? asks : [...asks, ...allows];
  const verdict = first === undefined ? plain : toVerdict("ask", first);
  return { ...verdict, depends: all.slice(0, SHOWN_MAX).map(({ pattern }) => pattern.text) };
}

function toVerdict(kind: Verdict["kind"], { pattern, source }: Rule): Verdict {
  return { kind, rule: pattern.text, source };
}
