/**
 * Reads the metadata of a module that is about to be published.
 *
 * @module
 */

import type { ModuleMeta } from "../../protocol/tool.ts";
import { textOfUtf8 } from "../../core/utf8.ts";
import { type Inspection, Loader, type ModuleInspector } from "./loader.ts";
import type { ModuleReader } from "./module_files.ts";
import { type ModuleCode, unloadableError } from "./module_files.ts";
import { integrityOf } from "../../core/hash.ts";
import { loadModule, type LoadOptions } from "./load_check.ts";

/** Reads the metadata of a module in a child without grants, as the loader does. */
export async function describeModule(
  path: string,
  code: Uint8Array,
  options: LoadOptions,
): Promise<ModuleMeta> {
  const module = new PublishedModule(path, code, options);
  const loader = new Loader(options.home, module, module);
  return (await loader.load({
    source: { kind: "file", name: "module", path },
    expectedHash: undefined,
    grants: undefined,
  })).meta;
}

/**
 * Returns and inspects the bytes to publish, even if their file has changed since they were read.
 */
class PublishedModule implements ModuleReader, ModuleInspector {
  readonly #path: string;
  readonly #code: Uint8Array;
  readonly #options: LoadOptions;

  constructor(path: string, code: Uint8Array, options: LoadOptions) {
    this.#path = path;
    this.#code = code;
    this.#options = options;
  }

  get moduleBytes(): number {
    return this.#code.length;
  }

  identify(): ModuleCode {
    return { code: this.#code, integrity: integrityOf(this.#code) };
  }

  async inspect(): Promise<Inspection> {
    const text = textOfUtf8(this.#code);
    const { inspection, why = "it does not load" } = await loadModule(text, this.#options);
    if (inspection !== undefined) return inspection;
    throw unloadableError(this.#path, why, { hint: "Check it with `pml check`" });
  }
}
