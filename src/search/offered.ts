/**
 * The tools of servers that registries offer and the user has not approved yet.
 *
 * @module
 */

import { defined } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { Catalog, WHOLE_SERVER } from "./catalog.ts";

/** A server that a registry offers, or a capability of a namespace. */
export interface OfferedServer {
  readonly name: string;
  /** The full name: `namespace:action` for a capability, otherwise the name. */
  readonly fqdn?: string;
  readonly description: string | undefined;
  /** The tools that the registry lists; of some it lists only the names. */
  readonly tools: readonly {
    readonly name: string;
    readonly definition: ToolDefinition | undefined;
  }[];
}

const ORIGIN = "registry";

/**
 * Returns the catalog of offered servers. If two have the same name, the first is used. A tool that
 * a server has wins over a capability of this name.
 */
export function offeredCatalog(servers: readonly OfferedServer[]): Catalog {
  const catalog = new Catalog();
  for (const [name, all] of Map.groupBy(servers, (one) => one.name)) {
    const own = all.find(({ fqdn = name }) => fqdn === name);
    const about = defined({ description: own?.description });
    const tools = own === undefined ? [] : definitionsOf(own.tools, about);
    const actions = all.flatMap((one) => actionOf(one) ?? []);
    const names = new Set(tools.map((tool) => tool.name));
    const more = actions.filter((tool) => !names.has(tool.name));
    catalog.set({ name, origin: ORIGIN, isOffer: true, asksFirst: true, ...about }, [
      ...tools,
      ...more,
    ]);
  }
  return catalog;
}

/** Returns the tool of a capability; undefined for a server. */
function actionOf(
  { name, fqdn = name, description, tools }: OfferedServer,
): ToolDefinition | undefined {
  if (fqdn === name) return undefined;
  const action = fqdn.slice(name.length + 1);
  const definition = tools.find((tool) => tool.name === action)?.definition;
  return {
    ...defined({ description }),
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
