/**
 * Parses the tools of a registry entry and the permissions that they need.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { isObject } from "../core/json.ts";
import type { ManifestTool } from "../servers/manifest.ts";
import {
  type ModuleTool,
  parseModuleMeta,
  type Permissions,
  unionOfPermissions,
} from "../protocol/tool.ts";
import { isToolName, NO_TOOL_NAME } from "../core/tool_id.ts";
import { isPlain, isVariable, MOST, sortedNames } from "./_entry_words.ts";
import type { Fqdn } from "./fqdn.ts";

/** The prefix of the metadata parser's error messages. */
const META_PREFIX = /^.*?__meta__\.tools\.(?:x\.)?/;

/** The parsed tools of an entry, and the permissions of each tool with a definition. */
export interface ParsedTools {
  readonly tools: readonly ManifestTool[];
  readonly permissions: readonly Permissions[];
  readonly leftOut: readonly OmittedTool[];
}

/** A tool of an entry that was left out, and the reason. */
export interface OmittedTool {
  readonly name: string;
  readonly reason: string;
}

/** Parses the tools of an entry. Omits tools that cannot belong to it. */
export function entryTools(list: readonly unknown[], fqdn: Fqdn): ParsedTools {
  const leftOut: OmittedTool[] = [];
  const tools: ManifestTool[] = [];
  const permissions: Permissions[] = [];
  const names = new Set<string>();
  for (const item of list) {
    const full = isObject(item) ? item.name : item;
    const [name, reason] = toolName(full, fqdn);
    const folded = name.toLowerCase();
    try {
      if (reason !== undefined) throw conflict(reason);
      if (names.has(folded)) throw conflict("the server lists another tool of this name");
      const tool = isObject(item) ? definitionOf(name, item) : undefined;
      names.add(folded);
      tools.push({ name, definition: tool?.definition });
      if (tool !== undefined) permissions.push(tool.permissions);
    } catch (error) {
      if (!(error instanceof PmlError)) throw error;
      leftOut.push({ name, reason: error.message.replace(META_PREFIX, "") });
    }
  }
  return { tools, permissions, leftOut };
}

/**
 * Returns the name of a tool within its server, and the reason if the tool does not belong to it.
 */
function toolName(full: unknown, { name: server, action }: Fqdn): [string, string?] {
  if (typeof full !== "string") return ["", "it has no name"];
  const [owner, ...rest] = full.split(":");
  const name = rest.length === 0 ? full : rest.join(":");
  if (rest.length > 0 && owner !== server) return [full, "it belongs to another server"];
  if (!isToolName(name)) return [name, NO_TOOL_NAME];
  // The other actions of a namespace are separate entries.
  if (action !== undefined && name !== action) return [name, "it belongs to another entry"];
  return [name];
}

function conflict(reason: string): PmlError {
  return new PmlError("NAME_CONFLICT", reason);
}

/** Parses a tool. It has the format of a module's tool, except for its name. */
function definitionOf(
  tool: string,
  { name: _, ...definition }: Readonly<Record<string, unknown>>,
): ModuleTool {
  const { tools: [parsedTool] } = parseModuleMeta({ name: "x", tools: { [tool]: definition } }, "");
  if (parsedTool === undefined) throw conflict("it is not a tool");
  return parsedTool;
}

/** Parses the permissions of an entry. */
export function permissionsOf(permissions: unknown, wrong: (why: string) => PmlError): Permissions {
  try {
    return definitionOf("x", { permissions }).permissions;
  } catch (error) {
    if (!(error instanceof PmlError)) throw error;
    throw wrong(error.message.replace(META_PREFIX, ""));
  }
}

/** Merges the permissions of an entry and its tools. Throws if they are too many or invalid. */
export function combinePermissions(
  all: readonly Permissions[],
  wrong: (why: string) => PmlError,
): Permissions {
  const joined = Object.entries(unionOfPermissions(all)).map(([kind, some]) => {
    const list = sortedNames(some);
    const isValid = list.length <= MOST.texts && list.every(isPlain) &&
      (kind !== "env" || list.every(isVariable));
    if (!isValid) throw wrong(`permissions.${kind} contains values that cannot be requested`);
    return [kind, list];
  });
  return Object.fromEntries(joined);
}
