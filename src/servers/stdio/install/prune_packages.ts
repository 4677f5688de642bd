/**
 * Removes installed packages that no definition names now.
 *
 * @module
 */

import { join } from "node:path";
import { namesIn } from "../../../io/private_files.ts";
import { packageIfAny, type WrittenCommand } from "../_package_command.ts";
import { readRecord } from "./_record.ts";

/** Removes the packages that none of the commands names. Returns their specs, such as `a@1.0.0`. */
export async function prunePackages(
  home: string,
  commands: readonly WrittenCommand[],
): Promise<readonly string[]> {
  const names = commands.flatMap((command) => packageIfAny(command)?.name ?? []);
  const folder = join(home, "servers");
  const pruned: string[] = [];
  for (const name of await namesIn(folder)) {
    const path = join(folder, name);
    const spec = /^(npm|uv)-[0-9a-f]{32}$/.test(name) ? specIn(path) : undefined;
    // In `spec`, the name may be followed by a separator, such as `@`, and the version.
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
    return undefined; // the next installation replaces this incomplete one
  }
}
