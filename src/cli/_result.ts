/**
 * Shows the result of a tool as text.
 *
 * @module
 */

import type { ContentBlock, ToolResult } from "../core/call.ts";
import { isObject, visible } from "../core/json.ts";

/** Returns the texts of a result as they are, and one line for each other block. */
export function textOf({ content, structuredContent }: ToolResult): string {
  if (content.length > 0) return content.map(blockText).join("\n");
  return structuredContent === undefined ? "" : JSON.stringify(structuredContent, null, 2);
}

function blockText(block: ContentBlock): string {
  const { text } = isObject(block.resource) ? block.resource : block;
  return typeof text === "string" ? text : `${visible(JSON.stringify(block))} (--json shows all)`;
}
