/**
 * Reads the modules and the exported capabilities of a folder that PML serves as a registry.
 *
 * @module
 */

import type { Config } from "../config/current_config.ts";
import type { JsonObject } from "../core/json.ts";
import type { ModuleMeta } from "../protocol/tool.ts";
import type { FolderReader } from "../registry/folder.ts";
import type { SavedCapability } from "../registry/registry_store.ts";
import { describeModule } from "../servers/module/describe_module.ts";
import type { LoadOptions } from "../servers/module/load_check.ts";
import { parseExported } from "./saved_capability.ts";

/** Reads modules in a sandbox child without grants. */
export class FolderContents implements FolderReader {
  /** The real path of the folder. */
  readonly path: string;
  /** The largest size of a file, in bytes. */
  readonly maxBytes: number;
  readonly #options: LoadOptions;

  /** Creates a reader with the limits of its children. Starts nothing. */
  constructor(path: string, config: Pick<Config, "home" | "limits">, signal: AbortSignal) {
    const { home, limits } = config;
    this.path = path;
    this.maxBytes = limits.moduleBytes;
    this.#options = { home, limits, signal, workspace: path };
  }

  /** Returns the metadata of a module. */
  describe(path: string, code: Uint8Array): Promise<ModuleMeta> {
    return describeModule(path, code, this.#options);
  }

  /** Reads the JSON of an exported capability. */
  parseCapability(json: JsonObject): SavedCapability {
    return parseExported(json);
  }
}
