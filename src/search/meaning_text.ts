/**
 * What of a tool a model reads to know what it is for.
 *
 * @module
 */

import { textOf } from "../core/json.ts";
import { splitToolId } from "../core/tool_id.ts";
import type { CatalogEntry } from "./catalog.ts";

/**
 * How much of a description counts: what follows is rules of use and examples, which models of this
 * kind mix into the meaning, and each more costs time.
 */
const LONGEST = 240;
const LONGEST_NAME = 100;
/** Models cut at `_`, and most of them see no capitals. */
const CAMEL = /(?<=[a-z0-9])(?=[A-Z])/g;

/** Gives the server, the tool and the beginning of what is said of it. */
export function meaningText({ id, tool, server }: CatalogEntry): string {
  const name = splitToolId(id).tool.slice(0, LONGEST_NAME).replace(CAMEL, "_");
  const said = textOf(tool.description).slice(0, 4 * LONGEST).replace(/\s+/g, " ").trim();
  return `${server.name} ${name}: ${said.slice(0, LONGEST)}`;
}
