/**
 * Converts failures: to results for the model, or to JSON-RPC errors for the client.
 *
 * @module
 */

import type { ToolResult } from "./call.ts";
import { asPmlError, audienceOf, PmlError, withHint } from "../core/errors.ts";
import { type JsonObject, objectOf, withoutUndefined } from "../core/json.ts";
import { ERROR, RpcError } from "./errors.ts";

/** The fields of a failure for programs, in a result and in a JSON-RPC error. */
export interface ErrorBody {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  readonly detail?: unknown;
}

/** Returns the fields of an error that PML sends. */
export function errorBody(error: PmlError): ErrorBody {
  const { code, message, hint, detail } = error;
  return withoutUndefined({ code, message, hint, detail });
}

/** Returns the result that reports a failure to the model. */
export function errorResult(error: unknown): ToolResult {
  const body = errorBody(asPmlError(error));
  const hint = body.hint === undefined ? "" : `\n${body.hint}`;
  return {
    content: [{ type: "text", text: `${body.code}: ${body.message}${hint}` }],
    structuredContent: { error: body },
    isError: true,
  };
}

const INVALID_PARAMS = ERROR.invalidParams;
const INTERNAL_ERROR = ERROR.internalError;

/** Returns a failure as a result for the model, or throws it, depending on its code. */
export function failureResult(error: unknown): JsonObject {
  if (error instanceof RpcError) throw error;
  const pmlError = asPmlError(error);
  if (audienceOf(pmlError.code) === "client") throw rpcErrorOf(pmlError);
  return errorResult(pmlError) as unknown as JsonObject; // plain JSON
}

/** Returns the error for a repeated request that differs from the first one. */
export function differentRequestError(): PmlError {
  return new PmlError("BAD_REQUEST", "Cannot go on: it is another request than before", {
    hint: "Send the unchanged request again, without requestState",
  });
}

/** The hint and the detail of the error for an answer that was already used. */
export const NOT_TWICE = {
  hint: "Nothing ran twice. Check the effects before you send the request again",
  detail: { may_have_run: true },
};

/** Returns the error for work whose process has ended or is ending. */
export function processEndedError(): PmlError {
  return new PmlError("UPSTREAM_DOWN", "Cannot go on: the process that worked on it has ended", {
    hint: "It may have run. Check its effects before you send the request again",
    detail: { may_have_run: true },
  });
}

/** Returns the answer to a request whose process ended during the work on it. */
export function processEndedAnswer({ id, method }: JsonObject): object {
  const error = processEndedError();
  const { code, message, data } = rpcErrorOf(error);
  const outcome = method === "tools/call"
    ? { result: { ...failureResult(error), resultType: "complete" } }
    : { error: { code, message, data } };
  return { ...outcome, jsonrpc: "2.0", id };
}

/** Returns the failure of a request with a header that differs from its body. */
export function headerMismatchError(header: string): PmlError {
  const message = `Cannot take the request: its header ${header} differs from its body`;
  return new PmlError("BAD_REQUEST", message, {
    detail: { answered: { code: ERROR.headerMismatch, message } },
  });
}

/** Returns the JSON-RPC error of a failure. Passes on a server's own error. */
export function rpcErrorOf(error: unknown): RpcError {
  if (error instanceof RpcError) return error;
  const pmlError = asPmlError(error);
  const answered = objectOf(pmlError.detail?.answered);
  if (typeof answered.code === "number") {
    return new RpcError(answered.code, String(answered.message), answered.data);
  }
  const code = pmlError.code === "BUG" ? INTERNAL_ERROR : INVALID_PARAMS;
  return new RpcError(code, withHint(pmlError.message, pmlError.hint), errorBody(pmlError));
}
