/**
 * The tools of servers that registries offer, and that nobody has approved yet.
 *
 * @module
 */

import type { ToolDefinition } from "../core/tool.ts";
import { Catalog, WHOLE_SERVER } from "./catalog.ts";

/** A server that a registry offers. */
export interface OfferedServer {
  readonly name: string;
  readonly description: string | undefined;
  /** Its tools, as far as the registry knows them: some by their names alone. */
  readonly tools: readonly {
    readonly name: string;
    readonly definition: ToolDefinition | undefined;
  }[];
}

const ORIGIN = "registry";

/** Gives the catalog of what is offered; of two servers of one name the first one counts. */
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
