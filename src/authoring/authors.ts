/**
 * The tools for authors of modules: checking a module, and serving a folder as a registry.
 *
 * @module
 */

import { dirname, resolve } from "node:path";
import { readRegular } from "../io/regular_file.ts";
import { findImports } from "../servers/module/imports.ts";
import { type FolderServing, type ServedFolder, serveFolder } from "../registry/folder_serving.ts";
import type { SchemaChecker } from "./_schema_check.ts";
import { type CheckedModule, type CheckHost, ModuleCheck } from "./check.ts";
import type { Config, ConfigOwner } from "../config/current_config.ts";
import { FolderContents } from "../workflow/folder_contents.ts";

/** The tools for authors. */
export class Authors implements CheckHost {
  /** The names of built-in servers, which a module cannot have. */
  readonly builtinNames: ReadonlySet<string>;
  /** Checks values against schemas as calls do. */
  readonly checker: SchemaChecker;
  readonly #policy: ConfigOwner;

  /** Creates an instance. Starts nothing yet. */
  constructor(policy: ConfigOwner, builtinNames: ReadonlySet<string>, checker: SchemaChecker) {
    this.#policy = policy;
    this.builtinNames = builtinNames;
    this.checker = checker;
  }

  /** The current configuration. */
  get config(): Config {
    return this.#policy.config;
  }

  /** Checks a module for its author, including its types if `withTypes` is set. */
  async checkModule(
    path: string,
    signal: AbortSignal,
    withTypes: boolean,
  ): Promise<CheckedModule> {
    return await new ModuleCheck(path, this, signal).run(withTypes);
  }

  /**
   * Returns the paths of a module and of all local files that it imports, directly or indirectly.
   */
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
    { signal, ...options }: FolderServing & { readonly signal: AbortSignal },
  ): Promise<ServedFolder> {
    return await serveFolder(new FolderContents(path, this.config, signal), options);
  }
}

async function importedBy(file: string): Promise<readonly string[]> {
  try {
    const { bytes } = readRegular(file, { links: true });
    const { loading, types } = await findImports(new TextDecoder().decode(bytes), file);
    return [...types, ...loading.map(({ specifier }) => specifier)];
  } catch {
    return []; // the check reports the error
  }
}
