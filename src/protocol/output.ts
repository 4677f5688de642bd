/**
 * Converts the result of a tool to one JSON value, for plans, code and observed results.
 *
 * @module
 */

import type { ContentBlock, ToolResult } from "./call.ts";
import { isObject, type Json, objectOf } from "../core/json.ts";
import { parseExact } from "../core/exact_json.ts";

/**
 * Returns the output of a tool: the structured content if there is any. Otherwise, for one text
 * block, the parsed JSON object or array, or the text itself. Otherwise all content blocks. Ignores
 * remarks of PML.
 */
export function outputOf({ structuredContent, content: all }: ToolResult): Json {
  // It is JSON, because it was parsed from JSON or checked when a module returned it.
  if (structuredContent !== undefined) return structuredContent as Json;
  const content = all.some(isRemark) ? all.filter((block) => !isRemark(block)) : all;
  const [block] = content;
  if (block === undefined) return null;
  if (content.length > 1 || block.type !== "text" || typeof block.text !== "string") {
    return content as unknown as Json;
  }
  return jsonIn(block.text) ?? block.text;
}

/** The key in `_meta` of a block that PML adds to a result for the model. */
const REMARK = "pml/remark";

/** Returns a block with a remark of PML about the result that contains it. */
export function remarkOf(text: string): ContentBlock {
  return { type: "text", text, _meta: { [REMARK]: true } };
}

/** Returns whether a block is a remark of PML about its result. */
export function isRemark({ _meta }: ContentBlock): boolean {
  return objectOf(_meta)[REMARK] === true;
}

/** Parses a text that is a JSON object or array; undefined for any other text. */
function jsonIn(text: string): Json | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    const value: unknown = parseExact(text);
    return isObject(value) || Array.isArray(value) ? value as Json : undefined;
  } catch {
    return undefined;
  }
}
