/**
 * Pages of servers (MCP Apps): which calls may reach the tools that only pages use, and the lines of
 * approval requests about the pages of a server.
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

/**
 * The origins of calls that may come from a page or a user. A client sends the calls of pages as
 * `tools/call`.
 */
const ORIGINS_OF_PAGES = ["tools/call", "cli", "library"];
/** The maximum number of tools that a line of an approval request names. */
const TOOLS_MAX = 10;

/**
 * Returns the definition of the tool of a call. Throws UNKNOWN_TOOL if only pages may call the
 * tool, and the call comes from a meta-tool, a plan, code or a capability.
 */
export function callableTool(
  { id, via }: Pick<Call, "id" | "via">,
  definition: ToolDefinition,
  servers: Servers,
): ToolDefinition {
  // guard: tools-for-pages
  if (!isForModel(definition) && !ORIGINS_OF_PAGES.includes(via)) throw unknownTool(id, servers);
  return definition;
}

/** Returns lines about the pages of a server; empty if none of its listed tools has a page. */
export function pageFacts(
  server: string,
  { servers: { lists }, judge }: { readonly servers: Servers; readonly judge: Judge },
): readonly string[] {
  const { items = [] } = lists.itemsOf("tools").find((one) => one.server === server) ?? {};
  if (!items.some((tool) => toolPage(tool) !== undefined)) return [];
  const pageTools = items.filter(isForPages).map(({ name }) => String(name))
    .filter((name) => judge(toolId(server, name)).kind !== "deny")
    .map((name) => quoted(name, 200));
  const more = pageTools.length - TOOLS_MAX;
  const names = [...pageTools.slice(0, TOOLS_MAX), ...more > 0 ? [`${more} more`] : []].join(", ");
  return [
    `Its pages (MCP Apps) can call these tools of it without the model: ${names || "none"}`,
    "A page can also call tools of other servers. PML cannot tell the calls of a page from those of " +
    "the model: rules and answers apply to both",
  ];
}
