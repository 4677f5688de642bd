/**
 * The folder in which a server keeps its data: its own, in the PML home, apart for each workspace.
 *
 * @module
 */

import { join } from "node:path";
import { sha256 } from "../core/hash.ts";

/** How a definition names it. */
export const DATA_FOLDER = "${dataFolder}";

/** Gives its path. */
export function dataFolder(
  { home, workspace, name }: {
    readonly home: string;
    readonly workspace: string;
    readonly name: string;
  },
): string {
  return join(home, "data", sha256(workspace).slice(0, 32), name);
}

/** Gives values with its path where they name it. */
export function withDataFolder<T>(values: T, folder: string): T {
  // Nothing else changes, so it is of the same kind.
  return JSON.parse(
    JSON.stringify(values),
    (_, value) => typeof value === "string" ? value.replaceAll(DATA_FOLDER, () => folder) : value,
  ) as T;
}
