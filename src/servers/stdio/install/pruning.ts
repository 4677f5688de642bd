/**
 * Removes installed packages that no definition names any longer.
 *
 * @module
 */

import { join } from "node:path";
import { namesIn } from "../../../io/private_files.ts";
import { packageIfAny, type WrittenCommand } from "../_package_command.ts";
import { readRecord } from "./_record.ts";

/** Removes the packages that none of these commands names. Returns their specifiers. */
export async function prunePackages(
  home: string,
  named: readonly WrittenCommand[],
): Promise<readonly string[]> {
  const names = named.flatMap((one) => packageIfAny(one)?.name ?? []);
  const folder = join(home, "servers");
  const pruned: string[] = [];
  for (const name of await namesIn(folder)) {
    const path = join(folder, name);
    const spec = /^(npm|uv)-[0-9a-f]{32}$/.test(name) ? specIn(path) : undefined;
    // The version follows the name, after any separator.
    const isNamed = spec === undefined ||
      names.some((one) => spec.startsWith(one) && !/^[\w.-]/.test(spec.slice(one.length)));
    if (isNamed) continue;
    await Deno.remove(path, { recursive: true });
    pruned.push(spec);
  }
  return pruned;
}

function specIn(folder: string): string | undefined {
  try {
    return readRecord(folder)?.spec;
  } catch {
    return undefined; // it is not whole: the next installation replaces it
  }
}
