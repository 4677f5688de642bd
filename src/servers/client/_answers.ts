/**
 * Turns the answers of servers into results and errors for clients. Errors name their server.
 *
 * @module
 */

import { textResult, type ToolResult } from "../../protocol/call.ts";
import { asPmlError, type ErrorCode, PmlError } from "../../core/errors.ts";
import { defined, hasAny, isObject, quoted } from "../../core/json.ts";
import { type ListName, LISTS } from "../../protocol/lists.ts";
import { remarkOf } from "../../protocol/output.ts";
import { checkBlocks } from "../../protocol/result_bounds.ts";
import { withoutForged } from "../../protocol/result_members.ts";
import { safeText, withTagRemark } from "../../protocol/safe_text.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";
import { urlElicitationLines } from "./_url_elicitation.ts";
import { type ReadableOptions, readableResult } from "./_readable_result.ts";
import { type Denial, protocolError } from "./wire.ts";

/**
 * Codes that mean to a client that PML itself sends it a request or does not support its revision.
 */
const RESERVED: readonly number[] = [
  ERROR.urlElicitationRequired,
  ERROR.headerMismatch,
  ERROR.unsupportedProtocolVersion,
];
/** The members of a result that only PML may set. */
const OF_PML = ["resultType", "inputRequests", "requestState"];

/** Whether a tool ran whose answer cannot be used, by the code of the error. */
const RAN: Partial<Record<ErrorCode, string>> = {
  RESULT_TOO_LARGE: "The tool did run",
  UPSTREAM_PROTOCOL: "The tool may have run",
};

/** The results that PML made of error responses. Their `pml/error` is PML's own. */
const ofErrors = new WeakSet<object>();

/**
 * Returns the result of a server as every client can read it, without the fields that only PML may
 * set: with them it could look like an approval request of PML. Throws `UPSTREAM_PROTOCOL` if it is
 * not a result, and `RESULT_TOO_LARGE`.
 */
export function resultOf(
  received: unknown,
  name: string,
  options: ReadableOptions,
): ToolResult {
  if (isObject(received) && ofErrors.has(received)) return received as unknown as ToolResult;
  try {
    return ownResult(received, name, options);
  } catch (error) {
    throw options.method === "tools/call" ? afterSent(error) : error;
  }
}

function ownResult(received: unknown, name: string, options: ReadableOptions): ToolResult {
  const { method } = options;
  const isTool = method === "tools/call";
  const answer = isObject(received) ? cleaned(received) : received;
  // Names of servers have no character that would have to be escaped.
  const what = `what "${name}" answered`;
  if (isObject(answer)) {
    checkBlocks(what, answer);
    if (isObject(answer.result)) checkBlocks(what, answer.result);
  } else checkBlocks(what, { content: answer });
  const result = readableResult(answer, options);
  if (result === undefined) throw protocolError(name, "its answer is not a valid result");
  const isOwn = Array.isArray(result.content) && !hasAny(result, OF_PML);
  if (isTool && isOwn) return withTagRemark(result as unknown as ToolResult); // corrected above
  const { resultType: _, inputRequests, requestState: _s, ...rest } = result;
  // The gateway checks and rewords the requests of a task before a client gets them.
  const requests = method === "tasks/get" ? defined({ inputRequests }) : {};
  // The result of a tool is corrected above.
  if (isTool) return withTagRemark({ content: [], ...rest });
  const { statusMessage } = rest;
  const status = method.startsWith("tasks/") && typeof statusMessage === "string"
    ? { statusMessage: safeText(statusMessage) }
    : {};
  return { ...rest, ...requests, ...status } as unknown as ToolResult;
}

/** Removes forged members from a result, and from the result in the state of a task. */
function cleaned(received: Record<string, unknown>): Record<string, unknown> {
  const { result } = received;
  const inner = isObject(result) ? withoutForged(result) : result;
  return withoutForged(inner === result ? received : { ...received, result: inner });
}

/** Returns a text with the code and the message of an error response. */
export function answeredBy(who: string, { code, message }: RpcError): string {
  return `${who} answered with the error ${code}${message && `: ${message}`}`;
}

/** Returns an error response as the result of a tool. Throws an error that cannot be a result. */
export function toolError(name: string, error: RpcError): ToolResult {
  const { code, data } = error;
  if (code === ERROR.missingClientCapability) throw errorFor(name, error);
  const _meta = { "pml/error": defined({ code, data }) };
  const text = answeredBy(quoted(name), error) + urlElicitationLines(error);
  const result = { ...textResult(text), isError: true, _meta };
  ofErrors.add(result);
  return result;
}

/**
 * Returns an error of a tool call that was sent, with a hint whether the tool ran. Errors of
 * connections already contain it.
 */
export function afterSent(error: unknown): unknown {
  if (!(error instanceof PmlError) || error.detail?.may_have_run !== undefined) return error;
  const { code, message, detail, cause } = error;
  const ranHint = RAN[code];
  if (ranHint === undefined) return error;
  const hint = [ranHint, error.hint].filter(Boolean).join(". ");
  return new PmlError(code, message, { hint, detail: { ...detail, may_have_run: true }, cause });
}

/** Adds a remark to the first result of a server that was started again. */
export function withRestart(name: string, result: ToolResult): ToolResult {
  const text = `[PML: ${quoted(name)} did not answer after a call was cancelled or timed out, ` +
    "so it was restarted. Its memory is lost]";
  return { ...result, content: [...result.content, remarkOf(text)] };
}

/** Returns the log line with the reason why a resource of a server cannot be followed. */
export function notFollowed(name: string, error: unknown): string {
  const why = error instanceof RpcError ? answeredBy("it", error) : asPmlError(error).message;
  return `Cannot follow a resource of ${quoted(name)}: ${why.replace(/\s*\n\s*/g, " ")}`;
}

/** Returns the error response of a server as an error for the client, without a reserved code. */
export function errorFor(name: string, error: RpcError): PmlError {
  const message = answeredBy(quoted(name), error) + urlElicitationLines(error);
  const { code, data } = error;
  const answered = RESERVED.includes(code)
    ? { code: ERROR.internalError, message }
    : { code, message, data };
  return new PmlError("BAD_REQUEST", message, { detail: { answered: defined(answered) } });
}

/** Returns the error for a confined server that lacks a permission. */
export function deniedTo(name: string, { why, hint }: Denial): PmlError {
  return new PmlError("UPSTREAM_DOWN", `Cannot use ${quoted(name)}: ${why}`, { hint });
}

/** Returns the error for a list request that a server answered with an error. */
export function listRefused(name: string, list: ListName, error: RpcError): PmlError {
  const message = `Cannot read ${LISTS[list].method} of ${quoted(name)}: ${
    answeredBy("it", error)
  }`;
  return new PmlError("UPSTREAM_PROTOCOL", message, {
    hint: "The error is the server's own: follow its message, or tell its author. PML " +
      "asks again the next time",
    cause: error,
  });
}
