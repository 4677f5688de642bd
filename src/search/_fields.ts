/**
 * Reads out of a tool's definition the texts that search looks at.
 *
 * @module
 */

import { isObject } from "../core/json.ts";
import type { CatalogEntry } from "./catalog.ts";

/** A field's weight in the ranking: what a tool is called says more than what is said of it. */
export const FIELD_WEIGHTS: readonly number[] = [3, 1, 1, 0.5, 0.25];

const LONGEST_FIELD = 2_000;
const DEEPEST = 4;
const MOST_PARAMETERS = 200;

/** Gives the texts of a tool in the order of the weights: name, server, description, parameter names, parameter descriptions. */
export function fieldsOf({ id, tool, server }: CatalogEntry): readonly string[] {
  const said: Said = { names: [], descriptions: [] };
  gather(tool.inputSchema, { said, depth: 0 });
  return [
    id.slice(id.indexOf(":") + 1),
    [server.name, text(server.title)].join(" "),
    [text(tool.title), text(tool.description)].join(" "),
    said.names.join(" "),
    said.descriptions.join(" "),
  ].map((field) => field.slice(0, LONGEST_FIELD));
}

interface Said {
  readonly names: string[];
  readonly descriptions: string[];
}

// Definitions come from outside: nothing is where it should be until it was looked at.
function gather(schema: unknown, at: { readonly said: Said; readonly depth: number }): void {
  const { said, depth } = at;
  if (!isObject(schema) || depth > DEEPEST) return;
  const inner = { said, depth: depth + 1 };
  if (isObject(schema.properties)) {
    for (const [name, property] of Object.entries(schema.properties)) {
      if (said.names.length >= MOST_PARAMETERS) return;
      said.names.push(name.slice(0, LONGEST_FIELD));
      if (isObject(property)) said.descriptions.push(text(property.description));
      gather(property, inner);
    }
  }
  gather(schema.items, inner);
}

function text(value: unknown): string {
  return typeof value === "string" ? value.slice(0, LONGEST_FIELD) : "";
}
