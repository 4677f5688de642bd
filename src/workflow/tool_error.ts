/**
 * The error of a tool that ran and failed.
 *
 * @module
 */

import type { ToolResult } from "../protocol/call.ts";

/**
 * The error of a tool that ran and returned an error. `OpenedGateway.tools()` and code that PML runs
 * throw it.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { openGateway, ToolError } from "@casys/pml";
 *
 * interface Tools {
 *   readonly filesystem: { read_file(args: { path: string }): Promise<unknown> };
 * }
 *
 * await using gateway = await openGateway();
 * const { filesystem } = gateway.tools<Tools>();
 * const error = await filesystem.read_file({ path: "missing.txt" }).catch((error) => error);
 * assert.ok(error instanceof ToolError);
 * assert.equal(error.tool, "filesystem:read_file");
 * assert.equal(error.result.isError, true);
 * ```
 */
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
