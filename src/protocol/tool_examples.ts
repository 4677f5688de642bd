/**
 * The examples of requests that the definition of a tool may have.
 *
 * @module
 */

import { isObject } from "../core/json.ts";
import type { ToolDefinition } from "./tool.ts";

/** The key in `_meta` of a tool. Modules also have the member `examples`. */
export const EXAMPLES_KEY = "ai.casys.pml/examples";
/**
 * The maximum number and length of the examples of a tool. PML ignores further examples, and cuts
 * longer ones.
 */
const EXAMPLES_MAX = 10;
const EXAMPLE_LENGTH_MAX = 120;

/** Returns the examples in a definition of a tool. */
export function examplesIn(tool: ToolDefinition): readonly string[] {
  const { examples, _meta } = tool;
  return [examples, isObject(_meta) ? _meta[EXAMPLES_KEY] : undefined]
    .flatMap((list) => Array.isArray(list) ? list : [])
    .filter((text) => typeof text === "string").slice(0, EXAMPLES_MAX)
    .map((text) => text.slice(0, EXAMPLE_LENGTH_MAX));
}
