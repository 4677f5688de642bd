/**
 * The effect that a call would have now. The rules decide, but an allowed call may still fail, for
 * example because its server failed, or ask, for example at the first use of a registry's server.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { quoted } from "../core/json.ts";
import { READS_RULE_NAME } from "../core/pattern.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { ENDED } from "../policy/multi_tool_rules.ts";
import type { Verdict } from "../protocol/verdict.ts";

type ServerState = ReturnType<App["servers"]["states"]>[number];

/** The effect of a call, as shown by commands. */
export type CallEffect = "runs" | "asks" | "denied" | "fails" | "paused";

/** The words for the decisions of the rules. */
export const EFFECTS: Readonly<Record<Verdict["kind"], CallEffect>> = {
  allow: "runs",
  ask: "asks",
  deny: "denied",
};

/** The facts that decide about a call. */
interface CallFacts {
  /** The tool; `SERVER:@reads` for all tools of a server that only read. */
  readonly id: ToolId;
  readonly kind: Verdict["kind"];
  /** The state of the tool's server; undefined if no server has this name. */
  readonly state: ServerState | undefined;
  /**
   * Whether the rule that allows the tool ended: an answer for several tools wrote it, and the tool
   * is more harmful now.
   */
  readonly hasRuleEnded: boolean;
  /** Whether the server lists the tool, or may list it. */
  readonly isListed: boolean;
}

/**
 * Returns the effect of a call. If it differs from the decision of the rules, also returns this
 * decision as `byRules`, and the reason of the difference. Without `reason`, the server failed or is
 * blocked, or does not list the tool.
 */
export function callEffect(app: App, facts: CallFacts): {
  readonly effect: CallEffect;
  readonly reason?: string;
  readonly byRules?: CallEffect;
} {
  const override = findOverride(app, facts);
  const byRules = EFFECTS[facts.kind];
  return override === undefined || override.effect === byRules
    ? { effect: byRules }
    : { ...override, byRules };
}

/** Returns the effect that overrides the decision of the rules; undefined if the rules decide. */
function findOverride(
  app: App,
  { id, kind, state, hasRuleEnded, isListed }: CallFacts,
): { readonly effect: CallEffect; readonly reason?: string } | undefined {
  const { server, tool } = splitToolId(id);
  if (kind === "deny" || tool === READS_RULE_NAME) return undefined;
  const { pause } = app.policy.now.config;
  if (pause !== undefined) {
    return { effect: "paused", reason: "the user paused this workspace: `pml resume` ends it" };
  }
  const file = app.policy.fileThatDisables(server);
  if (file !== undefined && state === undefined) {
    return { effect: "fails", reason: `${quoted(server)} is disabled in ${quoted(file, 400)}` };
  }
  if (state?.state === "failed" || !isListed) return { effect: "fails" };
  if (kind === "ask") return undefined;
  if (hasRuleEnded) return { effect: "asks", reason: ENDED };
  if (state?.state === "blocked") return { effect: "asks" };
  if (state?.changed?.includes(tool)) {
    return { effect: "asks", reason: "its definition changed since it was approved" };
  }
  if (app.catalog.get(id)?.server.asksFirst) {
    return { effect: "asks", reason: "the first use of a server of a registry asks" };
  }
  return undefined;
}
