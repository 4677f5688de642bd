/**
 * A tool: its definition as MCP shows it, the permissions of its module, and the metadata of a
 * module.
 *
 * @module
 */

import { basename } from "node:path";
import { PmlError } from "../core/errors.ts";
import { isObject, type Json, type JsonObject, quoted, visible } from "../core/json.ts";
import { isUsableServerName, serverSlug } from "../core/tool_id.ts";
import {
  type Issue,
  leaf,
  object,
  record,
  setting,
  type ValueOf,
  withKeywords,
} from "../core/value_schema.ts";

/** The permissions of a module's code. Paths are relative to the workspace. */
export interface Permissions {
  /** Files and folders to read. */
  readonly read: readonly string[];
  /** Files and folders to write. */
  readonly write: readonly string[];
  /** Hosts to connect to. */
  readonly net: readonly string[];
  /** Programs to run. */
  readonly run: readonly string[];
  /** Environment variables to read. */
  readonly env: readonly string[];
}

/** No permissions at all. */
export const NO_PERMISSIONS: Permissions = { read: [], write: [], net: [], run: [], env: [] };

/** Returns the union of several permissions, without duplicates. */
export function unionOfPermissions(all: readonly Partial<Permissions>[]): Permissions {
  const kinds = Object.keys(NO_PERMISSIONS) as (keyof Permissions)[]; // the keys of a literal
  const lists = kinds.map((kind) => [kind, [...new Set(all.flatMap((one) => one[kind] ?? []))]]);
  return Object.fromEntries(lists);
}

/** A tool as MCP shows it. Unknown fields of a server's definition are kept. */
export interface ToolDefinition {
  /** The name within its server. */
  readonly name: string;
  /** The name for people. */
  readonly title?: string;
  /** The description for the model. */
  readonly description?: string;
  /** The JSON Schema of the arguments, which are an object. */
  readonly inputSchema: JsonObject;
  /** The JSON Schema of the structured result. */
  readonly outputSchema?: JsonObject;
  /** Hints about the effects of the tool. */
  readonly annotations?: JsonObject;
  /**
   * `internal` hides the tool from everything but its own server and the user's saved capabilities.
   */
  readonly visibility?: Json;
  /** Other members of the server's definition. */
  readonly [key: string]: Json | undefined;
}

/** The metadata of a module, from its `__meta__`. */
export interface ModuleMeta {
  /** The server name that the module suggests. */
  readonly name: string;
  /** The version, if it has one. */
  readonly version: string | undefined;
  /** A description in one sentence. */
  readonly description: string | undefined;
  /** The tools, in the order of `__meta__`. */
  readonly tools: readonly ModuleTool[];
}

/** One tool of a module: its definition and the permissions that it needs. */
export interface ModuleTool {
  /** The definition that clients see. */
  readonly definition: ToolDefinition;
  /** The permissions that it needs. */
  readonly permissions: Permissions;
}

/** The `__meta__` that a module's author writes. */
export interface Meta {
  /** The server name that the module suggests; by default the name of its file. */
  readonly name?: string;
  /** The version. */
  readonly version?: string;
  /** A description in one sentence. */
  readonly description?: string;
  /** The permissions of the tools that declare none. */
  readonly permissions?: Partial<Permissions>;
  /** The tools, by the names of the exported functions. */
  readonly tools: Readonly<Record<string, ToolMeta>>;
}

/** One tool in `__meta__`. */
export interface ToolMeta {
  /** The name for people. */
  readonly title?: string;
  /** The description for the model. */
  readonly description?: string;
  /** The JSON Schema of the arguments, an object; by default any object. */
  readonly inputSchema?: object;
  /** The JSON Schema of the structured result. */
  readonly outputSchema?: object;
  /** Hints about the effects of the tool, such as `readOnlyHint`. */
  readonly annotations?: object;
  /** The permissions that it needs, in place of the module's. */
  readonly permissions?: Partial<Permissions>;
  /** Its errors by code: when each occurs, or the JSON Schema of its structured content. */
  readonly errors?: Readonly<Record<string, string | object>>;
  /** `internal` for a tool that only saved capabilities may call. No list or search contains it. */
  readonly visibility?: "internal" | "external";
  /** Requests for which the tool is meant, which search uses: at most 10 of 120 characters. */
  readonly examples?: readonly string[];
  /** The icons. */
  readonly icons?: readonly object[];
  /** The execution options of MCP. */
  readonly execution?: object;
  /** Metadata for clients. */
  readonly _meta?: object;
}

