/**
 * The text of a tool that models turn into a vector.
 *
 * @module
 */

import { textOf } from "../core/json.ts";
import { splitToolId } from "../core/tool_id.ts";
import type { CatalogEntry } from "./catalog.ts";

/**
 * How much of a description is used. The rest is mostly usage rules and examples, which make the
 * vector less exact and take more time.
 */
const LONGEST = 240;
const LONGEST_NAME = 100;
/** Models split words at `_`, and most ignore capitals. */
const CAMEL = /(?<=[a-z0-9])(?=[A-Z])/g;

/** Returns the server, the tool and the beginning of its description. */
export function meaningText({ id, tool, server }: CatalogEntry): string {
  const name = splitToolId(id).tool.slice(0, LONGEST_NAME).replace(CAMEL, "_");
  const description = textOf(tool.description).slice(0, 4 * LONGEST).replace(/\s+/g, " ").trim();
  return `${server.name} ${name}: ${description.slice(0, LONGEST)}`;
}
