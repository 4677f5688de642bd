/**
 * The effect that a call would have now. The rules decide, but an allowed call may still fail, for
 * example because its server failed, or ask, for example at the first use of a registry's server.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { type JsonObject, quoted } from "../core/json.ts";
import { READS_RULE_NAME } from "../core/pattern.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { ENDED, MultiToolRules } from "../policy/multi_tool_rules.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { Verdict } from "../protocol/verdict.ts";
import type { CatalogEntry } from "../search/catalog.ts";

type ServerState = ReturnType<App["servers"]["states"]>[number];

/** The effect of a call, as shown by commands. */
export type CallEffect = "runs" | "asks" | "denied" | "fails" | "paused";

/** The words for the decisions of the rules. */
export const EFFECTS: Readonly<Record<Verdict["kind"], CallEffect>> = {
  allow: "runs",
  ask: "asks",
  deny: "denied",
};

/** The facts about a call that the rules do not decide. */
interface CallFacts {
  /** The tool; `SERVER:@reads` for all tools of a server that only read. */
  readonly id: ToolId;
  readonly args?: JsonObject | undefined;
  /** The definition that clients see; undefined if the tool is unknown. */
  readonly tool: ToolDefinition | undefined;
  /** The state of the tool's server; undefined if no server has this name. */
  readonly state: ServerState | undefined;
  /** Whether the server lists the tool, or may list it. */
  readonly isListed: boolean;
  /** Whether the first use of the server asks. */
  readonly asksFirst?: boolean | undefined;
}

/** The effect of a call, and the rule that decides. */
export interface ShownEffect extends Omit<Verdict, "kind"> {
  readonly effect: CallEffect;
  /** Why the effect differs from the decision of the rules; undefined if the server's state shows it. */
  readonly reason?: string;
  /** The decision of the rules, if the effect differs from it. */
  readonly byRules?: CallEffect;
}

/**
 * Returns the effect of a call, which all commands show. If it differs from the decision of the
 * rules, also returns this decision as `byRules`, and the reason of the difference. Without `reason`,
 * the server failed or is blocked, or does not list the tool.
 */
export function callEffect(app: App, facts: CallFacts): ShownEffect {
  const verdict = decisionOf(app, facts);
  const override = findOverride(app, facts, verdict);
  const { kind, ...rest } = verdict;
  const byRules = EFFECTS[kind];
  return override === undefined || override.effect === byRules
    ? { ...rest, effect: byRules }
    : { ...rest, ...override, byRules };
}

/** Returns a function that returns the effect of a call of a listed tool, without arguments. */
export function listedEffects(app: App) {
  const states = new Map(app.servers.states().map((state) => [state.name, state]));
  return (
    listed: Pick<CatalogEntry, "id" | "tool"> & {
      readonly server?: { readonly asksFirst?: boolean };
    },
  ): ShownEffect => {
    const { id, tool, server } = listed;
    const state = states.get(splitToolId(id).server);
    return callEffect(app, { id, tool, state, isListed: true, asksFirst: server?.asksFirst });
  };
}

/** Returns the decision of the rules, or of the file that forbids the server. */
function decisionOf(app: App, { id, args }: CallFacts): Verdict {
  const forbidden = app.policy.whyForbidden(splitToolId(id).server);
  return forbidden === undefined
    ? app.policy.now.judge(id, args)
    : { kind: "deny", rule: forbidden.error.message, source: forbidden.path };
}

/** Returns the effect that overrides the decision of the rules; undefined if the rules decide. */
function findOverride(
  app: App,
  { id, tool: definition, state, isListed, asksFirst }: CallFacts,
  { kind, rule, source }: Verdict,
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
  const hasRuleEnded = rule === id && definition !== undefined &&
    new MultiToolRules(app.policy.home).hasEnded({ rule, source }, definition);
  if (hasRuleEnded) return { effect: "asks", reason: ENDED };
  if (state?.state === "blocked") return { effect: "asks" };
  // guard: shown-change
  if (state?.changed?.includes(tool)) {
    return { effect: "asks", reason: "its definition changed since it was approved" };
  }
  if (asksFirst ?? app.catalog.get(id)?.server.asksFirst) {
    return { effect: "asks", reason: "the first use of a server of a registry asks" };
  }
  return undefined;
}
