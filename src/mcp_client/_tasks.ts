/**
 * Calls that go on as tasks, in the words of each revision: begun for a client that speaks of tasks
 * as its server does, and driven to their end for every other.
 *
 * @module
 */

import type { Call } from "../core/call.ts";
import { isObject, type Json, type JsonObject, objectOf, textOf } from "../core/json.ts";
import { pause } from "../io/waiting.ts";
import { Answered } from "./_peer.ts";
import type { Connection } from "./connection.ts";

/** The extension of 2026-07-28. */
export const TASKS = "io.modelcontextprotocol/tasks";

const CALL = "tools/call";
const MISSING_CAPABILITY = -32021;
const INTERNAL_ERROR = -32603;
/** How soon and how late a task is asked for again, whatever its server says. */
const [POLL_MIN_MS, POLL_MAX_MS, POLL_MS] = [50, 5_000, 500];
/** How long a server is kept for a task that does not say how long it lives, and at the most. */
const [LIFE_MS, LIFE_MAX_MS] = [3_600_000, 86_400_000];
/** How many tasks of one server keep it. */
const HELD_MAX = 1_000;
/** For what is asked once and whose answer nobody waits for. */
export const ASIDE = { signal: new AbortController().signal, lasts: true };

/** Calls a tool; `support` is what it says of tasks in the revision before the newest. */
export async function callTool(
  connection: Connection,
  params: JsonObject,
  { call, support }: { readonly call: Call; readonly support: unknown },
): Promise<Json> {
  if (connection.isModern) return await callNewest(connection, params, call);
  const wanted = call.task?.isModern === false ? call.task.wanted : undefined;
  const isTask = connection.runsTasks && (wanted !== undefined || support === "required");
  if (!isTask) return await connection.request(CALL, params, call);
  const begun = await connection.request(CALL, { ...params, task: wanted ?? {} }, call);
  const { taskId } = objectOf(objectOf(begun).task);
  if (wanted !== undefined || typeof taskId !== "string") return begun;
  const end = () => connection.request("tasks/result", { taskId }, call);
  return await driven(connection, { taskId, end });
}

/** The server decides what becomes a task, but for a client that does not know them it may not. */
async function callNewest(connection: Connection, params: JsonObject, call: Call): Promise<Json> {
  const takesTasks = call.task?.isModern === true;
  const ask = (more: boolean) => connection.request(CALL, params, { ...call, takesTasks: more });
  const result = await ask(takesTasks).catch((error) => {
    // It ran nothing: it says that it can only as a task.
    if (takesTasks || !wantsTasks(error)) throw error;
    return ask(true);
  });
  const { resultType, taskId } = objectOf(result);
  if (takesTasks || resultType !== "task" || typeof taskId !== "string") return result;
  const end = () => polled(connection, taskId, call);
  return await driven(connection, { taskId, end });
}

/** Waits for a task; where nobody waits any more it is given up. */
async function driven(
  connection: Connection,
  { taskId, end }: { readonly taskId: string; readonly end: () => Promise<Json> },
): Promise<Json> {
  try {
    return await end();
  } catch (error) {
    connection.request("tasks/cancel", { taskId }, ASIDE).catch(() => {}); // it may be over
    throw error;
  }
}

async function polled(connection: Connection, taskId: string, call: Call): Promise<Json> {
  const answered = new Set<string>();
  for (;;) {
    const state = objectOf(await connection.request("tasks/get", { taskId }, call));
    const { status, result, error, inputRequests, pollIntervalMs } = state;
    if (status === "completed") return result ?? {};
    if (status === "failed") throw Answered.of(error);
    if (status === "cancelled") throw new Answered(INTERNAL_ERROR, "its task was cancelled");
    const asked = Object.entries(objectOf(inputRequests)).filter(([key]) => !answered.has(key));
    if (asked.length > 0) {
      const { inputResponses = {} } = await connection.answersTo({
        inputRequests: Object.fromEntries(asked),
      }, call);
      await connection.request("tasks/update", { taskId, inputResponses }, call);
      for (const [key] of asked) answered.add(key);
    }
    const wait = typeof pollIntervalMs === "number" ? pollIntervalMs : POLL_MS;
    await pause(Math.min(Math.max(wait, POLL_MIN_MS), POLL_MAX_MS), call.signal);
  }
}

function wantsTasks(error: unknown): boolean {
  if (!(error instanceof Answered) || error.code !== MISSING_CAPABILITY) return false;
  const { requiredCapabilities } = objectOf(error.data);
  return TASKS in objectOf(objectOf(requiredCapabilities).extensions);
}

/** How a task stands. */
interface State {
  readonly taskId: string;
  readonly status: string;
  /** How long it lives. */
  readonly ms: number;
}

/** Reads what an answer tells of a task that the client began; undefined for one that tells of none. */
export function taskIn(result: Json, { method, arguments: args, task }: Call): State | undefined {
  const said = objectOf(result);
  if (method === "tasks/result") return stateOf({ ...args, status: "completed" });
  // The newest revision says nothing more of one that is to be cancelled.
  if (method === "tasks/cancel") return stateOf({ ...args, status: "cancelled" });
  if (isOfTask(method)) return stateOf(said);
  if (method !== undefined || task === undefined) return undefined;
  if (task.isModern) return said.resultType === "task" ? stateOf(said) : undefined;
  return stateOf(objectOf(said.task));
}

/** Reads how a task stands. */
export function stateOf({ taskId, status, ttl, ttlMs }: JsonObject): State | undefined {
  if (typeof taskId !== "string" || typeof status !== "string") return undefined;
  const life = ttl ?? ttlMs;
  const ms = typeof life === "number" ? Math.min(life, LIFE_MAX_MS) : LIFE_MS;
  return { taskId, status, ms };
}

/** Keeps the servers whose tasks run: a task outlives its call. */
export class RunningTasks {
  readonly #hold: (server: string, until: Promise<void>) => void;
  readonly #all = new Map<string, Map<string, () => void>>();

  /** Has a server kept by `hold`. */
  constructor(hold: (server: string, until: Promise<void>) => void) {
    this.#hold = hold;
  }

  /** Takes note of how a task stands; one that is over keeps its server no longer. */
  note(server: string, { taskId, status, ms }: State): void {
    const running = this.#all.get(server) ?? new Map<string, () => void>();
    this.#all.set(server, running);
    const isOver = status !== "working" && status !== "input_required";
    if (isOver) return running.get(taskId)?.();
    if (running.has(taskId) || running.size >= HELD_MAX) return;
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

  /** Takes note of what a server says by itself: it keeps itself by no task that nobody began. */
  heard(server: string, state: State): void {
    if (this.#all.get(server)?.has(state.taskId)) this.note(server, state);
  }

  /** Keeps a server no longer: it is gone, and its tasks with it. */
  end(server: string): void {
    for (const end of this.#all.get(server)?.values() ?? []) end();
  }
}

/** Tells whether a request is about a task. */
export function isOfTask(method: string | undefined): boolean {
  return textOf(method).startsWith("tasks/");
}

/** Tells whether a server of the revision before the newest runs tools as tasks. */
export function runsTasks({ tasks }: JsonObject): boolean {
  return isObject(objectOf(objectOf(objectOf(tasks).requests).tools).call);
}
