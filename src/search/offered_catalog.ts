/**
 * The tools of servers that registries offer and the user has not approved yet.
 *
 * @module
 */

import { withoutUndefined } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { Catalog, WHOLE_SERVER } from "./catalog.ts";

/** A server that a registry offers, or a capability of a namespace. */
export interface OfferedServer {
  readonly name: string;
  /** The full name: `namespace:action` for a capability, otherwise the name. */
  readonly fqdn?: string;
  readonly description: string | undefined;
  /** The tools that the registry lists. If it lists only a name, the definition is undefined. */
  readonly tools: readonly {
    readonly name: string;
    readonly definition: ToolDefinition | undefined;
  }[];
}

const ORIGIN = "registry";

/**
 * Returns the catalog of offered servers. Of several servers with the same name, the first is used.
 * If a server's tool and a capability have the same name, the tool is used.
 */
export function offeredCatalog(servers: readonly OfferedServer[]): Catalog {
  const catalog = new Catalog();
  for (const [name, offers] of Map.groupBy(servers, (offer) => offer.name)) {
    const server = offers.find(({ fqdn = name }) => fqdn === name);
    const about = withoutUndefined({ description: server?.description });
    const tools = server === undefined ? [] : definitionsOf(server.tools, about);
    const actions = offers.flatMap((offer) => capabilityTool(offer) ?? []);
    const names = new Set(tools.map((tool) => tool.name));
    const otherActions = actions.filter((tool) => !names.has(tool.name));
    catalog.set({ name, origin: ORIGIN, isOffer: true, asksFirst: true, ...about }, [
      ...tools,
      ...otherActions,
    ]);
  }
  return catalog;
}

/** Returns the tool of a capability; undefined for a server. */
function capabilityTool(
  { name, fqdn = name, description, tools }: OfferedServer,
): ToolDefinition | undefined {
  if (fqdn === name) return undefined;
  const action = fqdn.slice(name.length + 1);
  const definition = tools.find((tool) => tool.name === action)?.definition;
  return {
    ...withoutUndefined({ description }),
    inputSchema: { type: "object" },
    ...definition,
    name: action,
  };
}

function definitionsOf(
  tools: OfferedServer["tools"],
  about: Pick<ToolDefinition, "description">,
): readonly ToolDefinition[] {
  const inputSchema = { type: "object" };
  if (tools.length === 0) return [{ name: WHOLE_SERVER, ...about, inputSchema }];
  return tools.map(({ name, definition }) => definition ?? { name, ...about, inputSchema });
}