const TEXT = leaf<string>("a string", (value) => typeof value === "string", { type: "string" });
const OBJECT = leaf<JsonObject>("an object", isObject, { type: "object" });
const SCHEMA = leaf<JsonObject>("a JSON Schema object", isObject, { type: "object" });
const ARGUMENTS_SCHEMA = leaf<JsonObject>(
  'a JSON Schema object of type "object"',
  (value) => isObject(value) && { type: "object", ...value }.type === "object",
  { type: "object", properties: { type: { const: "object" } } },
);
const TEXTS = leaf<string[]>(
  "an array of strings",
  (value) => Array.isArray(value) && value.every((item) => typeof item === "string"),
  { type: "array", items: { type: "string" } },
);
const EXAMPLES = leaf<string[]>(
  "an array of at most 10 strings of at most 120 characters",
  (value) =>
    Array.isArray(value) && value.length <= 10 &&
    value.every((item) => typeof item === "string" && item.length <= 120),
  { type: "array", items: { type: "string", maxLength: 120 }, maxItems: 10 },
);
const ERRORS = leaf<JsonObject>(
  "an object of texts or JSON Schema objects, by the code of the error",
  (value) =>
    isObject(value) &&
    Object.values(value).every((item) => typeof item === "string" || isObject(item)),
  { type: "object", additionalProperties: { type: ["string", "object"] } },
);
const A_SERVER = "a server name (a-z, 0-9, '.', '_', '-')";
const SERVER_NAME = leaf<string>(
  A_SERVER,
  (value) => typeof value === "string" && isUsableServerName(value),
  { type: "string", name: "serverName", pattern: isUsableServerName },
);
/**
 * The pattern of tool names in modules. Refuses names that PML would have to change for clients.
 */
const PLAIN_NAME = /^[A-Za-z0-9_./-]{1,128}$/;
const TOOL_NAME = leaf<string>(
  "a tool name (A-Z, a-z, 0-9, '_', '.', '-')",
  (value) => typeof value === "string" && PLAIN_NAME.test(value),
  { type: "string", pattern: PLAIN_NAME },
);
const PERMISSIONS = withKeywords(
  object({}, {
    read: setting(TEXTS, "Files and folders to read, relative to the workspace.", []),
    write: setting(TEXTS, "Files and folders to write, relative to the workspace.", []),
    net: setting(TEXTS, "Hosts to connect to.", []),
    run: setting(TEXTS, "Programs to run.", []),
    env: setting(TEXTS, "Variables to read.", []),
  }),
  { name: "permissions" },
);
const TOOL_META = object({}, {
  title: setting(TEXT, "The name for people; by default the name of the tool."),
  description: setting(TEXT, "The description for the model; none by default."),
  annotations: setting(OBJECT, "Hints about the effects of the tool, such as readOnlyHint.", {}),
  _meta: setting(OBJECT, "Further metadata for clients.", {}),
  examples: setting(
    EXAMPLES,
    "Requests for which the tool is meant: at most 10 of 120 characters. Search uses them.",
    [],
  ),
  errors: setting(
    ERRORS,
    "The errors of the tool by code: when each occurs, or the JSON Schema of its structured content.",
    {},
  ),
  visibility: setting(
    leaf<string>(
      '"internal" or "external"',
      (value) => value === "internal" || value === "external",
      { enum: ["internal", "external"] },
    ),
    "internal keeps it from every list, search and client; saved capabilities may call it.",
    "external",
  ),
  outputSchema: setting(SCHEMA, "The JSON Schema of the structured result; none by default."),
  inputSchema: setting(
    ARGUMENTS_SCHEMA,
    "The JSON Schema of the arguments, an object; by default any object.",
  ),
  permissions: setting(PERMISSIONS, "The permissions that it needs, in place of the module's."),
}, { isOpen: true });

