/**
 * The full schemas of the meta-tools, for the check of arguments. Clients see shorter schemas,
 * because every word costs tokens.
 *
 * @module
 */

import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import type { MetaTool } from "../config/exposure.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { metaTools } from "./meta_tools.ts";

const TEXT: JsonObject = { type: "string" };
const TEXTS: JsonObject = { type: "array", items: TEXT };

/** A task of a plan. */
const TASK: JsonObject = {
  type: "object",
  properties: {
    id: TEXT,
    tool: TEXT,
    arguments: { type: "object" },
    depends_on: TEXTS,
    when: {},
    for_each: {},
  },
  required: ["id", "tool"],
};

/**
 * Returns a meta-tool whose schema allows only its own properties, and contains the schema of a task.
 * Returns the same object each time, so that its schema is compiled once.
 */
export function strictTool(name: MetaTool, batchMax: number): ToolDefinition {
  return strict(metaTools(batchMax)[name]);
}

const strict = memoized(
  ({ inputSchema, ...definition }: ToolDefinition): ToolDefinition => ({
    ...definition,
    inputSchema: closeSchema(inputSchema) as JsonObject,
  }),
);

/** Returns a schema in which objects may have only the named properties. */
function closeSchema(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(closeSchema);
  if (!isObject(schema)) return schema;
  const { tasks, ...rest } = schema as Readonly<Record<string, JsonObject>>;
  const full = tasks === undefined ? rest : { tasks: { ...tasks, minItems: 1, items: TASK } };
  const inner = Object.fromEntries(
    Object.entries(full).map(([name, value]) => [name, closeSchema(value as Json)]),
  );
  return isObject(inner.properties) ? { ...inner, additionalProperties: false } : inner;
}
