/**
 * Opens the search for tools. The first search loads it.
 *
 * @module
 */

import { Finder } from "../gateway/finder.ts";
import { proxyVariables } from "../policy/network.ts";
import type { App } from "./app.ts";

/** Opens the search. Reads nothing yet. */
export function finderOf(app: App): Finder {
  return new Finder({
    ...app.parts,
    environment: app.loaded().environment,
    proxyVariables: () => proxyVariables(app.parts),
    catalog: app.catalog,
    servers: app.servers,
    registries: () => app.registries(),
    cloudTools: () => app.cloudTools(),
    onRanked: () => app.openGateway?.clients.listChanged("tools"),
    memory: () => app.memory(),
    machine: async () => (await app.callPath()).machine,
  });
}
