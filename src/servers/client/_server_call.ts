/**
 * Sends a call to its server, as a task if necessary, and converts the result for the client.
 *
 * @module
 */

import type { ListKey } from "./_server_lists.ts";
import type { ServerConnection } from "./connection.ts";
import type { UpstreamServer } from "./wire.ts";
import type { CheckedCall } from "../server.ts";
import { type ErrorCode, PmlError } from "../../core/errors.ts";
import {
  hasAny,
  isObject,
  type Json,
  type JsonObject,
  objectOf,
  quoted,
  withoutUndefined,
} from "../../core/json.ts";
import type { RequestOptions } from "../../protocol/rpc_peer.ts";
import { type Call, textResult, type ToolResult } from "../../protocol/call.ts";
import { remarkOf } from "../../protocol/output.ts";
import { checkBlocks } from "../../protocol/result_bounds.ts";
import { withoutForged } from "../../protocol/result_members.ts";
import { safeText, withTagRemark } from "../../protocol/safe_text.ts";
import { errorFor, errorResponseText } from "./_error_answers.ts";
import { type ReadableOptions, readableResult } from "./_readable_result.ts";
import { urlElicitationLines } from "./_url_elicitation.ts";
import { protocolError } from "./wire.ts";
import { BACKGROUND_REQUEST } from "./_task_methods.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";
import { numberOf } from "../../core/exact_number.ts";
import { pause } from "../../io/waiting.ts";
import { TASKS_EXTENSION } from "../../protocol/extension_methods.ts";

const CALL = "tools/call";
/** The minimum, maximum and default time between two `tasks/get` requests, in milliseconds. */
const [POLL_MIN_MS, POLL_MAX_MS, POLL_MS] = [50, 5_000, 500];

/** The members of a result with which only PML may ask for input. */
const PML_MEMBERS = ["resultType", "inputRequests", "requestState"];

/** Hints that say whether the tool ran, for errors about an answer that cannot be used. */
const RAN_HINTS: Partial<Record<ErrorCode, string>> = {
  RESULT_TOO_LARGE: "The tool did run",
  UPSTREAM_PROTOCOL: "The tool may have run",
};

/** The results that PML created from error responses. PML wrote their `pml/error`, so it stays. */
const errorResults = new WeakSet<object>();

/** A call or another request for a server, and facts about the last try to send it. */
export interface ServerCall {
  readonly server: UpstreamServer;
  readonly call: CheckedCall;
  /** The key of the server's lists. Computed once, because it needs a hash. */
  readonly listKey: ListKey;
  readonly params: JsonObject;
  /** Whether the call fails if the server no longer lists the tool that was checked. */
  readonly hasToBeListed: boolean;
  /** The connection of the last try. */
  connection: ServerConnection | undefined;
  /** Whether the last try used the stateless revision. */
  isStateless: boolean;
}

/** The members of a call that its requests use. `RpcPeer` gets the call itself as options. */
type ToolCall = Pick<RequestOptions, "cancellation" | "client" | "members"> & Pick<Call, "task">;

/**
 * Calls a tool. `support` returns the tool's `taskSupport`. In the stateless revision it is not
 * used: there the server decides whether a call becomes a task.
 */
export function sendToolCall(
  connection: ServerConnection,
  params: JsonObject,
  { call, support }: { readonly call: ToolCall; readonly support: () => unknown },
): Promise<Json> {
  if (connection.isStateless) return callStateless(connection, params, call);
  const options = call.task?.isStateless === false ? call.task.options : undefined;
  const isTask = connection.runsTasks && (options !== undefined || support() === "required");
  return isTask
    ? callAsTask(connection, params, { call, options })
    : connection.request(CALL, params, call);
}

async function callAsTask(
  connection: ServerConnection,
  params: JsonObject,
  { call, options }: { readonly call: ToolCall; readonly options: JsonObject | undefined },
): Promise<Json> {
  const result = await connection.request(CALL, { ...params, task: options ?? {} }, call);
  const { taskId } = objectOf(objectOf(result).task);
  if (options !== undefined || typeof taskId !== "string") return result;
  const end = () => connection.request("tasks/result", { taskId }, withoutMembers(call));
  return await waitForTask(connection, { taskId, end });
}

/**
 * Calls a tool in the stateless revision. PML declares support for tasks if the client supports
 * them, or if the server refuses the call without that; in this case, PML waits for the task.
 */
async function callStateless(
  connection: ServerConnection,
  params: JsonObject,
  call: ToolCall,
): Promise<Json> {
  const takesTasks = call.task?.isStateless === true;
  const { cancellation, client, members } = call;
  const ask = (takesTasks: boolean) =>
    connection.request(CALL, params, { cancellation, client, members, takesTasks });
  const result = await ask(takesTasks).catch((error) => {
    // The tool can only run as a task, so the server did not run it.
    if (takesTasks || !wantsTasks(error)) throw error;
    return ask(true);
  });
  const { resultType, taskId } = objectOf(result);
  if (takesTasks || resultType !== "task" || typeof taskId !== "string") return result;
  const end = () => pollTask(connection, taskId, withoutMembers(call));
  return await waitForTask(connection, { taskId, end });
}

/** Waits for the result of a task. Cancels the task if waiting fails. */
async function waitForTask(
  connection: ServerConnection,
  { taskId, end }: { readonly taskId: string; readonly end: () => Promise<Json> },
): Promise<Json> {
  try {
    return await end();
  } catch (error) {
    // The task may have ended already.
    connection.request("tasks/cancel", { taskId }, BACKGROUND_REQUEST).catch(() => {});
    throw error;
  }
}

