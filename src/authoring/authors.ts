/**
 * Gives authors of modules their tools: a check of a module, and a registry of their own.
 *
 * @module
 */

import type { Config } from "../config/config.ts";
import type { Schemas } from "../gateway/schemas.ts";
import { type FolderServing, type ServedFolder, serveFolder } from "../registry/serving.ts";
import { type CheckedModule, checkModule, type CheckOptions } from "./check.ts";
import { describeModule } from "./describing.ts";
import { localFiles } from "./local_files.ts";

/** The options of the authors' tools. */
export interface AuthorsOptions {
  readonly config: () => Config;
  /** Reads the JSON of an exported capability. */
  readonly capability: FolderServing["capability"];
  /** Names that no module can have. */
  readonly taken: ReadonlySet<string>;
  readonly schemas: Schemas;
}

/** The tools of authors. */
export class Authors {
  readonly #options: AuthorsOptions;

  /** Starts nothing yet. */
  constructor(options: AuthorsOptions) {
    this.#options = options;
  }

  /** Checks a module for its author. */
  async checkModule(
    path: string,
    options: Pick<CheckOptions, "types" | "signal">,
  ): Promise<CheckedModule> {
    const { config, taken, schemas } = this.#options;
    return await checkModule(path, {
      ...options,
      ...config(),
      taken,
      compile: (schema) => schemas.read(schema),
    });
  }

  /** Returns the paths of a module and of the local files that it imports. */
  async filesOf(path: string): Promise<readonly string[]> {
    return await localFiles(path);
  }

  /** Serves a folder as a read-only registry, until the result is disposed. */
  async serveRegistry(
    path: string,
    { signal, ...options }: Omit<FolderServing, "maxBytes" | "describe" | "capability"> & {
      signal: AbortSignal;
    },
  ): Promise<ServedFolder> {
    const { home, limits } = this.#options.config();
    return await serveFolder(path, {
      ...options,
      capability: this.#options.capability,
      maxBytes: limits.moduleBytes,
      describe: (file, code) =>
        describeModule(file, code, { home, limits, signal, workspace: path }),
    });
  }
}
