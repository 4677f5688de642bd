/**
 * Calls that run as tasks. A client that supports tasks in the same way as its server gets the task;
 * for any other client, PML waits for the result.
 *
 * @module
 */

import type { Call } from "../../protocol/call.ts";
import { numberOf } from "../../core/exact_number.ts";
import { TASKS_EXTENSION } from "../../protocol/extension_methods.ts";
import { type Json, type JsonObject, objectOf } from "../../core/json.ts";
import { pause } from "../../io/waiting.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";
import type { RequestOptions } from "../../protocol/rpc_peer.ts";
import type { Connection } from "./connection.ts";
import { ASIDE, isOfTask } from "./_task_methods.ts";

const CALL = "tools/call";
/** The least, the most and the default time between two `tasks/get` requests. */
const [POLL_MIN_MS, POLL_MAX_MS, POLL_MS] = [50, 5_000, 500];
/** How long a server is kept running for a task without a `ttl`, and the most for any task. */
const [LIFE_MS, LIFE_MAX_MS] = [3_600_000, 86_400_000];
/** How many tasks of one server keep it running. */
const KEPT_MAX = 1_000;

/** What a call of a tool has beside its params. */
type ToolCall = Pick<RequestOptions, "cancellation" | "client" | "members"> & Pick<Call, "task">;

/** Calls a tool. `support` returns its `taskSupport`, which the revision before the newest uses. */
export function callTool(
  connection: Connection,
  params: JsonObject,
  { call, support }: { readonly call: ToolCall; readonly support: () => unknown },
): Promise<Json> {
  if (connection.isModern) return callNewest(connection, params, call);
  const wanted = call.task?.isModern === false ? call.task.wanted : undefined;
  const isTask = connection.runsTasks && (wanted !== undefined || support() === "required");
  return isTask
    ? callAsTask(connection, params, { call, wanted })
    : connection.request(CALL, params, call);
}

async function callAsTask(
  connection: Connection,
  params: JsonObject,
  { call, wanted }: { readonly call: ToolCall; readonly wanted: JsonObject | undefined },
): Promise<Json> {
  const begun = await connection.request(CALL, { ...params, task: wanted ?? {} }, call);
  const { taskId } = objectOf(objectOf(begun).task);
  if (wanted !== undefined || typeof taskId !== "string") return begun;
  const end = () => connection.request("tasks/result", { taskId }, call);
  return await finished(connection, { taskId, end });
}

/** The server decides whether a call becomes a task, but only if the client supports tasks. */
async function callNewest(
  connection: Connection,
  params: JsonObject,
  call: ToolCall,
): Promise<Json> {
  const takesTasks = call.task?.isModern === true;
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
  const end = () => polled(connection, taskId, call);
  return await finished(connection, { taskId, end });
}

/** Waits for the result of a task. Cancels the task if waiting fails. */
async function finished(
  connection: Connection,
  { taskId, end }: { readonly taskId: string; readonly end: () => Promise<Json> },
): Promise<Json> {
  try {
    return await end();
  } catch (error) {
    connection.request("tasks/cancel", { taskId }, ASIDE).catch(() => {}); // it may have ended
    throw error;
  }
}

async function polled(connection: Connection, taskId: string, call: ToolCall): Promise<Json> {
  const answered = new Set<string>();
  for (;;) {
    const state = objectOf(await connection.request("tasks/get", { taskId }, call));
    const { status, result, error, inputRequests, pollIntervalMs } = state;
    if (status === "completed") return result ?? {};
    if (status === "failed") throw RpcError.of(error);
    if (status === "cancelled") throw new RpcError(ERROR.internalError, "its task was cancelled");
    const asked = Object.entries(objectOf(inputRequests)).filter(([key]) => !answered.has(key));
    if (asked.length > 0) {
      const { inputResponses = {} } = await connection.answersTo({
        inputRequests: Object.fromEntries(asked),
      }, call);
      await connection.request("tasks/update", { taskId, inputResponses }, call);
      for (const [key] of asked) answered.add(key);
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

/** The state of a task. */
interface State {
  readonly taskId: string;
  readonly status: string;
  /** How long it lives, in milliseconds. */
  readonly ms: number;
}

/** Returns the state of the client's task that a result describes; undefined if it has none. */
export function taskIn(result: Json, { method, arguments: args, task }: Call): State | undefined {
  const fields = objectOf(result);
  if (method === "tasks/result") return stateOf({ ...args, status: "completed" });
  // In the newest revision, no state follows a cancellation.
  if (method === "tasks/cancel") return stateOf({ ...args, status: "cancelled" });
  if (isOfTask(method)) return stateOf(fields);
  if (method !== undefined || task === undefined) return undefined;
  if (task.isModern) return fields.resultType === "task" ? stateOf(fields) : undefined;
  return stateOf(objectOf(fields.task));
}

/** Reads the state of a task; undefined if it is not valid. */
export function stateOf({ taskId, status, ttl, ttlMs }: JsonObject): State | undefined {
  if (typeof taskId !== "string" || typeof status !== "string") return undefined;
  const life = numberOf(ttl ?? ttlMs) ?? LIFE_MS;
  const ms = Math.min(life, LIFE_MAX_MS);
  return { taskId, status, ms };
}

/** Keeps servers running while their tasks run: a task outlives its call. */
export class RunningTasks {
  readonly #hold: (server: string, until: Promise<void>) => void;
  readonly #all = new Map<string, Map<string, () => void>>();

  /** Takes the function that keeps a server running until a promise resolves. */
  constructor(hold: (server: string, until: Promise<void>) => void) {
    this.#hold = hold;
  }

  /** Sets the state of a task. A task that has ended no longer keeps its server running. */
  note(server: string, { taskId, status, ms }: State): void {
    const running = this.#all.get(server) ?? new Map<string, () => void>();
    this.#all.set(server, running);
    const isOver = status !== "working" && status !== "input_required";
    if (isOver) return running.get(taskId)?.();
    if (running.has(taskId) || running.size >= KEPT_MAX) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = () => {
      clearTimeout(timer);
      running.delete(taskId);
      resolve();
    };
    const timer = setTimeout(end, Math.max(ms, 0));
    Deno.unrefTimer(timer);
    running.set(taskId, end);
    this.#hold(server, promise);
  }

  /** Sets the state of a known task: a server cannot keep itself running with unknown ones. */
  update(server: string, state: State): void {
    if (this.#all.get(server)?.has(state.taskId)) this.note(server, state);
  }

  /** Ends all tasks of a server that has ended. */
  end(server: string): void {
    for (const end of this.#all.get(server)?.values() ?? []) end();
  }
}