/** Returns the options of PML's own requests about the task of a call. */
function withoutMembers({ cancellation, client }: ToolCall): RequestOptions {
  return { cancellation, client };
}

async function pollTask(
  connection: ServerConnection,
  taskId: string,
  call: RequestOptions,
): Promise<Json> {
  const answered = new Set<string>();
  for (;;) {
    const state = objectOf(await connection.request("tasks/get", { taskId }, call));
    const { status, result, error, inputRequests, pollIntervalMs } = state;
    if (status === "completed") return result ?? {};
    if (status === "failed") throw RpcError.of(error);
    if (status === "cancelled") throw new RpcError(ERROR.internalError, "its task was cancelled");
    const requests = Object.entries(objectOf(inputRequests)).filter(([key]) => !answered.has(key));
    if (requests.length > 0) {
      const { inputResponses = {} } = await connection.answersTo({
        inputRequests: Object.fromEntries(requests),
      }, call);
      await connection.request("tasks/update", { taskId, inputResponses }, call);
      for (const [key] of requests) answered.add(key);
    }
    const wait = numberOf(pollIntervalMs) ?? POLL_MS;
    await pause(Math.min(Math.max(wait, POLL_MIN_MS), POLL_MAX_MS), call.cancellation.signal);
  }
}

function wantsTasks(error: unknown): boolean {
  if (!(error instanceof RpcError) || error.code !== ERROR.missingClientCapability) return false;
  const { requiredCapabilities } = objectOf(error.data);
  return TASKS_EXTENSION in objectOf(objectOf(requiredCapabilities).extensions);
}

/**
 * Converts the result of a server, so that every client can read it. Removes the members that only
 * PML may set: with them, a result could look like an approval request of PML. Throws
 * `UPSTREAM_PROTOCOL` if the answer is not a result, and `RESULT_TOO_LARGE` if it is over the
 * limits.
 */
export function resultOf(
  received: unknown,
  name: string,
  options: ReadableOptions,
): ToolResult {
  if (isObject(received) && errorResults.has(received)) return received as unknown as ToolResult;
  try {
    return correctedResult(received, name, options);
  } catch (error) {
    throw options.method === "tools/call" ? withRanHint(error) : error;
  }
}

function correctedResult(received: unknown, name: string, options: ReadableOptions): ToolResult {
  const { method } = options;
  const isTool = method === "tools/call";
  const answer = isObject(received) ? withoutForgedMembers(received) : received;
  // Names of servers contain no character that must be escaped.
  const what = `what "${name}" answered`;
  if (isObject(answer)) {
    checkBlocks(what, answer);
    if (isObject(answer.result)) checkBlocks(what, answer.result);
  } else checkBlocks(what, { content: answer });
  const result = readableResult(answer, options);
  if (result === undefined) throw protocolError(name, "its answer is not a valid result");
  const isClean = Array.isArray(result.content) && !hasAny(result, PML_MEMBERS);
  if (isTool && isClean) return withTagRemark(result as unknown as ToolResult); // corrected above
  const { resultType: _, inputRequests, requestState: _s, ...rest } = result;
  // The gateway checks and rewrites the requests of a task before a client gets them.
  const requests = method === "tasks/get" ? withoutUndefined({ inputRequests }) : {};
  // The answer to a call that began a task has no content.
  if (isTool) return withTagRemark({ content: [], ...rest });
  const { statusMessage } = rest;
  const status = method.startsWith("tasks/") && typeof statusMessage === "string"
    ? { statusMessage: safeText(statusMessage) }
    : {};
  return { ...rest, ...requests, ...status } as unknown as ToolResult;
}

/**
 * Removes members that only PML may set from a result. The state of a task can contain a result.
 */
function withoutForgedMembers(received: Record<string, unknown>): Record<string, unknown> {
  const { result } = received;
  const inner = isObject(result) ? withoutForged(result) : result;
  return withoutForged(inner === result ? received : { ...received, result: inner });
}

/**
 * Returns an error response as the result of a tool. Throws an error that says which capability the
 * client lacks: it cannot be a result.
 */
export function toolError(name: string, error: RpcError): ToolResult {
  const { code, data } = error;
  if (code === ERROR.missingClientCapability) throw errorFor(name, error);
  const _meta = { "pml/error": withoutUndefined({ code, data }) };
  const text = errorResponseText(quoted(name), error) + urlElicitationLines(error);
  const result = { ...textResult(text), isError: true, _meta };
  errorResults.add(result);
  return result;
}

/**
 * Adds a hint to the error of a call that was sent: whether the tool ran. Errors of connections
 * already contain such a hint.
 */
export function withRanHint(error: unknown): unknown {
  if (!(error instanceof PmlError) || error.detail?.may_have_run !== undefined) return error;
  const { code, message, detail, cause } = error;
  const ranHint = RAN_HINTS[code];
  if (ranHint === undefined) return error;
  const hint = [ranHint, error.hint].filter(Boolean).join(". ");
  return new PmlError(code, message, { hint, detail: { ...detail, may_have_run: true }, cause });
}

/** Adds a remark to the first result of a restarted server: that the server was restarted. */
export function withRestart(name: string, result: ToolResult): ToolResult {
  const text = `[PML: ${quoted(name)} did not answer after a call was cancelled or timed out, ` +
    "so it was restarted. Its memory is lost]";
  return { ...result, content: [...result.content, remarkOf(text)] };
}
