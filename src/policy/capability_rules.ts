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
  rule: "all that it calls is allowed",
  source: "defaults",
};

/** Returns the tools that capabilities call. `Capabilities` is one. */
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
 * when it happens. `plain` judges by the rules alone, and `judge` judges other tools.
 */
export function capabilityJudge(all: CapabilityTools, plain: Judge, judge: Judge): Judge {
  return (asked, args) => {
    const verdicts = new Map<ToolId, Verdict>();
    const whole = (id: ToolId, own: typeof args): Verdict => {
      const tools = all.toolsOf(id);
      if (tools === undefined) return judge(id, own);
      const before = verdicts.get(id);
      if (before !== undefined) return before;
      const said = plain(id, own);
      // A cycle of capabilities does not allow itself: inside it, this verdict counts.
      verdicts.set(id, said);
      if (said.kind === "deny") return said;
      const inner = tools.map((tool) => whole(tool, undefined));
      const isNamed = said.rule !== "no rule" || said.source !== "defaults";
      const isAllowed = !isNamed && inner.every(({ kind }) => kind === "allow");
      const verdict = inner.find(({ kind }) => kind === "deny") ??
        (isAllowed ? ALL_ALLOWED : said);
      verdicts.set(id, verdict);
      return verdict;
    };
    return whole(asked, args);
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
 * Returns whether a capability that calls these tools may run without a question: `auto` if all are
 * allowed, `hil` (a human in the loop) if one asks or no rule matches it. Each real call is judged
 * again, so this allows nothing by itself.
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
    .map(({ text, id = text as ToolId }) => ({ id, said: judge(id) }));
  for (const { id, said } of verdicts) if (said.kind === "deny") throw deniedByRule(id, said);
  // Without the modules it is unknown which tools these rules cover.
  const unknown = [...rules(deny), ...rules(ask)].map(({ pattern }) => pattern)
    .filter(({ kind }) => kind === "reads");
  const isAllowed = ({ id, said }: typeof verdicts[number]) =>
    said.kind === "allow" && parseToolId(id) !== undefined &&
    !unknown.some((pattern) => matches(pattern, id, true));
  return verdicts.every(isAllowed) ? "auto" : "hil";
}
