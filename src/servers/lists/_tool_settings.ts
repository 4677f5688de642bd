/**
 * Applies the user's settings for tools: to the list of a server, and to calls of its tools.
 *
 * @module
 */

import type { Call, FixedArguments } from "../../protocol/call.ts";
import { PmlError } from "../../core/errors.ts";
import { type JsonObject, objectOf, quoted, withoutUndefined } from "../../core/json.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import { settingOf, type ToolSetting, type ToolSettings } from "../../core/tool_settings.ts";

/** A list of tools after settings were applied. */
export interface AppliedSettings {
  /** The tools that are not disabled, as the server sent them. */
  readonly tools: readonly ToolDefinition[];
  /** For each tool with settings, the definition that clients see, or why it cannot be used. */
  readonly changes: ReadonlyMap<ToolDefinition, ToolDefinition | string>;
  /** The names in the settings that no tool has. */
  readonly unusedNames: readonly string[];
}

/** Applies settings to the tools that a server lists. */
export function applySettings(
  all: readonly ToolDefinition[],
  settings: ToolSettings,
): AppliedSettings {
  const names = new Set(all.map(({ name }) => name));
  const tools = all.filter(({ name }) => settingOf(settings, name)?.disabled !== true);
  const changes = new Map<ToolDefinition, ToolDefinition | string>();
  const renamed = new Map<string, string>();
  for (const tool of tools) {
    const setting = settingOf(settings, tool.name);
    const { rename = tool.name } = setting ?? {};
    if (rename !== tool.name) renamed.set(rename.toLowerCase(), tool.name);
    if (setting !== undefined) changes.set(tool, clientView(tool, setting));
  }
  // If two tools have the same name for clients, both are refused, because the name is ambiguous.
  for (const tool of all) {
    const other = renamed.get(tool.name.toLowerCase());
    if (other === undefined || other === tool.name) continue;
    changes.set(tool, `${quoted(other)} is renamed to its name, ${settings.file} says`);
    for (const renamedTool of tools.filter(({ name }) => name === other)) {
      const why = `it is renamed to ${quoted(tool.name)}, which is another tool of its server`;
      changes.set(renamedTool, `${why}; give it another name in ${settings.file}`);
    }
  }
  const unusedNames = [...settings.of.keys()].filter((name) => name !== "*" && !names.has(name));
  return { tools, changes, unusedNames };
}

/** Returns the definition of a tool that clients see. */
function clientView(tool: ToolDefinition, setting: ToolSetting): ToolDefinition {
  const { name, inputSchema, _meta } = tool;
  const { rename = name, description = tool.description, arguments: fixed = {} } = setting;
  const isRenamed = rename !== name;
  return {
    ...tool,
    name: rename,
    ...withoutUndefined({ description }),
    inputSchema: withoutArguments(inputSchema, Object.keys(fixed)),
    ...(isRenamed && { _meta: { "pml/name": name, ...objectOf(_meta) } }),
  };
}

/** Returns a schema without the given arguments, which clients cannot set. */
function withoutArguments(schema: JsonObject, names: readonly string[]): JsonObject {
  if (names.length === 0) return schema;
  const { properties, required, ...rest } = schema;
  const isKept = (name: unknown) => !names.includes(name as string);
  const entries = Object.entries(objectOf(properties)).filter(([name]) => isKept(name));
  const needed = Array.isArray(required) ? required.filter(isKept) : [];
  return {
    ...rest,
    properties: Object.fromEntries(entries),
    ...(needed.length > 0 && { required: needed }),
  };
}

/**
 * Returns a call with the fixed arguments of its tool. `sent` has their values, and `shown` the
 * values that approval requests show. Throws if the call sets one of the arguments itself.
 */
export function withFixed<C extends Pick<Call, "id" | "arguments">>(
  call: C,
  { sent, shown, file }: {
    readonly sent: JsonObject;
    readonly shown: FixedArguments["shown"];
    readonly file: string;
  },
): C & { readonly fixed: FixedArguments } {
  const { id, arguments: args } = call;
  const duplicates = Object.keys(sent).filter((name) => Object.hasOwn(args, name));
  // guard: fixed-own
  if (duplicates.length > 0) {
    const names = duplicates.map((name) => quoted(name)).join(", ");
    const why = `${names} ${duplicates.length === 1 ? "is" : "are"} set in ${quoted(file, 400)}`;
    throw new PmlError("BAD_ARGUMENTS", `Cannot call ${quoted(id, 200)}: ${why}`, {
      hint: `Call it again without ${names}`,
    });
  }
  return {
    ...call,
    arguments: { ...args, ...sent },
    fixed: { callerArguments: args, shown: { ...args, ...shown } },
  };
}
