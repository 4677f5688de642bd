/**
 * Builds the text of a tool that models turn into a vector.
 *
 * @module
 */

import { textOf } from "../core/json.ts";
import { splitToolId } from "../core/tool_id.ts";
import type { CatalogEntry } from "./catalog.ts";

/**
 * The maximum number of characters of a description. Most longer descriptions contain usage rules
 * and examples after these, which make the vector less exact and take time.
 */
const LONGEST = 240;
const LONGEST_NAME = 100;
/** The position of a capital inside a word. Models split words only at `_`. */
const CAMEL = /(?<=[a-z0-9])(?=[A-Z])/g;

/** Returns the names of the server and the tool, and the beginning of the tool's description. */
export function meaningText({ id, tool, server }: CatalogEntry): string {
  const name = splitToolId(id).tool.slice(0, LONGEST_NAME).replace(CAMEL, "_");
  const description = textOf(tool.description).slice(0, 4 * LONGEST).replace(/\s+/g, " ").trim();
  return `${server.name} ${name}: ${description.slice(0, LONGEST)}`;
}
