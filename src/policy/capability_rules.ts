/**
 * Judges capabilities by the rules for their names and for the tools that they call.
 *
 * @module
 */

import type { Verdict } from "../protocol/verdict.ts";
import { matches, parsePattern } from "../core/pattern.ts";
import { parseToolId, type ToolId } from "../core/tool_id.ts";
import { deniedByRule, type Judge, makeJudge } from "./rules.ts";
import type { CapabilityPolicy } from "./snapshot.ts";

/** The verdict for a capability that no rule names, and whose calls are all allowed. */
const ALL_ALLOWED: Verdict = {
  kind: "allow",
  rule: "every tool that it calls is allowed",
  source: "defaults",
};

/** Finds the tools that capabilities call. `Capabilities` implements it. */
export interface CapabilityTools {
  /** Returns the tools that a capability calls; undefined if the id is not a capability's. */
  toolsOf(id: ToolId): readonly ToolId[] | undefined;
}

/** The capabilities that the user saved, as the rules see them. */
export class SavedCapabilityRules implements CapabilityPolicy {
  readonly names: readonly string[];
  readonly #tools: CapabilityTools;

  /** Takes the whole names of the capabilities. */
  constructor(names: readonly string[], tools: CapabilityTools) {
    this.names = names;
    this.#tools = tools;
  }

  judge(plain: Judge, judge: Judge): Judge {
    return capabilityJudge(this.#tools, plain, judge);
  }
}

/**
 * Returns a judge for capabilities and tools. A deny rule for any tool that a capability calls
 * denies the capability. If no rule matches its name, it runs without a question if all its tools
 * are allowed, and asks otherwise. The tools are those of earlier runs; each call is judged again
 * when it happens. `plain` judges a capability by the rules for its name, and `judge` judges tools.
 */
export function capabilityJudge(
  capabilities: CapabilityTools,
  plain: Judge,
  judge: Judge,
): Judge {
  return (calledId, calledArgs) => {
    const verdicts = new Map<ToolId, Verdict>();
    const judgeWithTools = (id: ToolId, args: typeof calledArgs): Verdict => {
      const tools = capabilities.toolsOf(id);
      if (tools === undefined) return judge(id, args);
      const before = verdicts.get(id);
      if (before !== undefined) return before;
      const ownVerdict = plain(id, args);
      // Ends the recursion of capabilities that call each other: the inner call gets this verdict.
      verdicts.set(id, ownVerdict);
      if (ownVerdict.kind === "deny") return ownVerdict;
      const inner = tools.map((tool) => judgeWithTools(tool, undefined));
      const isNamed = ownVerdict.rule !== "no rule" || ownVerdict.source !== "defaults";
      const isAllowed = !isNamed && inner.every(({ kind }) => kind === "allow");
      const verdict = inner.find(({ kind }) => kind === "deny") ??
        (isAllowed ? ALL_ALLOWED : ownVerdict);
      verdicts.set(id, verdict);
      return verdict;
    };
    return judgeWithTools(calledId, calledArgs);
  };
}

/** The user's rules as lists of patterns, as a `.pml.json` has them. */
export interface PermissionLists {
  /** Patterns of the calls that run without a question. */
  readonly allow?: readonly string[];
  /** Patterns of the calls that need approval. */
  readonly ask?: readonly string[];
  /** Patterns of the calls that are refused. */
  readonly deny?: readonly string[];
}

/**
 * Returns whether a capability that calls these tools may run without a question: `auto` if all
 * tools are allowed, `hil` (a human in the loop) if an ask rule or no rule matches a tool. Each
 * real call is judged again, so this allows nothing by itself.
 *
 * @throws {PmlError} PERMISSION_DENIED if a rule denies one of the tools; CONFIG_INVALID if a pattern
 * is not a rule.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { inferCapabilityApprovalMode } from "@casys/pml";
 *
 * const permissions = { allow: ["git:*"], ask: ["git:push"], deny: ["shell:*"] };
 * assert.equal(inferCapabilityApprovalMode(["git:status"], permissions), "auto");
 * assert.equal(inferCapabilityApprovalMode(["git:status", "git:push"], permissions), "hil");
 * assert.throws(() => inferCapabilityApprovalMode(["shell:exec"], permissions), {
 *   code: "PERMISSION_DENIED",
 * });
 * ```
 */
export function inferCapabilityApprovalMode(
  toolsUsed: readonly string[],
  permissions: PermissionLists,
): "auto" | "hil" {
  const rules = (list: readonly string[] = []) =>
    list.map((text) => ({ pattern: parsePattern(text), source: "permissions" }));
  const { allow, ask, deny } = permissions;
  const judge = makeJudge({ deny: rules(deny), ask: rules(ask), allow: rules(allow) }, {
    // The caller knows the servers of these tools, so no call is a first use.
    known: () => true,
  });
  // An invalid tool name matches only a bare `*` in deny and ask, and no allow rule.
  const verdicts = toolsUsed.map((text) => ({ text, id: parseToolId(text) }))
    .map(({ text, id = text as ToolId }) => ({ id, verdict: judge(id) }));
  for (const { id, verdict } of verdicts) {
    if (verdict.kind === "deny") throw deniedByRule(id, verdict);
  }
  // A `reads` rule covers the tools that only read. Their definitions are unknown here, so such a
  // deny or ask rule counts for each tool of its server.
  const readsPatterns = [...rules(deny), ...rules(ask)].map(({ pattern }) => pattern)
    .filter(({ kind }) => kind === "reads");
  const isAllowed = ({ id, verdict }: typeof verdicts[number]) =>
    verdict.kind === "allow" && parseToolId(id) !== undefined &&
    !readsPatterns.some((pattern) => matches(pattern, id, true));
  return verdicts.every(isAllowed) ? "auto" : "hil";
}
