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
  /** The name. */
  readonly name: string;
  /** The tools. */
  readonly tools: readonly Pattern[];
}

/** A server's requests to its client belong to all of its tools. */
const ASKS = ["@elicitation", "@sampling", "@roots", "@tools"];

/** Returns the verdict about a tool that is missing in a tool set; undefined if all have it. */
export function missingVerdict(
  sets: readonly (Toolset | undefined)[],
  id: ToolId,
): Verdict | undefined {
  const other = sets.find((set) => set !== undefined && !isIn(set.tools, id));
  return other &&
    { kind: "deny", rule: "no tool of the set", source: `the tool set ${other.name}` };
}

function isIn(tools: readonly Pattern[], id: ToolId): boolean {
  const { server, tool } = splitToolId(id);
  if (!ASKS.includes(tool)) return covers(tools, id);
  return tools.some((one) => one.kind === "any" || one.server === server);
}
