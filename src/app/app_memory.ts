/**
 * Opens the memory of the use of tools, and reads it for declarations of tools that declare no
 * results. It is loaded after the first call, or by a search.
 *
 * @module
 */

import { join } from "node:path";
import { sha256 } from "../core/hash.ts";
import type { Observed } from "../workflow/declarations.ts";
import { UseMemory } from "../workflow/use_memory.ts";
import type { App } from "./app.ts";

/** Opens the memory of this workspace and this user or identity; reads nothing yet. */
export function memoryOf(app: App): UseMemory {
  const { home, workspace, narrowing } = app.config();
  const name = sha256(JSON.stringify([workspace, narrowing?.identity?.name ?? null])).slice(0, 32);
  const path = join(home, "memory", `${name}.json`);
  return new UseMemory({ path, common: join(home, "memory.json") }, app.policy, app.log);
}

/** Returns the observed types of the results of known tools. */
export async function observedBy(app: App): Promise<Observed> {
  const memory = await app.memory();
  return (server, definition) => {
    // The user may have changed the shown definition. Observations belong to the tool's own
    // definition.
    const entry = app.catalog.toolsOf(server).find(({ tool }) => tool.name === definition.name);
    const own = entry && app.catalog.get(entry.id)?.own;
    return entry && own && memory.observed(entry.id, own);
  };
}
