/**
 * The keys of the settings, for `pml config set` and its completion.
 *
 * @module
 */

import { isObject, memberOf } from "../core/json.ts";
import type { Schema } from "../core/value_schema.ts";

/** Settings that `pml config set` does not write, and the commands that write them instead. */
export const OTHER_COMMANDS: Readonly<Record<string, string>> = {
  permissions: "`pml allow`, `pml ask` or `pml deny`",
  mcpServers: "`pml add`",
  private_mcps: "`pml add`",
};

/** Returns the keys of a schema, as `gateway.prefix`, with the schemas of their values. */
export function settingKeys(schema: Schema, path = ""): readonly (readonly [string, Schema])[] {
  const { properties } = schema;
  if (!isObject(properties)) return [[path, schema]];
  return Object.entries(properties as Record<string, Schema>)
    .flatMap(([key, property]) => settingKeys(property, path === "" ? key : `${path}.${key}`));
}

/** Returns the words that may come next in `pml config set`: keys, or after a key its values. */
export function settingWords(schema: Schema, line: readonly string[]): readonly string[] {
  const keys = settingKeys(schema)
    .filter(([key]) => memberOf(OTHER_COMMANDS, key.split(".", 1)[0] ?? "") === undefined);
  if (line.length < 2) return keys.map(([key]) => key);
  const { type, enum: choices, examples = choices } = Object(new Map(keys).get(line[0] ?? ""));
  return type === "boolean" ? ["true", "false"] : Array.isArray(examples) ? examples : [];
}
