/**
 * Shows the result of a tool as text, or saves it in files.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { extname } from "node:path";
import type { ContentBlock, ToolResult } from "../protocol/call.ts";
import { counted } from "../core/amounts.ts";
import { isObject, quoted, visible } from "../core/json.ts";
import { pathExists } from "../config/workspace.ts";
import { usage } from "./_failure.ts";
import { typedPath } from "./command_process.ts";

/** Returns the texts of a result as they are, and one line for each other block. */
export function resultText({ content, structuredContent }: ToolResult): string {
  if (content.length > 0) return content.map(blockText).join("\n");
  return structuredContent === undefined ? "" : JSON.stringify(structuredContent, null, 2);
}

function blockText(block: ContentBlock): string {
  const { text } = isObject(block.resource) ? block.resource : block;
  return typeof text === "string" ? text : `${visible(JSON.stringify(block))} (--json shows all)`;
}

/** Throws if the file exists, so that no file of the user is replaced. */
export function assertNew(path: string): void {
  if (!pathExists(typedPath(path))) return;
  throw usage(`Cannot save into ${quoted(path, 400)}: it is there already`, "Name another file");
}

/**
 * Saves the images, sounds and files of a result, or its text if it has none of them. Several files
 * get numbers before the ending. Returns the texts that were not saved.
 */
export async function saveResult(
  result: ToolResult,
  path: string,
): Promise<{ readonly text: string; readonly note: string; readonly files: readonly string[] }> {
  const binary = result.content.flatMap((block) => bytesOf(block) ?? []);
  const contents = binary.length > 0 ? binary : [new TextEncoder().encode(resultText(result))];
  const ending = extname(path);
  const stem = path.slice(0, path.length - ending.length);
  const files = contents.map((_, index) => index === 0 ? path : `${stem}-${index + 1}${ending}`);
  files.forEach(assertNew);
  for (const [index, bytes] of contents.entries()) {
    await Deno.writeFile(typedPath(files[index] ?? path), bytes, { createNew: true }).catch(
      (error) => {
        throw usage(
          `Cannot save into ${quoted(files[index] ?? path, 400)}: ${error.message}`,
          "Name another file",
        );
      },
    );
  }
  const content = result.content.filter((block) => bytesOf(block) === undefined);
  return {
    text: binary.length > 0 ? content.map(blockText).join("\n") : "",
    note: contents.map(({ length }, index) => `Saved ${files[index]}: ${counted(length, "byte")}`)
      .join("\n"),
    files,
  };
}

/** Returns the bytes of an image, a sound or a binary file; undefined for any other block. */
function bytesOf({ type, data, resource }: ContentBlock): Uint8Array<ArrayBuffer> | undefined {
  const text = type === "resource" && isObject(resource) ? resource.blob : data;
  if (typeof text !== "string" || type === "text") return undefined;
  return new Uint8Array(Buffer.from(text, "base64"));
}
