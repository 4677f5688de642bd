/**
 * Shows what a tool gave back.
 *
 * @module
 */

import type { ContentBlock, ToolResult } from "../core/call.ts";
import { isObject, visible } from "../core/json.ts";
import { print, printJson, tell } from "./out.ts";

/** Shows a result and gives the exit code: a tool that failed tells it on stderr. */
export function showResult(result: ToolResult, { json }: { readonly json: boolean }): number {
  const failed = result.isError === true;
  if (json) printJson(result);
  else if (failed) tell(textOf(result));
  else if (result.content.length > 0 || result.structuredContent !== undefined) {
    print(textOf(result));
  }
  return failed ? 1 : 0;
}

/** Writes the texts of a result as they are, and a line for each other block. */
export function textOf({ content, structuredContent }: ToolResult): string {
  if (content.length > 0) return content.map(blockText).join("\n");
  return structuredContent === undefined ? "" : JSON.stringify(structuredContent, null, 2);
}

function blockText(block: ContentBlock): string {
  const { type, text, data, mimeType, uri, name, resource } = block;
  if (type === "text" && typeof text === "string") return text;
  if (type === "resource_link") return `[link ${word(name)} ${word(uri)}]`;
  if (type === "resource" && isObject(resource)) return resourceText(resource);
  const size = typeof data === "string" ? `, ${bytesOf(data)} bytes` : "";
  return `[${word(mimeType ?? type)}${size}; --json shows it]`;
}

function resourceText(resource: Record<string, unknown>): string {
  const { text, blob, uri, mimeType } = resource;
  if (typeof text === "string") return text;
  const size = typeof blob === "string" ? `, ${bytesOf(blob)} bytes` : "";
  return `[resource ${word(uri)} ${word(mimeType)}${size}; --json shows it]`;
}

function word(value: unknown): string {
  return typeof value === "string" ? visible(value) : "";
}

/** How many bytes a base64 text stands for. */
function bytesOf(base64: string): number {
  const padding = /=*$/.exec(base64)?.[0].length ?? 0;
  return Math.max(0, Math.floor(base64.length * 3 / 4) - padding);
}
