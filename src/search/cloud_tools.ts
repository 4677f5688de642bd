/**
 * The tools of the cloud itself (`pml:search_tools` and others). They are the same at every hub, so
 * `search` finds them without a request.
 *
 * @module
 */

import type { ToolDefinition } from "../protocol/tool.ts";
import { Catalog } from "./catalog.ts";

/** The name of the cloud as a server. No other server may have it. */
const NAME = "pml";

/** The tools of each hub, as in `hub/src/mcp/mcp.ts`. The hub checks the arguments. */
const TOOLS: readonly ToolDefinition[] = [
  tool("search_tools", "Find tools of the servers that this hub offers", {
    query: "A few words that describe the tool",
  }),
  tool("search_capabilities", "Find capabilities (namespace:action) that this hub offers", {
    query: "A few words that describe the tool",
  }),
  tool(
    "related",
    "List the tools that published capabilities call right after a tool, or right before it",
    { tool: "The name of a tool, such as github:search_code" },
  ),
];

/** Creates the catalog of these tools. */
export function cloudCatalog(): Catalog {
  const catalog = new Catalog();
  catalog.set({ name: NAME, origin: "cloud", isOffer: true }, TOOLS);
  return catalog;
}

function tool(
  name: string,
  description: string,
  parameters: Readonly<Record<string, string>>,
): ToolDefinition {
  const properties = Object.fromEntries(
    Object.entries(parameters).map(([name, text]) => [name, { type: "string", description: text }]),
  );
  return {
    name,
    description,
    inputSchema: {
      type: "object",
      properties: { ...properties, limit: { type: "integer" } },
      required: Object.keys(parameters),
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  };
}
