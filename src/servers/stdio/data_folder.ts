/**
 * Finds the folder in which a server keeps its data. It lies in the PML home, one for each
 * workspace and server.
 *
 * @module
 */

import { join } from "node:path";
import { sha256 } from "../../core/hash.ts";

/** How a definition names the folder. */
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

/** Returns values in which the name of the folder is replaced by its path. */
export function withDataFolder<T>(values: T, folder: string): T {
  // Only strings change, so the type stays.
  return JSON.parse(
    JSON.stringify(values),
    (_, value) => typeof value === "string" ? value.replaceAll(DATA_FOLDER, () => folder) : value,
  ) as T;
}
