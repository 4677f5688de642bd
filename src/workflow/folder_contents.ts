/**
 * Reads the modules and the exported capabilities of a folder that PML serves as a registry.
 *
 * @module
 */

import type { JsonObject } from "../core/json.ts";
import type { ModuleMeta } from "../protocol/tool.ts";
import type { FolderReader } from "../registry/folder.ts";
import type { SavedCapability } from "../registry/registry_store.ts";
import { describeModule } from "../servers/module/describing.ts";
import type { LoadOptions } from "../servers/module/load_check.ts";
import { exportedIn } from "./saved_capability.ts";

/** Reads modules in a sandbox child without grants. */
export class FolderContents implements FolderReader {
  readonly #options: LoadOptions;

  /** Creates a reader with the limits of its children. Starts nothing. */
  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Returns the metadata of a module. */
  describe(path: string, code: Uint8Array): Promise<ModuleMeta> {
    return describeModule(path, code, this.#options);
  }

  /** Reads the JSON of an exported capability. */
  capability(json: JsonObject): SavedCapability {
    return exportedIn(json);
  }
}
