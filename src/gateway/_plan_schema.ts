/**
 * The schema of a plan. Clients see the words of `execute_workflow` instead, which cost less; what
 * they send is checked against this.
 *
 * @module
 */

import type { JsonObject } from "../core/json.ts";
import type { ToolDefinition } from "../core/tool.ts";

/** The tasks of a plan. */
const TASKS: JsonObject = {
  type: "array",
  minItems: 1,
  items: {
    type: "object",
    properties: {
      id: { type: "string" },
      tool: { type: "string" },
      arguments: { type: "object" },
      depends_on: { type: "array", items: { type: "string" } },
      when: {},
      for_each: {},
    },
    required: ["id", "tool"],
    additionalProperties: false,
  },
};

/** Returns the definition of `execute_workflow` with the schema of the tasks in full. */
export function withTasks({ inputSchema, ...definition }: ToolDefinition): ToolDefinition {
  const { plan, ...properties } = inputSchema.properties as Readonly<Record<string, JsonObject>>;
  const full = { ...plan, properties: { tasks: TASKS } };
  return {
    ...definition,
    inputSchema: { ...inputSchema, properties: { ...properties, plan: full } },
  };
}
