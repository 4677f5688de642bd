/**
 * Applies the user's settings for the tools of a server: to its list, and to calls.
 *
 * @module
 */

import type { Call, FixedArguments } from "../../protocol/call.ts";
import { PmlError } from "../../core/errors.ts";
import { defined, type JsonObject, objectOf, quoted } from "../../core/json.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import { settingOf, type ToolSetting, type ToolSettings } from "../../core/tool_settings.ts";

/** A list of tools after settings were applied. */
export interface Applied {
  /** The remaining tools, as their server has them. */
  readonly tools: readonly ToolDefinition[];
  /** The definitions that clients see for changed tools, or why one cannot be used. */
  readonly changes: ReadonlyMap<ToolDefinition, ToolDefinition | string>;
  /** The names in the settings that no tool has. */
  readonly unmet: readonly string[];
}

/** Applies settings to the tools that a server lists. */
export function applied(all: readonly ToolDefinition[], settings: ToolSettings): Applied {
  const names = new Set(all.map(({ name }) => name));
  const tools = all.filter(({ name }) => settingOf(settings, name)?.disabled !== true);
  const changes = new Map<ToolDefinition, ToolDefinition | string>();
  const renamed = new Map<string, string>();
  for (const tool of tools) {
    const setting = settingOf(settings, tool.name);
    const { rename = tool.name } = setting ?? {};
    if (rename !== tool.name) renamed.set(rename.toLowerCase(), tool.name);
    if (setting !== undefined) changes.set(tool, shownAs(tool, setting));
  }
  // If two tools have the same name for clients, both are refused: the name would be ambiguous.
  for (const tool of all) {
    const other = renamed.get(tool.name.toLowerCase());
    if (other === undefined || other === tool.name) continue;
    changes.set(tool, `${quoted(other)} is renamed to its name, ${settings.file} says`);
    for (const one of tools.filter(({ name }) => name === other)) {
      const why = `it is renamed to ${quoted(tool.name)}, which is another tool of its server`;
      changes.set(one, `${why}; give it another name in ${settings.file}`);
    }
  }
  const unmet = [...settings.of.keys()].filter((name) => name !== "*" && !names.has(name));
  return { tools, changes, unmet };
}

/** Returns a tool as clients see it. */
function shownAs(tool: ToolDefinition, setting: ToolSetting): ToolDefinition {
  const { name, inputSchema, _meta } = tool;
  const { rename = name, description = tool.description, arguments: fixed = {} } = setting;
  const isRenamed = rename !== name;
  return {
    ...tool,
    name: rename,
    ...defined({ description }),
    inputSchema: withoutNames(inputSchema, Object.keys(fixed)),
    ...(isRenamed && { _meta: { "pml/name": name, ...objectOf(_meta) } }),
  };
}

/** Returns a schema without the given arguments, which clients must not set. */
function withoutNames(schema: JsonObject, names: readonly string[]): JsonObject {
  if (names.length === 0) return schema;
  const { properties, required, ...rest } = schema;
  const isLeft = (name: unknown) => !names.includes(name as string);
  const entries = Object.entries(objectOf(properties)).filter(([name]) => isLeft(name));
  const needed = Array.isArray(required) ? required.filter(isLeft) : [];
  return {
    ...rest,
    properties: Object.fromEntries(entries),
    ...(needed.length > 0 && { required: needed }),
  };
}

/** Returns a call with the fixed arguments of its tool. Throws if the call sets one itself. */
export function withFixed<C extends Pick<Call, "id" | "arguments">>(
  call: C,
  { sent, shown, file }: {
    readonly sent: JsonObject;
    readonly shown: FixedArguments["shown"];
    readonly file: string;
  },
): C & { readonly fixed: FixedArguments } {
  const { id, arguments: args } = call;
  const twice = Object.keys(sent).filter((name) => Object.hasOwn(args, name));
  // guard: fixed-own
  if (twice.length > 0) {
    const names = twice.map((name) => quoted(name)).join(", ");
    const why = `${names} ${twice.length === 1 ? "is" : "are"} set in ${quoted(file, 400)}`;
    throw new PmlError("BAD_ARGUMENTS", `Cannot call ${quoted(id, 200)}: ${why}`, {
      hint: `Call it again without ${names}`,
    });
  }
  return {
    ...call,
    arguments: { ...args, ...sent },
    fixed: { given: args, shown: { ...args, ...shown } },
  };
}
