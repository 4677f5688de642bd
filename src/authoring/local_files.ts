/**
 * Finds the local files that a module imports, whose changes change what a check finds.
 *
 * @module
 */

import { dirname, resolve } from "node:path";
import { readRegular } from "../io/regular_file.ts";
import { findImports } from "../modules/imports.ts";

/** Returns the path of a module and those of the local files that it imports, directly or not. */
export async function localFiles(path: string): Promise<readonly string[]> {
  const all = new Set([path]);
  // A set also gives what is added while it is read.
  for (const file of all) {
    for (const specifier of await importedBy(file)) {
      if (/^\.\.?\//.test(specifier)) all.add(resolve(dirname(file), specifier));
    }
  }
  return [...all];
}

async function importedBy(file: string): Promise<readonly string[]> {
  try {
    const { bytes } = readRegular(file, { links: true });
    const { loading, types } = await findImports(new TextDecoder().decode(bytes), file);
    return [...types, ...loading.map(({ specifier }) => specifier)];
  } catch {
    return []; // the check tells why it cannot be read
  }
}
