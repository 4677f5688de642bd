/**
 * The tools of authors of modules: the check of a module, and a registry.
 *
 * @module
 */

import { dirname, resolve } from "node:path";
import { readRegular } from "../io/regular_file.ts";
import { findImports } from "../servers/module/imports.ts";
import { type FolderServing, type ServedFolder, serveFolder } from "../registry/serving.ts";
import type { SchemaChecker } from "./_schema_check.ts";
import { type CheckedModule, checkModule, type CheckOptions } from "./check.ts";
import type { ConfigOwner } from "../config/current_config.ts";
import { FolderContents } from "../workflow/folder_contents.ts";

/** The tools of authors. */
export class Authors {
  readonly #policy: ConfigOwner;
  readonly #taken: ReadonlySet<string>;
  readonly #checker: SchemaChecker;

  /** Takes the names that no module can have; starts nothing yet. */
  constructor(policy: ConfigOwner, taken: ReadonlySet<string>, checker: SchemaChecker) {
    this.#policy = policy;
    this.#taken = taken;
    this.#checker = checker;
  }

  /** Checks a module for its author. */
  async checkModule(
    path: string,
    options: Pick<CheckOptions, "types" | "signal">,
  ): Promise<CheckedModule> {
    return await checkModule(path, {
      ...options,
      ...this.#policy.config,
      taken: this.#taken,
      checker: this.#checker,
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
    { signal, ...options }: Omit<FolderServing, "maxBytes"> & { readonly signal: AbortSignal },
  ): Promise<ServedFolder> {
    const { home, limits } = this.#policy.config;
    const contents = new FolderContents({ home, limits, signal, workspace: path });
    return await serveFolder(path, contents, { ...options, maxBytes: limits.moduleBytes });
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
