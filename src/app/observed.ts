/**
 * Returns what was observed of the results of tools, for declarations of tools that declare none.
 *
 * @module
 */

import type { Observed } from "../workflow/declarations.ts";
import type { App } from "./app.ts";

/** Returns what was observed of the results of the tools that are known. */
export async function observedBy(app: App): Promise<Observed> {
  const memory = await app.memory();
  return (server, shown) => {
    // A person may have changed what is shown. What was observed belongs to the tool itself.
    const entry = app.catalog.toolsOf(server).find(({ tool }) => tool.name === shown.name);
    const own = entry && app.catalog.get(entry.id)?.own;
    return entry && own && memory.observed(entry.id, own);
  };
}
