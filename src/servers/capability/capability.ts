/**
 * Defines a capability: stored code, or a stored plan, that calls tools. Parses and hashes its
 * content, and converts it to JSON.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import { withRoundedNumbers } from "../../core/exact_number.ts";
import { sha256 } from "../../core/hash.ts";
import {
  canonicalJson,
  isObject,
  type Json,
  type JsonObject,
  objectOf,
  quoted,
  withoutUndefined,
} from "../../core/json.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import {
  isUsableServerName,
  parseToolId,
  splitToolId,
  type ToolId,
  toolId,
} from "../../core/tool_id.ts";
import { parseExact } from "../../core/exact_json.ts";

/** A capability without its name. Its hash covers exactly these members. */
export interface Capability {
  readonly kind: "code" | "plan";
  /** The code, or the plan as JSON. */
  readonly text: string;
  readonly description?: string | undefined;
  /** The JSON Schema of the arguments. */
  readonly parameters: JsonObject;
  /**
   * The hash of the definition of each tool that the capability calls, by tool id. Only detects
   * changes: it does not allow a call.
   */
  readonly toolsUsed: Readonly<Record<string, string>>;
  /** The definitions whose hashes are in `toolsUsed`, to describe changes. Not part of the hash. */
  readonly definitions?: Readonly<Record<string, ToolDefinition>>;
}

/** The maximum length of saved code, or of a saved plan, in characters. */
export const TEXT_MAX = 256_000;
/** The version of the JSON of capabilities. */
const FORMAT = 1;
/** Matches a hash. */
export const HASH = /^sha256-[0-9a-f]{64}$/;
// Registries use the same grammar, so that each capability can be published under its name.
const ACTION = /^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$/;

/** Returns the id of a capability. Throws `NAME_INVALID` if the text cannot be its name. */
export function capabilityId(name: string): ToolId {
  const [namespace = "", action = "", ...rest] = name.split(":");
  const isName = isUsableServerName(namespace) && ACTION.test(action) && !action.includes("..");
  if (isName && rest.length === 0) return toolId(namespace, action);
  throw new PmlError("NAME_INVALID", `Cannot name a capability ${quoted(name)}`, {
    hint: 'Write "namespace:action", each of 1 to 64 of a-z, 0-9, ".", "_" and "-"',
  });
}

/** Returns the hash of a capability, over its canonical JSON. */
export function capabilityHash(capability: Capability): string {
  return `sha256-${sha256(canonicalJson(toFileJson(capability)))}`;
}

/** Returns the JSON in which a capability is stored and exported. */
export function toFileJson(
  { kind, text, description, parameters, toolsUsed }: Capability,
): JsonObject {
  return {
    version: FORMAT,
    kind,
    ...(kind === "code" ? { code: text } : { plan: parseExact(text) as Json }),
    ...withoutUndefined({ description }),
    parameters,
    tools_used: toolsUsed,
  } as JsonObject;
}

/** Parses the JSON of a capability. Throws a TypeError that names the wrong member. */
export function parseCapability(value: unknown): Capability {
  const { version, kind, code, plan, description, tools_used: used, ...rest } = objectOf(value);
  // Only plans keep the exact text of numbers. Schemas are compared and hashed with JavaScript
  // numbers.
  const { parameters, definitions = {}, ...others } = withRoundedNumbers(rest);
  const text = kind === "code" ? code : isObject(plan) && JSON.stringify(plan, null, 2);
  const checks = {
    version: version === FORMAT,
    kind: kind === "code" ? plan === undefined : kind === "plan" && code === undefined,
    [`${kind}, of at most ${TEXT_MAX} characters,`]: typeof text === "string" &&
      text.length <= TEXT_MAX,
    description: description === undefined || typeof description === "string",
    parameters: isObject(parameters) && parameters.type === "object",
    tools_used: isObject(used) && Object.entries(used).every(isToolUse),
    definitions: isObject(definitions) && Object.values(definitions).every(isObject),
    [quoted(Object.keys(others).join())]: Object.keys(others).length === 0,
  };
  const wrong = Object.entries(checks).find(([, isRight]) => !isRight);
  if (wrong !== undefined) throw new TypeError(`its ${wrong[0]} is wrong`);
  // The members were checked above, and are JSON.
  return { kind, text, description, parameters, toolsUsed: used, definitions } as Capability;
}

/** Parses an exported capability. Throws a TypeError if it was changed since the export. */
export function parseExported(value: JsonObject): Capability {
  const { name: _, hash, ...form } = value;
  const capability = parseCapability(form);
  // guard: capability-import
  if (hash === capabilityHash(capability)) return capability;
  throw new TypeError("its hash does not match its content");
}

/** Returns the tool definition that represents a capability in lists, searches and calls. */
export function capabilityTool(id: ToolId, capability: Capability): ToolDefinition {
  const { kind, description, parameters, toolsUsed } = capability;
  const calls = Object.keys(toolsUsed).join(", ") || "no tool";
  return {
    name: splitToolId(id).tool,
    description: description ?? `Runs ${kind === "code" ? "code" : "a plan"} that calls ${calls}`,
    inputSchema: parameters,
    // An approval covers the definition. The hash in it makes the approval cover the content, too.
    _meta: { "pml/capability": { kind, hash: capabilityHash(capability), calls } },
  };
}

/** Returns the lines that show code or a plan to the user. */
export function textLines(text: string): readonly string[] {
  return text.split(/\r\n?|\n/).map((line) => `| ${line}`);
}

function isToolUse([name, hash]: [string, unknown]): boolean {
  return parseToolId(name) === name && typeof hash === "string" && HASH.test(hash);
}
