/**
 * Opens the memory of the use of tools. It is loaded after the first call, or by a search.
 *
 * @module
 */

import { join } from "node:path";
import { definitionHash } from "../registry/integrity.ts";
import { UseMemory } from "../workflow/use_memory.ts";
import type { App } from "./app.ts";

/** Opens the memory; reads nothing yet. */
export function memoryOf(app: App): UseMemory {
  return new UseMemory({
    path: join(app.config().home, "memory.json"),
    isOn: () => app.config().memory,
    hashOf: definitionHash,
    warn: (message) => app.log.warn(message),
  });
}
