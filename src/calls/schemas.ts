/**
 * Checks the arguments of modules and of PML's own tools before a call, and the results of modules.
 * Other servers check their own arguments, and PML returns their results unchanged.
 *
 * @module
 */

import type { Call, Outcome, ToolResult } from "../protocol/call.ts";
import { isContentBlock } from "../protocol/content_blocks.ts";
import { PmlError } from "../core/errors.ts";
import { numberOf } from "../core/exact_number.ts";
import { isObject, type JsonObject } from "../core/json.ts";
import type { Maybe } from "../core/maybe.ts";
import { OwnSchemas } from "../core/own_schemas.ts";
import type { Server } from "../servers/server.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import { signatureOf } from "../search/signature.ts";

/** The call whose arguments are checked. */
export type ArgumentCall = Pick<Call, "id" | "arguments" | "cancellation">;

/** The tool of a call. */
export interface ArgumentTool {
  readonly definition: ToolDefinition;
  readonly server: Pick<Server, "checksItself" | "findWrongArguments">;
}

/** Checks arguments and results. */
export class Schemas {
  readonly #own = new OwnSchemas();

  /**
   * Checks the arguments of a call. Throws or rejects with BAD_ARGUMENTS. Returns undefined at once
   * for a server that checks its own arguments.
   */
  checkArguments(call: ArgumentCall, { definition, server }: ArgumentTool): Maybe<undefined> {
    if (server.checksItself) return undefined;
    // JSON has no infinite numbers: `JSON.stringify` would send null.
    if (hasInfinity(call.arguments)) throw badArgumentsError(call.id, definition, TOO_LARGE);
    return throwIfWrong(call.id, definition, server.findWrongArguments?.(call, definition));
  }

  /** Checks arguments of PML's own tools. Throws or rejects with BAD_ARGUMENTS. */
  checkOwnArguments(definition: ToolDefinition, args: JsonObject, name: string): Maybe<undefined> {
    return throwIfWrong(name, definition, this.#own.findProblem(definition.inputSchema, args));
  }

  /**
   * Returns the outcome unchanged. Throws OUTPUT_INVALID if a module's result is not a valid MCP
   * result. The sandbox child has already checked it against `outputSchema`.
   */
  checkResult(outcome: Outcome, id: ToolId, server: Pick<Server, "checksItself">): Outcome {
    if (server.checksItself) return outcome;
    if (outcome.kind !== "result" || outcome.task !== undefined) return outcome;
    const { result } = outcome;
    // Clients reject the whole result if one member is invalid.
    if (!isValidResult(result)) throw badResultError(id);
    return outcome;
  }
}

const TOO_LARGE = "there is a number too large for JSON";

function hasInfinity(args: unknown): boolean {
  const remaining: unknown[] = [args];
  while (remaining.length > 0) {
    const value = remaining.pop();
    const number = numberOf(value);
    if (number !== undefined && !Number.isFinite(number)) return true;
    if (typeof value !== "object" || value === null) continue;
    for (const inner of Object.values(value)) remaining.push(inner);
  }
  return false;
}

function throwIfWrong(
  name: string,
  definition: ToolDefinition,
  problem: Maybe<string | undefined>,
): Maybe<undefined> {
  if (problem instanceof Promise) return problem.then((why) => throwIfWrong(name, definition, why));
  if (problem !== undefined) throw badArgumentsError(name, definition, problem);
  return undefined;
}

function isValidResult({ content, isError = false, _meta = {} }: ToolResult): boolean {
  return typeof isError === "boolean" && isObject(_meta) && Array.isArray(content) &&
    content.every(isContentBlock);
}

/** Returns the error for invalid arguments. Its hint shows the model how to call the tool. */
export function badArgumentsError(name: string, definition: ToolDefinition, why: string): PmlError {
  return new PmlError("BAD_ARGUMENTS", `Cannot call "${name}": ${why}`, {
    hint: `Call it as ${signatureOf(definition)}`,
  });
}

function badResultError(id: ToolId): PmlError {
  return new PmlError(
    "OUTPUT_INVALID",
    `Cannot use the result of "${id}": it is not a valid MCP result`,
    {
      hint: "The tool did run. Report this to its author",
      detail: { may_have_run: true },
    },
  );
}
