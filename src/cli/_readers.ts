/**
 * Describes the rules `SERVER:@reads`, for all tools of a server that only read.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { RuleLine } from "../config/rules.ts";
import { quoted } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";

/** Why such a rule covers no other tool. */
const READ_ONLY_PROOF =
  "only the permissions of a module in the sandbox prove to PML that a tool only reads";

/** Returns the names of the tools that the rule `SERVER:@reads` of a server covers now. */
export function readersOf({ catalog, policy }: App, server: string): readonly string[] {
  return catalog.toolsOf(server).filter(({ id }) => policy.isReader(id))
    .map(({ id }) => splitToolId(id).tool);
}

/** Returns the predicate of a sentence about such a rule: the tools that it covers. */
export function readersText(server: string, readers: readonly string[]): string {
  return readers.length === 0
    ? `covers no tool of ${quoted(server)} now: ${READ_ONLY_PROOF}`
    : `covers ${readers.join(", ")} now, and later tools of ${quoted(server)} that can only read`;
}

/** Returns a line for each rule `SERVER:@reads` of the tool's server, if it does not cover the tool. */
export function uncoveredLines({ policy }: App, id: ToolId): readonly string[] {
  const { rules } = policy.now.config;
  const { server, tool } = splitToolId(id);
  if (tool.startsWith("@") || policy.isReader(id)) return [];
  return [rules.deny, rules.ask, rules.allow].flat().filter((line) => isReadsRuleOf(line, server))
    .map(({ pattern: { text }, source }) =>
      `the rule ${quoted(text)} in ${source} does not cover it: ${READ_ONLY_PROOF}`
    );
}

function isReadsRuleOf({ pattern }: RuleLine, server: string): boolean {
  return pattern.kind === "reads" && pattern.server === server;
}
