/**
 * Tools of MCP Apps: the calls that reach tools for pages alone, and the lines about pages in
 * approval requests.
 *
 * @module
 */

import type { Call } from "../protocol/call.ts";
import { quoted } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import { isForModel, isForPages, toolPage } from "../protocol/apps.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { Judge } from "../policy/rules.ts";
import type { Servers } from "../servers/lists/servers.ts";
import { unknownTool } from "../servers/lists/unknown_tool.ts";

/** The origins of calls that are not of a model: clients pass on those of pages as `tools/call`. */
const NOT_OF_MODELS = ["tools/call", "cli", "library"];
/** The most tools that a line names. */
const NAMED_MAX = 10;

/**
 * Returns the definition of the tool of a call. Throws UNKNOWN_TOOL if only pages may call it, and
 * the call is one of a meta-tool, a plan, code or a capability.
 */
export function callableTool(
  { id, via }: Pick<Call, "id" | "via">,
  definition: ToolDefinition,
  servers: Servers,
): ToolDefinition {
  // guard: tools-for-pages
  if (!isForModel(definition) && !NOT_OF_MODELS.includes(via)) throw unknownTool(id, servers);
  return definition;
}

/** Returns lines about the pages of a server; none if it is known to have no pages. */
export function pageFacts(
  server: string,
  { servers: { lists }, judge }: { readonly servers: Servers; readonly judge: Judge },
): readonly string[] {
  const { items = [] } = lists.itemsOf("tools").find((one) => one.server === server) ?? {};
  if (!items.some((tool) => toolPage(tool) !== undefined)) return [];
  const own = items.filter(isForPages).map(({ name }) => String(name))
    .filter((name) => judge(toolId(server, name)).kind !== "deny")
    .map((name) => quoted(name, 200));
  const more = own.length - NAMED_MAX;
  const names = [...own.slice(0, NAMED_MAX), ...more > 0 ? [`${more} more`] : []].join(", ");
  return [
    `Its pages (MCP Apps) can call these tools of it without the model: ${names || "none"}`,
    "A page can also call tools of other servers. PML cannot tell the calls of a page from those of " +
    "the model: rules and answers apply to both",
  ];
}
