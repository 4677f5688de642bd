/**
 * Finds the other tools of a server that one answer about a call may cover.
 *
 * @module
 */

import { lookOf } from "../core/confusable.ts";
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
import { readingOf } from "../policy/reading.ts";
import { isDestructive, isRisky } from "../policy/risky.ts";
import type { ShownTool, ToolSet } from "../policy/tool_set.ts";
import type { ResolvedCall, Server } from "../servers/server.ts";
import { decisionOf } from "./decisions.ts";

/** The collaborators of `ToolSets`. */
export interface ToolSetParts {
  readonly policy: Policy;
  readonly always: AlwaysRules;
  readonly approvals: Pick<Approvals, "hasRead">;
}

/** The mark of a destructive tool. */
const DESTROYS = "its server says that it destroys";
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
   * Returns the sets that an answer about a call may cover: the tools that read, if the tool of the
   * call is one of them, and all tools. Each tool of a set is one that PML would ask about, and the
   * user has read its definition or the question shows it. Starts no server.
   */
  async of(call: ResolvedCall): Promise<readonly ToolSet[]> {
    const { always, policy } = this.#parts;
    const { server } = call;
    // A question that suggests a no offers no answer that covers more tools.
    // guard: set-risky
    if (call.method === undefined && isRisky(call.id, await call.definition())) return [];
    const isPlain = call.method === undefined && call.members === undefined &&
      call.verdict !== undefined && isUnnamed(call.verdict) &&
      policy.now.config.narrowing?.identity === undefined && always.offered(call) === call.id;
    if (!isPlain || server.hasList !== undefined && !await server.hasList("tools")) return [];
    const listed = await server.list("tools").catch(() => []) as readonly ToolDefinition[];
    if (listed.length < 2) return [];
    const changed = await server.approvedDefinitions?.(listed);
    const tools = alikeRemoved(listed.filter((tool) => !changed?.has(tool)))
      .filter((tool) => this.#isCovered(call, tool));
    const all = await Promise.all(tools.map((tool) => this.#shown(server, tool)));
    const reads = all.filter((tool) => tool.reads);
    const sets: ToolSet[] = [];
    if (isSet(reads, call.id)) sets.push({ reply: "Reads", tools: reads.map(withoutReading) });
    const isMore = all.length > reads.length || sets.length === 0;
    if (isMore && isSet(all, call.id)) sets.push({ reply: "All", tools: all.map(withoutReading) });
    return sets;
  }

  /** Returns whether a rule for a tool may be written before its first call. */
  #isCovered(call: ResolvedCall, tool: ToolDefinition): boolean {
    const { server, client } = call;
    const { always, policy: { now: { judge } } } = this.#parts;
    if (!isToolName(tool.name) || tool.visibility === "internal" || !isForModel(tool)) return false;
    if (settingOf(server.settings, tool.name)?.disabled === true) return false;
    const id = toolId(server.name, tool.name);
    const verdict = decisionOf(judge, { id, arguments: {} }, client.toolset?.());
    // guard: set-ruled
    if (!isUnnamed(verdict)) return false;
    // guard: set-exact
    if (always.offered({ id, arguments: {} }) !== id) return false;
    // guard: set-marked
    return !this.#unread(server, tool).some(isMark);
  }

  async #shown(server: Server, tool: ToolDefinition): Promise<ReadingTool> {
    const { reads, note: mark } = readingOf(tool);
    const note = isDestructive(tool) ? DESTROYS : reads ? mark : undefined;
    // The grants of a module decide, not its hints.
    const onlyReads = await server.onlyReads(tool.name).catch(() => false);
    const lines = this.#unread(server, tool);
    return {
      id: toolId(server.name, tool.name),
      definition: this.#hash(tool),
      effect: effectOf(tool),
      reads: onlyReads ?? reads,
      ...note !== undefined && { note },
      ...lines.length > 0 && { lines },
    };
  }

  /** Returns the texts of a definition that the user has not read. */
  #unread(server: Server, tool: ToolDefinition): readonly string[] {
    const isRead = isKnownToUser(server, this.#hash(tool), this.#parts.approvals);
    return isRead ? [] : this.#lines(tool);
  }
}

/** Returns whether PML asks although no rule names the tool, its server, or a first use. */
function isUnnamed({ kind, rule }: Verdict): boolean {
  return kind === "ask" && UNNAMED.includes(rule);
}

/** The rules in decisions about calls that no rule names. */
const UNNAMED: readonly string[] = ["no rule", "*"];

interface ReadingTool extends ShownTool {
  readonly reads: boolean;
}

function withoutReading({ reads: _, ...tool }: ReadingTool): ShownTool {
  return tool;
}

/** Returns whether tools are a set that contains the tool of a call and can be shown. */
function isSet(tools: readonly ShownTool[], id: ToolId): boolean {
  const length = tools.reduce((sum, { lines = [] }) => sum + lines.join("\n").length, 0);
  return tools.length > 1 && length <= TEXTS_MAX && tools.some((tool) => tool.id === id);
}

/** Removes tools whose names look like that of another tool. The user could take one for another. */
function alikeRemoved(tools: readonly ToolDefinition[]): readonly ToolDefinition[] {
  const counts = new Map<string, number>();
  for (const { name } of tools) {
    const look = lookOf(name.toLowerCase());
    counts.set(look, (counts.get(look) ?? 0) + 1);
  }
  return tools.filter(({ name }) => {
    // guard: set-alike
    return counts.get(lookOf(name.toLowerCase())) === 1;
  });
}