/** The schema of `__meta__`. Unknown keys are kept for later versions, and grant nothing. */
export const metaSchema = object(
  {
    tools: setting(
      record(TOOL_NAME, TOOL_META, "an object of tools"),
      "The tools, by the names of the functions.",
    ),
  },
  {
    permissions: setting(PERMISSIONS, "The permissions of the tools that have none."),
    name: setting(SERVER_NAME, "The name of the server; by default that of the file."),
    version: setting(TEXT, "The version; none by default."),
    description: setting(TEXT, "A description in one sentence; none by default."),
  },
  { isOpen: true },
);

/**
 * Parses the `__meta__` of a module. `source` is the path of the module, which error messages
 * contain. If `name` is missing, the server gets its name from this path.
 *
 * @throws {PmlError} CONFIG_INVALID if a member is wrong; the message names the member and the wanted
 * value.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { parseModuleMeta } from "@casys/pml/registry";
 *
 * const { name, tools } = parseModuleMeta({ tools: { greet: {} } }, "modules/hello.ts");
 * assert.equal(name, "hello");
 * assert.equal(tools[0]?.definition.name, "greet");
 * assert.throws(() => parseModuleMeta({}, "modules/hello.ts"), { code: "CONFIG_INVALID" });
 * ```
 */
export function parseModuleMeta(value: unknown, source: string): ModuleMeta {
  const namedValue = isObject(value) && value.name === undefined
    ? { ...value, name: nameOfFile(source) }
    : value;
  const throwIssue = ({ path, wanted, keys }: Issue): never => {
    const actual = keys === undefined
      ? path.reduce<unknown>((part, key) => Object(part)[key], namedValue)
      : path.at(-1);
    const text = visible(JSON.stringify(actual) ?? String(actual), 80);
    const key = ["__meta__", ...path].join(".");
    throw new PmlError(
      "CONFIG_INVALID",
      `Cannot use the module ${quoted(source, 200)}: ${key} is ${text}, wanted ${wanted}`,
      { hint: "Fix __meta__ in the module, then call again" },
    );
  };
  const isValid = metaSchema(namedValue, { path: [], wrong: throwIssue });
  if (!isValid || namedValue.name === undefined) {
    return throwIssue({ path: ["name"], wanted: A_SERVER });
  }
  const { name, version, description, permissions, tools } = namedValue;
  const modulePermissions = { ...NO_PERMISSIONS, ...permissions };
  const moduleTools = Object.entries(tools).map(([tool, toolMeta]) =>
    toModuleTool(tool, toolMeta, modulePermissions)
  );
  return { name, version, description, tools: moduleTools };
}

/** Returns a server name from the name of a file; undefined if that is impossible. */
function nameOfFile(path: string): string | undefined {
  try {
    return serverSlug(basename(path.replaceAll("\\", "/")).replace(/(?<=.)\.[^.]*$/, ""));
  } catch {
    return undefined; // the caller reports the missing name
  }
}

function toModuleTool(
  name: string,
  { permissions, inputSchema, outputSchema, ...rest }: ValueOf<typeof TOOL_META>,
  modulePermissions: Permissions,
): ModuleTool {
  const definition = {
    ...rest,
    name,
    // MCP requires `type: "object"` at the root; a module may leave it out.
    inputSchema: { type: "object", ...inputSchema },
    ...(outputSchema && { outputSchema }),
  };
  return {
    definition,
    permissions: permissions === undefined
      ? modulePermissions
      : { ...NO_PERMISSIONS, ...permissions },
  };
}
