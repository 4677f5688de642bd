/**
 * Finds the folder in which a server keeps its data. The PML home contains such a folder for each
 * server in each workspace.
 *
 * @module
 */

import { join } from "node:path";
import { sha256 } from "../../core/hash.ts";

/** The variable in definitions that PML replaces by the path of the folder. */
export const DATA_FOLDER = "${dataFolder}";

/** Returns the path of the folder. */
export function dataFolder(
  { home, workspace, name }: {
    readonly home: string;
    readonly workspace: string;
    readonly name: string;
  },
): string {
  return join(home, "data", sha256(workspace).slice(0, 32), name);
}

/**
 * Returns whether a text may contain the path of a data folder. This check is cheap: it does not
 * need the hash in the path.
 */
export function isInData(text: string, home: string): boolean {
  return text.includes(join(home, "data"));
}

/** Replaces `${dataFolder}` in all strings. Calls `folder` only if the variable occurs. */
export function withDataFolder<T>(values: T, folder: () => string): T {
  // Only the content of strings changes, so the type is the same.
  return JSON.parse(
    JSON.stringify(values),
    (_, value) => typeof value === "string" ? value.replaceAll(DATA_FOLDER, folder) : value,
  ) as T;
}
