/**
 * The error of a tool that ran and failed.
 *
 * @module
 */

import type { ToolResult } from "../protocol/call.ts";

/** A tool ran and said that it failed. */
export class ToolError extends Error {
  /** The name of the class. */
  override readonly name = "ToolError";
  /** The tool, as it was called. */
  readonly tool: string;
  /** What the tool returned. */
  readonly result: ToolResult;

  /** Takes the tool and its result. */
  constructor(tool: string, result: ToolResult) {
    const texts = result.content.flatMap(({ type, text }) => type === "text" ? [String(text)] : []);
    super(texts.join("\n") || `"${tool}" failed and did not say why`);
    this.tool = tool;
    this.result = result;
  }
}
