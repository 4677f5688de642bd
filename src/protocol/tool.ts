/**
 * A tool: its definition as MCP shows it, the permissions of its module, and the metadata of a
 * module.
 *
 * @module
 */

import { basename } from "node:path";
import { PmlError } from "../core/errors.ts";
import { isObject, type Json, type JsonObject, quoted } from "../core/json.ts";
import { isFreeName, serverSlug } from "../core/tool_id.ts";

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
export function joinedPermissions(all: readonly Partial<Permissions>[]): Permissions {
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
  /** `internal` keeps it from everybody but its own server and capabilities that a person saved. */
  readonly visibility?: Json;
  /** Whatever else its server says of it. */
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
  /** The permissions of the tools that have none of their own. */
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
  /** What it fails with, by code: when, or JSON Schema of the structured content that comes. */
  readonly errors?: Readonly<Record<string, string | object>>;
  /** `internal` for what only capabilities that a person saved may call; no list or search has it. */
  readonly visibility?: "internal" | "external";
  /** Pictures of it. */
  readonly icons?: readonly object[];
  /** The execution options of MCP. */
  readonly execution?: object;
  /** Metadata for clients. */
  readonly _meta?: object;
}

/** A kind of value; `T` is the type of all values that `is` accepts. */
interface MetaKind<T> {
  readonly wanted: string;
  readonly is: (value: unknown) => boolean;
  readonly as?: T;
}

/** Returns the value of a key of `__meta__` if it is of a kind; throws CONFIG_INVALID otherwise. */
type ReadMeta = <T>(key: string, found: unknown, kind: MetaKind<T>) => T;

const OBJECT: MetaKind<Record<string, unknown>> = { wanted: "an object", is: isObject };
const TOOLS: MetaKind<Record<string, unknown>> = { wanted: "an object of tools", is: isObject };
const OBJECT_IF_ANY: MetaKind<JsonObject | undefined> = {
  wanted: "an object",
  is: (value) => value === undefined || isObject(value),
};
const SCHEMA: MetaKind<JsonObject | undefined> = {
  ...OBJECT_IF_ANY,
  wanted: "a JSON Schema object",
};
const ARGUMENTS_SCHEMA: MetaKind<JsonObject | undefined> = {
  wanted: 'a JSON Schema object of type "object"',
  is: (value) =>
    value === undefined || (isObject(value) && { type: "object", ...value }.type === "object"),
};
const TEXT: MetaKind<string | undefined> = {
  wanted: "a string",
  is: (value) => value === undefined || typeof value === "string",
};
const TEXTS: MetaKind<string[]> = {
  wanted: "an array of strings",
  is: (value) => Array.isArray(value) && value.every((item) => typeof item === "string"),
};
const SERVER_NAME: MetaKind<string> = {
  wanted: "a server name (a-z, 0-9, '.', '_', '-')",
  is: (value) => typeof value === "string" && isFreeName(value),
};
const TOOL_NAME: MetaKind<string> = {
  wanted: "a tool name (A-Z, a-z, 0-9, '_', '.', '-')",
  // Authors choose their names, so a name that PML would have to shorten for clients is refused.
  is: (value) => typeof value === "string" && /^[A-Za-z0-9_./-]{1,128}$/.test(value),
};
/** What a tool may say beside its schemas and permissions; other keys are kept as they are. */
const BESIDE: Readonly<Record<string, MetaKind<unknown>>> = {
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
const PERMISSION: MetaKind<keyof Permissions> = {
  wanted: "one of read, write, net, run, env",
  is: (value) => Object.hasOwn(NO_PERMISSIONS, String(value)),
};

/**
 * Parses `__meta__` (JSON from outside). Throws CONFIG_INVALID if it is wrong. `source` is the path
 * of the module: the message names it, and a missing name is taken from it.
 */
export function parseModuleMeta(value: unknown, source: string): ModuleMeta {
  const read: ReadMeta = (key, found, { wanted, is }) => {
    if (is(found)) return found as never; // its kind was checked
    const said = quoted(JSON.stringify(found) ?? String(found));
    throw new PmlError(
      "CONFIG_INVALID",
      `Cannot use the module ${quoted(source, 200)}: __meta__${key} is ${said}, wanted ${wanted}`,
      { hint: "Fix __meta__ in the module, then call again" },
    );
  };
  const { name, version, description, permissions, tools } = read("", value, OBJECT);
  const asked = parsePermissions(".permissions", permissions, read) ?? NO_PERMISSIONS;
  return {
    name: read(".name", name === undefined ? nameOfFile(source) : name, SERVER_NAME),
    version: read(".version", version, TEXT),
    description: read(".description", description, TEXT),
    tools: Object.entries(read(".tools", tools, TOOLS))
      .map(([tool, said]) => parseTool(tool, said, { asked, read })),
  };
}

/** Returns a server name made of the name of a file; undefined if none can be made. */
function nameOfFile(path: string): string | undefined {
  try {
    return serverSlug(basename(path.replaceAll("\\", "/")).replace(/(?<=.)\.[^.]*$/, ""));
  } catch {
    return undefined; // the caller reports the missing name
  }
}

function parseTool(
  name: string,
  said: unknown,
  { asked, read }: { readonly asked: Permissions; readonly read: ReadMeta },
): ModuleTool {
  const key = `.tools.${name}`;
  read(key, name, TOOL_NAME);
  const { permissions, inputSchema, outputSchema, ...rest } = read(key, said, OBJECT);
  for (const [name, kind] of Object.entries(BESIDE)) read(`${key}.${name}`, rest[name], kind);
  const output = read(`${key}.outputSchema`, outputSchema, SCHEMA);
  const definition = {
    ...rest,
    name,
    // MCP requires `type: "object"` at the root; a module may leave it out.
    inputSchema: { type: "object", ...read(`${key}.inputSchema`, inputSchema, ARGUMENTS_SCHEMA) },
    ...(output && { outputSchema: output }),
  };
  const own = parsePermissions(`${key}.permissions`, permissions, read);
  return { definition, permissions: own ?? asked };
}

function parsePermissions(key: string, value: unknown, read: ReadMeta): Permissions | undefined {
  if (value === undefined) return undefined;
  const lists = Object.entries(read(key, value, OBJECT)).map(([name, list]) => {
    const at = `${key}.${name}`;
    return [read(at, name, PERMISSION), read(at, list, TEXTS)];
  });
  return { ...NO_PERMISSIONS, ...Object.fromEntries(lists) };
}
