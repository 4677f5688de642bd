/**
 * What a tool is: its definition as MCP shows it, the permissions of the module behind it, and
 * the metadata of a module.
 *
 * @module
 */

import { PmlError } from "./errors.ts";
import { isObject, type Json, type JsonObject, quoted } from "./json.ts";
import { isServerName, isToolName } from "./tool_id.ts";

/** What a module's code may touch. Paths are relative to the workspace. */
export interface Permissions {
  /** Files and folders to read. */
  readonly read: readonly string[];
  /** Files and folders to write. */
  readonly write: readonly string[];
  /** Hosts to connect to. */
  readonly net: readonly string[];
  /** Commands to run. */
  readonly run: readonly string[];
  /** Variables of the environment to read. */
  readonly env: readonly string[];
}

/** No permission at all. */
export const NO_PERMISSIONS: Permissions = { read: [], write: [], net: [], run: [], env: [] };

/** A tool as MCP shows it. Unknown fields of an upstream's definition are kept. */
export interface ToolDefinition {
  /** Its name within its server. */
  readonly name: string;
  /** Its name for people. */
  readonly title?: string;
  /** What it does, for the model. */
  readonly description?: string;
  /** JSON Schema of its arguments, an object's. */
  readonly inputSchema: JsonObject;
  /** JSON Schema of its structured result. */
  readonly outputSchema?: JsonObject;
  /** Hints on what it does to the world. */
  readonly annotations?: JsonObject;
  /** Whatever else its server says of it. */
  readonly [key: string]: Json | undefined;
}

/** What a module says of itself in `__meta__`. */
export interface ModuleMeta {
  /** The server name that it would like. */
  readonly name: string;
  /** Its version, if it has one. */
  readonly version: string | undefined;
  /** What it is, in a sentence. */
  readonly description: string | undefined;
  /** Its tools, in the order that it names them. */
  readonly tools: readonly ModuleTool[];
}

/** One tool of a module: its definition and the permissions that it asks for. */
export interface ModuleTool {
  /** What clients are shown of it. */
  readonly definition: ToolDefinition;
  /** What it asks for. */
  readonly permissions: Permissions;
}

/** Reads `__meta__` (JSON from outside), or says what is wrong with it. `source` names the module. */
export function parseModuleMeta(value: unknown, source: string): ModuleMeta {
  if (!isObject(value)) throw bad(value, { source, key: "__meta__", wanted: "an object" });
  const { name, version, description, permissions, tools } = value;
  if (typeof name !== "string" || !isServerName(name)) {
    throw bad(name, {
      source,
      key: "__meta__.name",
      wanted: "a server name (a-z, 0-9, '.', '_', '-')",
    });
  }
  if (!isObject(tools)) {
    throw bad(tools, { source, key: "__meta__.tools", wanted: "an object of tools" });
  }
  const asked = parsePermissions(permissions, { source, key: "__meta__.permissions" });
  return {
    name,
    version: optionalText(version, { source, key: "__meta__.version" }),
    description: optionalText(description, { source, key: "__meta__.description" }),
    tools: Object.entries(tools).map(([tool, said]) => parseTool(tool, { said, asked, source })),
  };
}

function parseTool(
  name: string,
  from: { readonly said: unknown; readonly asked: Permissions; readonly source: string },
): ModuleTool {
  const { said, asked, source } = from;
  const key = `__meta__.tools.${name}`;
  if (!isToolName(name)) {
    throw bad(name, { source, key, wanted: "a tool name (A-Z, a-z, 0-9, '_', '.', '-')" });
  }
  if (!isObject(said)) throw bad(said, { source, key, wanted: "an object" });
  const { permissions, inputSchema, outputSchema, ...rest } = said;
  for (const [field, schema] of [["inputSchema", inputSchema], ["outputSchema", outputSchema]]) {
    if (schema !== undefined && !isObject(schema)) {
      throw bad(schema, { source, key: `${key}.${field}`, wanted: "a JSON Schema object" });
    }
  }
  optionalText(rest.description, { source, key: `${key}.description` });
  const definition = {
    ...rest,
    name,
    // MCP wants `type: "object"` at the root; a module may leave it out.
    inputSchema: { type: "object", ...(inputSchema as JsonObject | undefined) },
    ...(outputSchema === undefined ? {} : { outputSchema }),
  } as ToolDefinition;
  return {
    definition,
    permissions: permissions === undefined
      ? asked
      : parsePermissions(permissions, { source, key: `${key}.permissions` }),
  };
}

function parsePermissions(
  value: unknown,
  where: { readonly source: string; readonly key: string },
): Permissions {
  if (value === undefined) return NO_PERMISSIONS;
  if (!isObject(value)) {
    throw bad(value, { source: where.source, key: where.key, wanted: "an object" });
  }
  for (const [name, list] of Object.entries(value)) {
    if (!Object.hasOwn(NO_PERMISSIONS, name)) {
      throw bad(name, {
        source: where.source,
        key: `${where.key}.${name}`,
        wanted: "one of read, write, net, run, env",
      });
    }
    if (!Array.isArray(list) || !list.every((item) => typeof item === "string")) {
      throw bad(list, {
        source: where.source,
        key: `${where.key}.${name}`,
        wanted: "an array of strings",
      });
    }
  }
  return { ...NO_PERMISSIONS, ...(value as Partial<Permissions>) };
}

function optionalText(
  value: unknown,
  where: { readonly source: string; readonly key: string },
): string | undefined {
  if (value === undefined || typeof value === "string") return value;
  throw bad(value, { source: where.source, key: where.key, wanted: "a string" });
}

function bad(
  found: unknown,
  { source, key, wanted }: {
    readonly source: string;
    readonly key: string;
    readonly wanted: string;
  },
): PmlError {
  const said = quoted(JSON.stringify(found) ?? String(found));
  return new PmlError(
    "CONFIG_INVALID",
    `Cannot use the module ${quoted(source, 200)}: ${key} is ${said}, wanted ${wanted}`,
    { hint: "Mend __meta__ in the module, then call again" },
  );
}
