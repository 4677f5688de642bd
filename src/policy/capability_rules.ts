/**
 * What the rules say of a capability: what they say of its name, and of the tools that it calls.
 *
 * @module
 */

import type { Verdict } from "../protocol/verdict.ts";
import { parsePattern } from "../core/pattern.ts";
import { parseToolId, type ToolId } from "../core/tool_id.ts";
import { denied, type Judge, makeJudge } from "./rules.ts";
import type { CapabilityPolicy } from "./snapshot.ts";

/** The verdict for a capability that no rule names, and whose calls are all allowed. */
const ALL_ALLOWED: Verdict = {
  kind: "allow",
  rule: "all that it calls is allowed",
  source: "defaults",
};

/** Returns the tools that capabilities call. `Capabilities` is one. */
export interface CapabilityTools {
  /** Returns the tools that a capability calls; undefined for what is no capability. */
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
 * Returns a judge that knows capabilities. A deny rule for any tool that a capability calls denies
 * the capability. Where no rule matches its name, it runs if all that it calls is allowed, and asks
 * otherwise. Its earlier calls decide that; each real call is judged again. `plain` judges by
 * the rules alone, and `judge` judges tools that are no capabilities.
 */
export function capabilityJudge(all: CapabilityTools, plain: Judge, judge: Judge): Judge {
  return (asked, args) => {
    const known = new Map<ToolId, Verdict>();
    const whole = (id: ToolId, own: typeof args): Verdict => {
      const tools = all.toolsOf(id);
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

/** The person's rules as lists of patterns, as a `.pml.json` has them. */
export interface PermissionLists {
  /** What runs without a question. */
  readonly allow?: readonly string[];
  /** What asks first. */
  readonly ask?: readonly string[];
  /** What is refused. */
  readonly deny?: readonly string[];
}

/**
 * Returns whether a capability that calls these tools may run without a question: `auto` if all are
 * allowed, `hil` (a human in the loop) if one asks or no rule matches it. Throws PERMISSION_DENIED
 * if one is denied. Each real call is judged again, so this allows nothing by itself.
 */
export function inferCapabilityApprovalMode(
  toolsUsed: readonly string[],
  permissions: PermissionLists,
): "auto" | "hil" {
  const rules = (list: readonly string[] = []) =>
    list.map((text) => ({ pattern: parsePattern(text), source: "permissions" }));
  const { allow, ask, deny } = permissions;
  const judge = makeJudge({ deny: rules(deny), ask: rules(ask), allow: rules(allow) }, {
    // Who asks knows the tools already.
    known: () => true,
  });
  // What is no name of a tool is matched by a bare `*` alone, and is allowed by nothing.
  const verdicts = toolsUsed.map((text) => ({ text, id: parseToolId(text) }))
    .map(({ text, id = text as ToolId }) => ({ id, said: judge(id) }));
  for (const { id, said } of verdicts) if (said.kind === "deny") throw denied(id, said);
  const isAllowed = ({ id, said }: typeof verdicts[number]) =>
    said.kind === "allow" && parseToolId(id) !== undefined;
  return verdicts.every(isAllowed) ? "auto" : "hil";
}
