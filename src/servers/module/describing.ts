/**
 * Reads the metadata of a module for those who publish it and never call it.
 *
 * @module
 */

import type { ModuleMeta } from "../../protocol/tool.ts";
import { textOfUtf8 } from "../../core/utf8.ts";
import { Loader } from "./loader.ts";
import { unloadable } from "./module_files.ts";
import { integrityOf } from "../../policy/integrity.ts";
import { load, type LoadOptions } from "./load_check.ts";

/** Reads the metadata of a module in a child without grants, as the loader does. */
export async function describeModule(
  path: string,
  code: Uint8Array,
  options: LoadOptions,
): Promise<ModuleMeta> {
  const loader = new Loader({
    home: options.home,
    // Uses these bytes, even if the file has changed since.
    files: { identify: () => ({ code, integrity: integrityOf(code) }) },
    moduleBytes: () => code.length,
    inspect: async () => {
      const text = textOfUtf8(code);
      const { inspection, why = "it does not load" } = await load(text, options);
      if (inspection !== undefined) return inspection;
      throw unloadable(path, why, { hint: "Check it with `pml check`" });
    },
  });
  return (await loader.load({
    source: { kind: "file", name: "module", path },
    approved: undefined,
    grants: undefined,
  })).meta;
}
