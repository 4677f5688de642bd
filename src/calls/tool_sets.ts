/**
 * Finds the other tools of a server that one answer about a call may cover.
 *
 * @module
 */

import { skeletonOf } from "../core/confusable.ts";
import { memoized } from "../core/memo.ts";
import { isToolName, type ToolId, toolId } from "../core/tool_id.ts";
import { settingOf } from "../core/tool_settings.ts";
import { isForModel } from "../protocol/apps.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { Verdict } from "../protocol/verdict.ts";
import type { AlwaysRules } from "../policy/always_rule.ts";
import type { Approvals } from "../policy/approvals.ts";
import { definitionLines, isKnownToUser, isMark } from "../policy/definition_texts.ts";
import { definitionHash } from "../policy/integrity.ts";
import { effectOf } from "../policy/multi_tool_rules.ts";
import type { Policy } from "../policy/policy.ts";
import { readingOf } from "../policy/tool_reading.ts";
import { isRisky } from "../policy/risky.ts";
import type { ShownTool, ToolSet } from "../policy/tool_set.ts";
import type { ResolvedCall, Server } from "../servers/server.ts";
import { decisionOf } from "./decisions.ts";

/** The collaborators of `ToolSets`. */
export interface ToolSetParts {
  readonly policy: Policy;
  readonly always: AlwaysRules;
  readonly approvals: Pick<Approvals, "hasRead">;
}

/** The maximum length of the texts of a set, in characters. */
const TEXTS_MAX = 200_000;

/** Finds sets of tools. */
export class ToolSets {
  readonly #parts: ToolSetParts;
  readonly #hash = memoized((tool: ToolDefinition) => definitionHash(tool));
  readonly #lines = memoized((tool: ToolDefinition) => definitionLines(tool));

  /** Takes the collaborators. */
  constructor(parts: ToolSetParts) {
    this.#parts = parts;
  }

  /**
   * Returns the sets that an answer about a call may cover: all tools, and the tools that only read
   * if the call's tool is one of them. A set contains only tools about which PML would ask, and no
   * destructive tool. The user has read their definitions, or the question shows them. Does not
   * start a server.
   */
  async findSets(call: ResolvedCall): Promise<readonly ToolSet[]> {
    const { always, policy } = this.#parts;
    const { server } = call;
    const canAllowByName = call.method === undefined && call.members === undefined &&
      call.verdict !== undefined && isUnnamed(call.verdict) &&
      policy.now.config.restrictions?.identity === undefined &&
      always.offeredRule(call) === call.id;
    if (!canAllowByName || server.hasList !== undefined && !await server.hasList("tools")) {
      return [];
    }
    const definitions = await server.list("tools").catch(() => []) as readonly ToolDefinition[];
    if (definitions.length < 2) return [];
    const changed = await server.approvedDefinitions?.(definitions);
    const tools = removeConfusable(definitions.filter((tool) => !changed?.has(tool)))
      .filter((tool) => this.#mayBeInSet(call, tool));
    const all = await Promise.all(tools.map((tool) => this.#toShownTool(server, tool)));
    const reads = all.filter((tool) => tool.reads);
    const sets: ToolSet[] = [];
    if (canOffer(reads, call.id)) sets.push({ reply: "Reads", tools: reads.map(withoutReading) });
    const differsFromReads = all.length > reads.length || sets.length === 0;
    if (differsFromReads && canOffer(all, call.id)) {
      sets.push({ reply: "All", tools: all.map(withoutReading) });
    }
    return sets;
  }

  /** Returns whether an answer may add a rule for a tool, so that the first call asks no more. */
  #mayBeInSet(call: ResolvedCall, tool: ToolDefinition): boolean {
    const { server, client } = call;
    const { always, policy: { now: { judge } } } = this.#parts;
    if (!isToolName(tool.name) || tool.visibility === "internal" || !isForModel(tool)) return false;
    if (settingOf(server.settings, tool.name)?.disabled === true) return false;
    const id = toolId(server.name, tool.name);
    // An answer allows a destructive tool alone. A question about one offers no set for this reason.
    // guard: set-risky
    if (isRisky(id, tool)) return false;
    const verdict = decisionOf(judge, { id, arguments: {} }, client.toolset?.());
    // guard: set-ruled
    if (!isUnnamed(verdict)) return false;
    // guard: set-exact
    if (always.offeredRule({ id, arguments: {} }) !== id) return false;
    // guard: set-marked
    return !this.#unreadLines(server, tool).some(isMark);
  }

  async #toShownTool(server: Server, tool: ToolDefinition): Promise<ReadingTool> {
    const { reads, note } = readingOf(tool);
    // The grants of a module decide, not its hints.
    const onlyReads = await server.onlyReads(tool.name).catch(() => false);
    const lines = this.#unreadLines(server, tool);
    return {
      id: toolId(server.name, tool.name),
      definition: this.#hash(tool),
      effect: effectOf(tool),
      reads: onlyReads ?? reads,
      ...reads && note !== undefined && { note },
      ...lines.length > 0 && { lines },
    };
  }

  /** Returns the texts of a definition that the user has not read. */
  #unreadLines(server: Server, tool: ToolDefinition): readonly string[] {
    const isRead = isKnownToUser(server, this.#hash(tool), this.#parts.approvals);
    return isRead ? [] : this.#lines(tool);
  }
}

/** Returns whether PML asks only because no rule names the tool or its server. */
function isUnnamed({ kind, rule }: Verdict): boolean {
  return kind === "ask" && GENERAL_RULES.includes(rule);
}

/** The `rule` in decisions about calls that no rule names. */
const GENERAL_RULES: readonly string[] = ["no rule", "*"];

interface ReadingTool extends ShownTool {
  readonly reads: boolean;
}

function withoutReading({ reads: _, ...tool }: ReadingTool): ShownTool {
  return tool;
}

/**
 * Returns whether a question can offer a set: the set has several tools, contains the tool of the
 * call, and its texts are short enough.
 */
function canOffer(tools: readonly ShownTool[], id: ToolId): boolean {
  const length = tools.reduce((sum, { lines = [] }) => sum + lines.join("\n").length, 0);
  return tools.length > 1 && length <= TEXTS_MAX && tools.some((tool) => tool.id === id);
}

/**
 * Removes tools whose names look like the name of another tool, because a user could confuse them.
 */
function removeConfusable(tools: readonly ToolDefinition[]): readonly ToolDefinition[] {
  const counts = new Map<string, number>();
  for (const { name } of tools) {
    const skeleton = skeletonOf(name.toLowerCase());
    counts.set(skeleton, (counts.get(skeleton) ?? 0) + 1);
  }
  return tools.filter(({ name }) => {
    // guard: set-alike
    return counts.get(skeletonOf(name.toLowerCase())) === 1;
  });
}
