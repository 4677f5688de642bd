/**
 * Extracts from a tool's definition the texts that search indexes.
 *
 * @module
 */

import { isObject, textOf } from "../core/json.ts";
import type { CatalogEntry } from "./catalog.ts";

/** The weights of the fields. The name of a tool is more important than its description. */
export const FIELD_WEIGHTS: readonly number[] = [3, 1, 1, 0.5, 0.25];

const LONGEST_FIELD = 2_000;
const DEEPEST = 4;
const MOST_PARAMETERS = 200;

/**
 * Returns the texts of a tool in the order of the weights: name, server, description, names of
 * parameters, descriptions of parameters.
 */
export function fieldsOf({ id, tool, server }: CatalogEntry): readonly string[] {
  const texts: ParameterTexts = { names: [], descriptions: [] };
  collectParameters(tool.inputSchema, { texts, depth: 0 });
  return [
    id.slice(id.indexOf(":") + 1),
    [server.name, shortText(server.title)].join(" "),
    [shortText(tool.title), shortText(tool.description)].join(" "),
    texts.names.join(" "),
    texts.descriptions.join(" "),
  ].map((field) => field.slice(0, LONGEST_FIELD));
}

interface ParameterTexts {
  readonly names: string[];
  readonly descriptions: string[];
}

/** Collects the names and descriptions of parameters. Servers may send any value as a schema. */
function collectParameters(
  schema: unknown,
  { texts, depth }: { readonly texts: ParameterTexts; readonly depth: number },
): void {
  if (!isObject(schema) || depth > DEEPEST) return;
  const inner = { texts, depth: depth + 1 };
  if (isObject(schema.properties)) {
    for (const [name, property] of Object.entries(schema.properties)) {
      if (texts.names.length >= MOST_PARAMETERS) return;
      texts.names.push(name.slice(0, LONGEST_FIELD));
      if (isObject(property)) texts.descriptions.push(shortText(property.description));
      collectParameters(property, inner);
    }
  }
  collectParameters(schema.items, inner);
}

function shortText(value: unknown): string {
  return textOf(value).slice(0, LONGEST_FIELD);
}
