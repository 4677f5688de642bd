/**
 * Shows tools to a model as declarations for code.
 *
 * @module
 */

import { asPmlError } from "../core/errors.ts";
import { inset } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { Observed } from "../workflow/declarations.ts";

/** A shown tool, or the error for it. */
export type ShownTool = { readonly server: string; readonly tool: ToolDefinition } | {
  readonly name: string;
  readonly error: unknown;
};

/** The hint in an answer to a search with several queries, for clients that can run code. */
export const CODE_HINT = "For several calls: `execute_code`; `schema` with " +
  '`as: "typescript"` declares the tools';

const WHY_MAX = 300;
const HEAD = "// For execute_code: loops, filters and many calls in one request. " +
  "Only its return value costs tokens.";

/** Returns the declarations of tools, by server, and the errors of the others. */
export async function declared(
  shownTools: readonly ShownTool[],
  observed: Observed | undefined,
): Promise<string> {
  const { declarationsOf } = await import("../workflow/declarations.ts");
  const servers = new Map<string, ToolDefinition[]>();
  const wrong: string[] = [];
  for (const one of shownTools) {
    if ("error" in one) {
      wrong.push(`// ${inset(asPmlError(one.error).message, WHY_MAX).replaceAll("\n", "\n//")}`);
    } else servers.set(one.server, [...servers.get(one.server) ?? [], one.tool]);
  }
  if (servers.size === 0) return wrong.join("\n");
  const all = [...servers].map(([name, tools]) => ({ name, tools }));
  return [HEAD, "declare const mcp: {", declarationsOf(all, observed), "};", ...wrong].join(
    "\n",
  );
}
