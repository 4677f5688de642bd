/**
 * What servers answer, as it is handed on.
 *
 * @module
 */

import type { ToolResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { defined, isObject, objectOf, quoted } from "../core/json.ts";
import { checkBlocks } from "../core/result_bounds.ts";
import type { Answered } from "./_peer.ts";

/** Codes by which a client would think that PML itself asks it, or does not know its revision. */
const OURS = [-32042, -32020, -32021, -32022];
const INTERNAL_ERROR = -32603;

/** Takes what a server may say; with any other field it could pass for a question of PML. */
export function resultOf(
  result: unknown,
  { name, method }: { readonly name: string; readonly method: string },
): ToolResult {
  const isTool = method === "tools/call";
  if (isObject(result) && (!isTool || Array.isArray(result.content ?? []))) {
    const what = `what ${quoted(name)} answered`;
    checkBlocks(what, result);
    checkBlocks(what, objectOf(result.result));
    const { resultType: _, inputRequests, requestState: _s, ...rest } = result;
    // What a task asks is judged and worded before it is told.
    const asked = method === "tasks/get" ? defined({ inputRequests }) : {};
    // Looked at just now; what is no tool's result is handed on as it is.
    return (isTool ? { content: [], ...rest } : { ...rest, ...asked }) as unknown as ToolResult;
  }
  const message = `Cannot use what ${quoted(name)} answered: it is no result`;
  throw new PmlError("UPSTREAM_PROTOCOL", message, {
    hint: "It does not speak MCP as PML knows it",
  });
}

/** Hands on the error that a server answered, but for those that are between a client and PML. */
export function refused(text: string, { code, message, data }: Answered): PmlError {
  const answered = OURS.includes(code)
    ? { code: INTERNAL_ERROR, message }
    : { code, message, data };
  return new PmlError("BAD_REQUEST", text, { detail: { answered: defined(answered) } });
}
