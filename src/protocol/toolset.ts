/**
 * Named sets of tools. A client with a tool set has no other tools.
 *
 * @module
 */

import type { Verdict } from "./verdict.ts";
import { covers, type Pattern } from "../core/pattern.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";

/** A named set of tools. */
export interface Toolset {
  /** The name of the set. */
  readonly name: string;
  /** The patterns of the tools in the set. */
  readonly tools: readonly Pattern[];
}

/** Parts of MCP that are not about one tool: a tool set allows them with any tool of the server. */
const CLIENT_REQUEST_PARTS = ["@elicitation", "@sampling", "@roots", "@tools"];

/** Returns the verdict `deny` about a tool that a tool set lacks; undefined if no set lacks it. */
export function toolsetDenial(
  sets: readonly (Toolset | undefined)[],
  id: ToolId,
): Verdict | undefined {
  const excludingSet = sets.find((set) => set !== undefined && !hasTool(set.tools, id));
  return excludingSet &&
    { kind: "deny", rule: "no tool of the set", source: `the tool set ${excludingSet.name}` };
}

function hasTool(tools: readonly Pattern[], id: ToolId): boolean {
  const { server, tool } = splitToolId(id);
  if (!CLIENT_REQUEST_PARTS.includes(tool)) return covers(tools, id);
  return tools.some((pattern) => pattern.kind === "any" || pattern.server === server);
}
