/**
 * Reads metadata from a module's first line: `// __meta__: {…}` with `tools: ["server:tool", …]`.
 *
 * @module
 */

import { isObject, quoted } from "../../core/json.ts";
import { parseJson } from "../../core/parse_json.ts";
import { unloadableError } from "./module_files.ts";

/**
 * Returns the metadata in the comment, in the form of an exported `__meta__`; undefined without a
 * comment.
 */
export function metaComment(text: string, path: string): unknown {
  const json = /^\/\/ __meta__:\s*(\{.*\})\s*$/m.exec(text.split("\n", 1)[0] ?? "")?.[1];
  if (json === undefined) return undefined;
  const value = parse(json, path);
  if (!isObject(value) || !Array.isArray(value.tools)) return value;
  const names = value.tools.map((tool) => String(tool).split(":").at(-1) ?? "");
  const tools = Object.fromEntries(names.map((name) => [name, {}]));
  return { ...value, tools };
}

function parse(text: string, path: string): unknown {
  try {
    return parseJson(text);
  } catch (cause) {
    const hint = 'Write `// __meta__: {"name": "x", "tools": ["x:tool"]}` in one line';
    throw unloadableError(path, "its __meta__ comment is not JSON", { hint, cause });
  }
}

/** Returns the reason and hint for a tool in `__meta__` without an exported function. */
export function unexportedTool(name: string): { readonly why: string; readonly hint: string } {
  return {
    why: `__meta__ names the tool ${quoted(name)}, but no such function is exported`,
    hint: `Write \`export function ${name}(args, host)\`, or remove it from __meta__.tools`,
  };
}
