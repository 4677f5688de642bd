/**
 * The error of a tool that ran and failed.
 *
 * @module
 */

import type { ToolResult } from "../protocol/call.ts";

/** The error of a tool that ran and returned an error. */
export class ToolError extends Error {
  /** The name of the class. */
  override readonly name = "ToolError";
  /** The name of the tool in the call. */
  readonly tool: string;
  /** The result of the tool. */
  readonly result: ToolResult;

  /** Creates the error from the tool and its result. */
  constructor(tool: string, result: ToolResult) {
    const texts = result.content.flatMap(({ type, text }) => type === "text" ? [String(text)] : []);
    super(texts.join("\n") || `"${tool}" failed without a message`);
    this.tool = tool;
    this.result = result;
  }
}
