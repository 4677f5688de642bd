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

/** The definitions of a hub (`hub/src/mcp/mcp.ts`). The hub checks the arguments. */
const TOOLS: readonly ToolDefinition[] = [
  tool("search_tools", "Find tools of the servers that this hub offers", {
    query: "A few words that describe the tool",
  }),
  tool("search_capabilities", "Find capabilities (namespace:action) that this hub offers", {
    query: "A few words that describe the tool",
  }),
  tool(
    "related",
    "Tell which tools published capabilities call right after a tool, and right before it",
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
  texts: Readonly<Record<string, string>>,
): ToolDefinition {
  const properties = Object.fromEntries(
    Object.entries(texts).map(([key, does]) => [key, { type: "string", description: does }]),
  );
  return {
    name,
    description,
    inputSchema: {
      type: "object",
      properties: { ...properties, limit: { type: "integer" } },
      required: Object.keys(texts),
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  };
}
