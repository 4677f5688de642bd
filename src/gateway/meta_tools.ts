/**
 * The definitions of the meta-tools. They are short, because they cost tokens in every session.
 *
 * @module
 */

import { META_TOOLS, type MetaTool, QUERIES_MAX } from "../config/exposure.ts";
import type { JsonObject } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";

const NAMES: ReadonlySet<string> = new Set(META_TOOLS);

/** Returns whether a name is the name of a meta-tool. */
export function isMetaTool(name: string): name is MetaTool {
  return NAMES.has(name);
}

/** The maximum number of tools that one `schema` request may name. */
export const SCHEMA_MAX = 10;

/**
 * Returns the definition of each meta-tool. Definitions do not depend on the servers, because a
 * changed list invalidates the prompt cache of the whole conversation.
 */
export function metaTools(batchMax: number): Record<MetaTool, ToolDefinition> {
  return {
    search: SEARCH,
    schema: SCHEMA,
    call: CALL,
    batch: batchTool(batchMax),
    execute_workflow: WORKFLOW,
    execute_code: CODE,
  };
}

/**
 * Claude Code loads the definition of a tool only when the model asks for it. A tool with this
 * member is loaded at once. The model needs `search`, `call` and `execute_code` for all other tools.
 */
const ALWAYS_LOAD = { "anthropic/alwaysLoad": true };

// Tools without these annotations may change data and use the network, by the defaults of MCP.
const READS = { readOnlyHint: true, openWorldHint: false };

const SEARCH: ToolDefinition = {
  name: "search",
  title: "Find tools",
  description:
    "Find tools by purpose: names and signatures (no type: a text). Search once for the " +
    "whole task, with a phrase for each step in `queries`. Use it before you say that something cannot be " +
    "done. [asks]: a call asks the user first",
  inputSchema: object({
    // Many clients cannot fill an argument of two types.
    queries: {
      type: "array",
      items: { type: "string" },
      maxItems: QUERIES_MAX,
      description: 'A phrase for each step: ["list open issues", "post a message"]',
    },
    query: { type: "string", description: "A single phrase, or a tool's name" },
    server: { type: "string", description: "Only this server's tools" },
    limit: { type: "integer", minimum: 1, maximum: 50, description: "Tools shown in full" },
  }),
  annotations: READS,
  _meta: ALWAYS_LOAD,
};

const SCHEMA: ToolDefinition = {
  name: "schema",
  title: "Show tool schemas",
  description: "Full schemas of tools, or TypeScript for code",
  inputSchema: object({
    tools: {
      type: "array",
      items: { type: "string" },
      minItems: 1,
      maxItems: SCHEMA_MAX,
      description: "Names from `search`",
    },
    as: { enum: ["typescript"] },
  }, ["tools"]),
  annotations: READS,
};

const CALL: ToolDefinition = {
  name: "call",
  title: "Call a tool",
  // Some clients do not show a server's instructions to the model, so the steps are here, too.
  description: "Run one tool. Find its name with `search` first, such as " +
    "filesystem:read_file",
  inputSchema: object({
    tool: { type: "string", description: "server:tool" },
    arguments: { type: "object" },
    select: { type: "string", description: "JSON pointer or JMESPath" },
  }, ["tool"]),
  _meta: ALWAYS_LOAD,
};

function batchTool(maxItems: number): ToolDefinition {
  const call = object({
    id: { type: "string" },
    tool: { type: "string" },
    arguments: { type: "object" },
    select: { type: "string" },
  }, ["tool"]);
  return {
    name: "batch",
    title: "Call several tools",
    description: "Run independent calls at once; one failure stops no other",
    inputSchema: object({ calls: { type: "array", minItems: 1, maxItems, items: call } }, [
      "calls",
    ]),
  };
}

const WORKFLOW: ToolDefinition = {
  name: "execute_workflow",
  title: "Run a plan",
  description:
    "Run calls that depend on each other: a plan, or an intent to make one. A task: {id, " +
    'tool, arguments, depends_on?, when?, for_each?}. {"$ref": "id#/pointer"} is the output of a ' +
    "task, $item# the element of for_each",
  inputSchema: object({
    plan: object({ tasks: { type: "array", items: { type: "object" } } }, ["tasks"]),
    intent: { type: "string" },
    resume: { type: "string" },
    read: { type: "string" },
    save_as: {},
  }),
};

const CODE: ToolDefinition = {
  name: "execute_code",
  title: "Run code",
  description:
    "Run TypeScript that calls tools: `await mcp.server.tool(args)`; `return` the result",
  inputSchema: object({
    code: { type: "string" },
    timeout_ms: { type: "integer", minimum: 1 },
    // The workflow checks its type.
    save_as: { description: '"namespace:action" or {name, parameters: {city: "Paris"}}' },
  }, ["code"]),
  _meta: ALWAYS_LOAD,
};

/** Returns a short schema. The check of arguments refuses other properties (`strictTool()`). */
function object(properties: JsonObject, required?: readonly string[]): JsonObject {
  return { type: "object", properties, ...(required && { required }) };
}
