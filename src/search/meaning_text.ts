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
const LONGEST = 300;
const LONGEST_NAME = 100;
const JOINT = /(?<=[a-z0-9])(?=[A-Z])|[_\-./:\s]+/;

/** Gives the server, the tool and what is said of it, as words. */
export function meaningText({ id, tool, server }: CatalogEntry): string {
  const names = [server.name, splitToolId(id).tool].map((name) =>
    name.slice(0, LONGEST_NAME).split(JOINT).join(" ").trim()
  );
  const said = textOf(tool.description).slice(0, 4 * LONGEST).replace(/\s+/g, " ").trim();
  return `${names.join(" ")}. ${said.slice(0, LONGEST)}`;
}
