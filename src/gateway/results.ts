/**
 * Failures on their way out: to the model as a result, to the client as a JSON-RPC error.
 *
 * @module
 */

import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
} from "@modelcontextprotocol/server";
import { textResult, type ToolResult } from "../core/call.ts";
import { asPmlError, audienceOf, type PmlError } from "../core/errors.ts";
import { defined, isObject } from "../core/json.ts";

/** What a failure tells a program, whichever way it leaves. */
export interface ErrorBody {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  readonly detail?: unknown;
}

/** Gives the fields of an error that leave the process. */
export function errorBody(error: PmlError): ErrorBody {
  const { code, message, hint, detail } = error;
  return defined({ code, message, hint, detail });
}

/** Makes the result that tells a model of a failure. */
export function errorResult(error: unknown): ToolResult {
  const body = errorBody(asPmlError(error));
  const hint = body.hint === undefined ? "" : `\n${body.hint}`;
  return {
    content: [{ type: "text", text: `${body.code}: ${body.message}${hint}` }],
    structuredContent: { error: body },
    isError: true,
  };
}

/** Gives a failure the way out that its code names. */
export function failed(error: unknown): CallToolResult {
  const known = asPmlError(error);
  if (audienceOf(known.code) !== "client") return toSdk(errorResult(known));
  const code = known.code === "BUG"
    ? ProtocolErrorCode.InternalError
    : ProtocolErrorCode.InvalidParams;
  const hint = known.hint === undefined ? "" : `. ${known.hint}`;
  throw new ProtocolError(code, `${known.message}${hint}`, errorBody(known));
}

/** Hands a result to the SDK, whose types name only the blocks that it knows. */
export function toSdk(result: ToolResult): CallToolResult {
  return result as unknown as CallToolResult;
}

/** Gives structured content that is no object as text alone: older clients take no other. */
export function forOlderClient(result: ToolResult): ToolResult {
  const { structuredContent, ...rest } = result;
  if (structuredContent === undefined || isObject(structuredContent)) return result;
  return rest.content.length > 0
    ? rest
    : { ...rest, ...textResult(JSON.stringify(structuredContent)) };
}
