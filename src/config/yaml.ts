/**
 * Loads the YAML library.
 *
 * @module
 */

import type * as library from "./yaml_main.ts";

/** Loads the library from one file, because its own 74 files take 30 ms to load. */
export async function loadYaml(): Promise<typeof library> {
  return await import("./yaml.min.js") as unknown as typeof library;
}
