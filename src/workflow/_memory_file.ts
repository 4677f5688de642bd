/**
 * Reads and writes the file that stores how tools were used.
 *
 * @module
 */

import { isObject } from "../core/json.ts";
import { parseToolId, type ToolId } from "../core/tool_id.ts";
import { writeCache } from "../io/cache_files.ts";
import { readRegularText } from "../io/regular_file.ts";
import { parseUse, type ToolUse } from "./_tool_use.ts";

/** The maximum size of the file in bytes, and the maximum number of tools in it. */
const MOST_BYTES = 4 << 20;
const MOST_TOOLS = 500;

/** Reads the use of all tools; undefined if the file is missing. Throws if the file is corrupt. */
export function readUses(path: string): ReadonlyMap<ToolId, ToolUse> | undefined {
  const json = readJson(path);
  if (json === undefined) return undefined;
  if (!isObject(json) || json.version !== 1 || !isObject(json.tools)) {
    throw new TypeError("it does not contain the use of tools");
  }
  const entries = Object.entries(json.tools).slice(0, MOST_TOOLS);
  return new Map(entries.map(([name, use]) => {
    const id = parseToolId(name);
    if (id !== name) throw new TypeError("it contains an invalid tool id");
    return [id, parseUse(use)];
  }));
}

/** Writes the use of all tools. `uses` must be within the limits: see `limitUses`. */
export function writeUses(path: string, uses: ReadonlyMap<ToolId, ToolUse>): void {
  writeCache(path, { version: 1, tools: Object.fromEntries(uses) });
}

/** Returns the most recently used tools, up to the limits of the file. */
export function limitUses(all: ReadonlyMap<ToolId, ToolUse>): ReadonlyMap<ToolId, ToolUse> {
  const entries = [...all].sort(([, one], [, other]) => other.at - one.at);
  for (let most = MOST_TOOLS; most > 0; most >>= 1) {
    const fitted = entries.slice(0, most);
    if (JSON.stringify(fitted).length < MOST_BYTES - 10 * MOST_TOOLS) return new Map(fitted);
  }
  return new Map();
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readRegularText(path, { most: MOST_BYTES }));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
