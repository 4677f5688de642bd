/**
 * What a tool is: its definition as MCP shows it, the permissions of the module behind it, and
 * the metadata of a module.
 *
 * @module
 */

import { PmlError } from "./errors.ts";
import { isObject, type Json, type JsonObject, quoted } from "./json.ts";
import { isServerName } from "./tool_id.ts";

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

/** Joins what several ask for: each kind, and in it each thing once. */
export function joinedPermissions(all: readonly Partial<Permissions>[]): Permissions {
  const kinds = Object.keys(NO_PERMISSIONS) as (keyof Permissions)[]; // of a literal
  const lists = kinds.map((kind) => [kind, [...new Set(all.flatMap((one) => one[kind] ?? []))]]);
  return Object.fromEntries(lists);
}

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
  /** `internal` keeps it from everybody but its own server. */
  readonly visibility?: Json;
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

/** What a module's author writes as `__meta__`. */
export interface Meta {
  /** The server name that it would like. */
  readonly name: string;
  /** Its version. */
  readonly version?: string;
  /** What it is, in a sentence. */
  readonly description?: string;
  /** What its tools ask for, where they do not say so themselves. */
  readonly permissions?: Partial<Permissions>;
  /** Its tools, by the names of the functions that it exports. */
  readonly tools: Readonly<Record<string, ToolMeta>>;
}

/** What a module's author writes of a tool. */
export interface ToolMeta {
  /** Its name for people. */
  readonly title?: string;
  /** What it does, for the model. */
  readonly description?: string;
  /** JSON Schema of its arguments, an object's; any object unless said. */
  readonly inputSchema?: object;
  /** JSON Schema of its structured result. */
  readonly outputSchema?: object;
  /** Hints on what it does to the world, such as `readOnlyHint`. */
  readonly annotations?: object;
  /** What it asks for, in place of what the module asks for. */
  readonly permissions?: Partial<Permissions>;
  /** What it fails with, by code: when, or JSON Schema of the structured content that comes. */
  readonly errors?: Readonly<Record<string, string | object>>;
  /** `internal` for what only the module itself calls; no list or search has it. */
  readonly visibility?: "internal" | "external";
  /** Pictures of it. */
  readonly icons?: readonly object[];
  /** What MCP says of how it is run. */
  readonly execution?: object;
  /** Whatever else clients understand. */
  readonly _meta?: object;
}

/** What may stand at a key; `T` is the type of all that `is` lets pass. */
interface Kind<T> {
  readonly wanted: string;
  readonly is: (value: unknown) => boolean;
  readonly as?: T;
}

/** Gives what stands at a key of `__meta__` if it is of a kind, or throws. */
type Read = <T>(key: string, found: unknown, kind: Kind<T>) => T;

const OBJECT: Kind<Record<string, unknown>> = { wanted: "an object", is: isObject };
const TOOLS: Kind<Record<string, unknown>> = { wanted: "an object of tools", is: isObject };
const OBJECT_IF_ANY: Kind<JsonObject | undefined> = {
  wanted: "an object",
  is: (value) => value === undefined || isObject(value),
};
const SCHEMA: Kind<JsonObject | undefined> = { ...OBJECT_IF_ANY, wanted: "a JSON Schema object" };
const ARGUMENTS_SCHEMA: Kind<JsonObject | undefined> = {
  wanted: 'a JSON Schema object of type "object"',
  is: (value) =>
    value === undefined || (isObject(value) && { type: "object", ...value }.type === "object"),
};
const TEXT: Kind<string | undefined> = {
  wanted: "a string",
  is: (value) => value === undefined || typeof value === "string",
};
const TEXTS: Kind<string[]> = {
  wanted: "an array of strings",
  is: (value) => Array.isArray(value) && value.every((item) => typeof item === "string"),
};
const SERVER_NAME: Kind<string> = {
  wanted: "a server name (a-z, 0-9, '.', '_', '-')",
  is: (value) => typeof value === "string" && isServerName(value),
};
const TOOL_NAME: Kind<string> = {
  wanted: "a tool name (A-Z, a-z, 0-9, '_', '.', '-')",
  // An author can choose: what clients would have to shorten is not taken.
  is: (value) => typeof value === "string" && /^[A-Za-z0-9_./-]{1,128}$/.test(value),
};
/** What a tool may say beside its schemas and permissions; other keys are kept as they are. */
const BESIDE: Readonly<Record<string, Kind<unknown>>> = {
  title: TEXT,
  description: TEXT,
  annotations: OBJECT_IF_ANY,
  _meta: OBJECT_IF_ANY,
  errors: {
    wanted: "an object of texts or JSON Schema objects, by the code of the error",
    is: (value) =>
      value === undefined || isObject(value) &&
        Object.values(value).every((said) => typeof said === "string" || isObject(said)),
  },
  visibility: {
    wanted: '"internal" or "external"',
    is: (value) => [undefined, "internal", "external"].includes(value as string),
  },
};
const PERMISSION: Kind<keyof Permissions> = {
  wanted: "one of read, write, net, run, env",
  is: (value) => Object.hasOwn(NO_PERMISSIONS, String(value)),
};

/** Reads `__meta__` (JSON from outside), or says what is wrong with it. `source` names the module. */
export function parseModuleMeta(value: unknown, source: string): ModuleMeta {
  const read: Read = (key, found, { wanted, is }) => {
    if (is(found)) return found as never; // of the kind, as it was looked at
    const said = quoted(JSON.stringify(found) ?? String(found));
    throw new PmlError(
      "CONFIG_INVALID",
      `Cannot use the module ${quoted(source, 200)}: __meta__${key} is ${said}, wanted ${wanted}`,
      { hint: "Mend __meta__ in the module, then call again" },
    );
  };
  const { name, version, description, permissions, tools } = read("", value, OBJECT);
  const asked = parsePermissions(".permissions", permissions, read) ?? NO_PERMISSIONS;
  return {
    name: read(".name", name, SERVER_NAME),
    version: read(".version", version, TEXT),
    description: read(".description", description, TEXT),
    tools: Object.entries(read(".tools", tools, TOOLS))
      .map(([tool, said]) => parseTool(tool, said, { asked, read })),
  };
}

function parseTool(
  name: string,
  said: unknown,
  { asked, read }: { readonly asked: Permissions; readonly read: Read },
): ModuleTool {
  const key = `.tools.${name}`;
  read(key, name, TOOL_NAME);
  const { permissions, inputSchema, outputSchema, ...rest } = read(key, said, OBJECT);
  for (const [name, kind] of Object.entries(BESIDE)) read(`${key}.${name}`, rest[name], kind);
  const output = read(`${key}.outputSchema`, outputSchema, SCHEMA);
  const definition = {
    ...rest,
    name,
    // MCP wants `type: "object"` at the root; a module may leave it out.
    inputSchema: { type: "object", ...read(`${key}.inputSchema`, inputSchema, ARGUMENTS_SCHEMA) },
    ...(output && { outputSchema: output }),
  };
  const own = parsePermissions(`${key}.permissions`, permissions, read);
  return { definition, permissions: own ?? asked };
}

function parsePermissions(key: string, value: unknown, read: Read): Permissions | undefined {
  if (value === undefined) return undefined;
  const lists = Object.entries(read(key, value, OBJECT)).map(([name, list]) => {
    const at = `${key}.${name}`;
    return [read(at, name, PERMISSION), read(at, list, TEXTS)];
  });
  return { ...NO_PERMISSIONS, ...Object.fromEntries(lists) };
}
