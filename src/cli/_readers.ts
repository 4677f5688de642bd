/**
 * Describes the rules for all tools of a server that only read.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { RuleLine } from "../config/rules.ts";
import { quoted } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";

/** The reason why PML derives for no other tool that it only reads. */
const DERIVED = "PML derives it from the permissions of modules in the sandbox alone";

/** Returns the names of the tools of a server that such a rule covers now. */
export function readersOf({ catalog, policy }: App, server: string): readonly string[] {
  return catalog.toolsOf(server).filter(({ id }) => policy.isReader(id))
    .map(({ id }) => splitToolId(id).tool);
}

/** Returns a sentence part with these tools. */
export function readersText(server: string, readers: readonly string[]): string {
  return readers.length === 0
    ? `covers no tool of ${quoted(server)} now: ${DERIVED}`
    : `covers ${readers.join(", ")} now, and later tools of ${quoted(server)} that can only read`;
}

/** Returns lines for the rules that name the tools of the server that read, but not this tool. */
export function uncoveredLines({ policy }: App, id: ToolId): readonly string[] {
  const { rules } = policy.now.config;
  const { server, tool } = splitToolId(id);
  if (tool.startsWith("@") || policy.isReader(id)) return [];
  return [rules.deny, rules.ask, rules.allow].flat().filter((line) => isFor(line, server))
    .map(({ pattern: { text }, source }) =>
      `the rule ${quoted(text)} in ${source} does not cover it: ${DERIVED}`
    );
}

function isFor({ pattern }: RuleLine, server: string): boolean {
  return pattern.kind === "reads" && pattern.server === server;
}
