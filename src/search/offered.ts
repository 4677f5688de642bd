/**
 * The tools of servers that registries offer and nobody has approved yet.
 *
 * @module
 */

import type { ToolDefinition } from "../core/tool.ts";
import { Catalog, WHOLE_SERVER } from "./catalog.ts";

/** A server that a registry offers. */
export interface OfferedServer {
  readonly name: string;
  readonly description: string | undefined;
  /** The tools that the registry lists, some by their names alone. */
  readonly tools: readonly {
    readonly name: string;
    readonly definition: ToolDefinition | undefined;
  }[];
}

const ORIGIN = "registry";

/** Returns the catalog of offered servers. If two have the same name, the first is used. */
export function offeredCatalog(servers: readonly OfferedServer[]): Catalog {
  const catalog = new Catalog();
  const seen = new Set<string>();
  for (const { name, description, tools } of servers) {
    if (seen.has(name)) continue;
    seen.add(name);
    const about = description === undefined ? {} : { description };
    catalog.set({ name, origin: ORIGIN, isOffer: true, ...about }, definitionsOf(tools, about));
  }
  return catalog;
}

function definitionsOf(
  tools: OfferedServer["tools"],
  about: Pick<ToolDefinition, "description">,
): readonly ToolDefinition[] {
  const inputSchema = { type: "object" };
  if (tools.length === 0) return [{ name: WHOLE_SERVER, ...about, inputSchema }];
  return tools.map(({ name, definition }) => definition ?? { name, ...about, inputSchema });
}
