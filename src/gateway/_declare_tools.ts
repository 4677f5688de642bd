/**
 * Shows tools to a model as TypeScript declarations, with which it can write code.
 *
 * @module
 */

import { asPmlError } from "../core/errors.ts";
import { indentLines } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { ObservedOutput } from "../workflow/declarations.ts";

/** A tool to show, or the error because of which it cannot be shown. */
export type ShownTool = { readonly server: string; readonly tool: ToolDefinition } | {
  readonly name: string;
  readonly error: unknown;
};

/** The hint in an answer to a search with several queries, for clients that can run code. */
export const CODE_HINT = "For several calls: `execute_code`; `schema` with " +
  '`as: "typescript"` declares the tools';

/** The maximum length of the text of an error, in characters. */
const ERROR_TEXT_MAX = 300;
const FIRST_LINE = "// For execute_code: loops, filters and many calls in one request. " +
  "Only its return value costs tokens.";

/** Returns the declarations of tools, by server, and the errors of tools that cannot be shown. */
export async function declareTools(
  shownTools: readonly ShownTool[],
  observed: ObservedOutput | undefined,
): Promise<string> {
  const { declarationsOf } = await import("../workflow/declarations.ts");
  const servers = new Map<string, ToolDefinition[]>();
  const errors: string[] = [];
  for (const shown of shownTools) {
    if ("error" in shown) {
      errors.push(
        `// ${
          indentLines(asPmlError(shown.error).message, ERROR_TEXT_MAX).replaceAll("\n", "\n//")
        }`,
      );
    } else servers.set(shown.server, [...servers.get(shown.server) ?? [], shown.tool]);
  }
  if (servers.size === 0) return errors.join("\n");
  const toolsByServer = [...servers].map(([name, tools]) => ({ name, tools }));
  return [
    FIRST_LINE,
    "declare const mcp: {",
    declarationsOf(toolsByServer, observed),
    "};",
    ...errors,
  ].join(
    "\n",
  );
}
