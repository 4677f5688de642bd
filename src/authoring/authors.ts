/**
 * The tools of authors of modules: the check of a module, and a registry.
 *
 * @module
 */

import { dirname, resolve } from "node:path";
import type { Config } from "../config/current_config.ts";
import { readRegular } from "../io/regular_file.ts";
import { findImports } from "../servers/module/imports.ts";
import { type FolderServing, type ServedFolder, serveFolder } from "../registry/serving.ts";
import type { SchemaChecker } from "./_schema_check.ts";
import { type CheckedModule, checkModule, type CheckOptions } from "./check.ts";
import { describeModule } from "../servers/module/describing.ts";

/** The options of the authors' tools. */
export interface AuthorsOptions {
  readonly config: () => Config;
  /** Reads the JSON of an exported capability. */
  readonly capability: FolderServing["capability"];
  /** Names that no module can have. */
  readonly taken: ReadonlySet<string>;
  readonly checker: SchemaChecker;
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
    const { config, taken, checker } = this.#options;
    return await checkModule(path, {
      ...options,
      ...config(),
      taken,
      checker,
    });
  }

  /** Returns the path of a module and those of the local files that it imports, directly or not. */
  async filesOf(path: string): Promise<readonly string[]> {
    const all = new Set([path]);
    // The loop also visits files that are added meanwhile.
    for (const file of all) {
      for (const specifier of await importedBy(file)) {
        if (/^\.\.?\//.test(specifier)) all.add(resolve(dirname(file), specifier));
      }
    }
    return [...all];
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

async function importedBy(file: string): Promise<readonly string[]> {
  try {
    const { bytes } = readRegular(file, { links: true });
    const { loading, types } = await findImports(new TextDecoder().decode(bytes), file);
    return [...types, ...loading.map(({ specifier }) => specifier)];
  } catch {
    return []; // the check reports why it cannot be read
  }
}
