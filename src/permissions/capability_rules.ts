/**
 * What the rules say of a capability: what they say of its name, and of the tools that it calls.
 *
 * @module
 */

import type { Verdict } from "../core/call.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { Judge } from "./rules.ts";

/** The verdict for a capability that no rule names, and whose calls are all allowed. */
const ALL_ALLOWED: Verdict = {
  kind: "allow",
  rule: "all that it calls is allowed",
  source: "defaults",
};

/** The options of `capabilityJudge`. */
export interface CapabilityRules {
  /** Judges by the rules alone. */
  readonly plain: Judge;
  /** Judges tools that are no capabilities. */
  readonly judge: Judge;
  /** Returns the tools that a capability calls; undefined for what is no capability. */
  readonly toolsOf: (id: ToolId) => readonly ToolId[] | undefined;
}

/**
 * Returns a judge that knows capabilities. A deny rule for any tool that a capability calls denies
 * the capability. Where no rule matches its name, it runs if all that it calls is allowed, and asks
 * otherwise. That goes by what it called before; each real call is judged again.
 */
export function capabilityJudge({ plain, judge, toolsOf }: CapabilityRules): Judge {
  return (asked, args) => {
    const known = new Map<ToolId, Verdict>();
    const whole = (id: ToolId, own: typeof args): Verdict => {
      const tools = toolsOf(id);
      if (tools === undefined) return judge(id, own);
      const before = known.get(id);
      if (before !== undefined) return before;
      const said = plain(id, own);
      // One that calls itself, over others, is not allowed by that.
      known.set(id, said);
      if (said.kind === "deny") return said;
      const inner = tools.map((tool) => whole(tool, undefined));
      const isNamed = said.rule !== "no rule" || said.source !== "defaults";
      const isAllowed = !isNamed && inner.every(({ kind }) => kind === "allow");
      const verdict = inner.find(({ kind }) => kind === "deny") ??
        (isAllowed ? ALL_ALLOWED : said);
      known.set(id, verdict);
      return verdict;
    };
    return whole(asked, args);
  };
}
