/**
 * A call as its server gets it, and how it is sent: as a task, or not.
 *
 * @module
 */

import type { ListKey } from "./_server_lists.ts";
import type { ServerConnection } from "./connection.ts";
import type { UpstreamServer } from "./upstream_server.ts";
import type { CheckedCall } from "../server.ts";
import { type Json, type JsonObject, objectOf } from "../../core/json.ts";
import type { RequestOptions } from "../../protocol/rpc_peer.ts";
import type { Call } from "../../protocol/call.ts";
import { ASIDE } from "./_task_methods.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";
import { numberOf } from "../../core/exact_number.ts";
import { pause } from "../../io/waiting.ts";
import { TASKS_EXTENSION } from "../../protocol/extension_methods.ts";

const CALL = "tools/call";
/** The minimum, the maximum and the default time between two `tasks/get` requests. */
const [POLL_MIN_MS, POLL_MAX_MS, POLL_MS] = [50, 5_000, 500];

/** A call or another request, as its server gets it. */
export interface ServerCall {
  readonly server: UpstreamServer;
  readonly call: CheckedCall;
  /** The owner of the lists, computed once because it takes a hash. */
  readonly owner: ListKey;
  readonly params: JsonObject;
  /** Whether the server must list the tool that was checked. */
  readonly isCompared: boolean;
  /** The connection that it was sent on last, and whether its session uses the stateless revision. */
  connection: ServerConnection | undefined;
  isStateless: boolean;
}

/** The members of a call that its requests need: `RpcPeer` gets the call itself as their options. */
type ToolCall = Pick<RequestOptions, "cancellation" | "client" | "members"> & Pick<Call, "task">;

/** Calls a tool. `support` returns its `taskSupport`, which the revision before the newest uses. */
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
  return await finished(connection, { taskId, end });
}

/** The server decides whether a call becomes a task, but only if the client supports tasks. */
async function callStateless(
  connection: ServerConnection,
  params: JsonObject,
  call: ToolCall,
): Promise<Json> {
  const takesTasks = call.task?.isStateless === true;
  const { cancellation, client, members } = call;
  const ask = (more: boolean) =>
    connection.request(CALL, params, { cancellation, client, members, takesTasks: more });
  const result = await ask(takesTasks).catch((error) => {
    // The server ran nothing: the tool can only run as a task.
    if (takesTasks || !wantsTasks(error)) throw error;
    return ask(true);
  });
  const { resultType, taskId } = objectOf(result);
  if (takesTasks || resultType !== "task" || typeof taskId !== "string") return result;
  const end = () => polled(connection, taskId, withoutMembers(call));
  return await finished(connection, { taskId, end });
}

/** Waits for the result of a task. Cancels the task if waiting fails. */
async function finished(
  connection: ServerConnection,
  { taskId, end }: { readonly taskId: string; readonly end: () => Promise<Json> },
): Promise<Json> {
  try {
    return await end();
  } catch (error) {
    connection.request("tasks/cancel", { taskId }, ASIDE).catch(() => {}); // it may have ended
    throw error;
  }
}

/** Returns the options of requests about the task of a call: they are messages of PML. */
function withoutMembers({ cancellation, client }: ToolCall): RequestOptions {
  return { cancellation, client };
}

async function polled(
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
