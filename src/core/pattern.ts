/**
 * The grammar of rules: `*`, `server:*`, `server:tool` and `server:@door`. Nothing else parses.
 *
 * @module
 */

import { PmlError } from "./errors.ts";
import { quoted } from "./json.ts";
import { isServerName, isToolName, splitToolId, type ToolId } from "./tool_id.ts";

/** The parts of MCP beside tools that a rule can name. */
export const DOORS: readonly string[] = [
  "@resources",
  "@prompts",
  "@sampling",
  "@elicitation",
  "@roots",
];

/** A parsed rule pattern. `text` is what the person wrote. */
export type Pattern =
  | { readonly kind: "any"; readonly text: string }
  | { readonly kind: "server"; readonly text: string; readonly server: string }
  | {
    readonly kind: "exact";
    readonly text: string;
    readonly server: string;
    readonly tool: string;
  };

/** How narrow a pattern is: a larger number wins over a smaller one. */
const NARROWNESS = { any: 0, server: 1, exact: 2 } as const;

/** Reads a pattern, or says why it is none. */
export function parsePattern(text: string): Pattern {
  if (text === "*") return { kind: "any", text };
  const colon = text.indexOf(":");
  const server = text.slice(0, Math.max(colon, 0));
  const tool = text.slice(colon + 1);
  if (isServerName(server)) {
    if (tool === "*") return { kind: "server", text, server };
    if (isToolName(tool) || DOORS.includes(tool)) return { kind: "exact", text, server, tool };
  }
  throw new PmlError("CONFIG_INVALID", `Cannot read the rule ${quoted(text)}`, {
    hint: 'Write "*", "server:*" or "server:tool"' +
      (text.includes("(") ? "; conditions on arguments are not supported yet" : ""),
  });
}

/** Tells whether a pattern covers a tool. */
export function matches(pattern: Pattern, id: ToolId): boolean {
  if (pattern.kind === "any") return true;
  const { server, tool } = splitToolId(id);
  return pattern.server === server && (pattern.kind === "server" || pattern.tool === tool);
}

/** Orders patterns by how narrow they are: `*`, then `server:*`, then `server:tool`. */
export function narrowness(pattern: Pattern): number {
  return NARROWNESS[pattern.kind];
}
