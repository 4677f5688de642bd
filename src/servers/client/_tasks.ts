/**
 * Calls that run as tasks. A client that supports tasks in the same way as its server gets the task;
 * for any other client, PML waits for the result.
 *
 * @module
 */

import type { Call } from "../../protocol/call.ts";
import { numberOf } from "../../core/exact_number.ts";
import { type Json, type JsonObject, objectOf } from "../../core/json.ts";
import { isOfTask } from "./_task_methods.ts";
/** How long a server is kept running for a task without a `ttl`, and the most for any task. */
const [LIFE_MS, LIFE_MAX_MS] = [3_600_000, 86_400_000];
/** How many tasks of one server keep it running. */
const KEPT_MAX = 1_000;

/** The state of a task. */
interface ServerTaskState {
  readonly taskId: string;
  readonly status: string;
  /** How long it lives, in milliseconds. */
  readonly ms: number;
}

/** Returns the state of the client's task that a result describes; undefined if it has none. */
export function taskIn(
  result: Json,
  { method, arguments: args, task }: Call,
): ServerTaskState | undefined {
  const fields = objectOf(result);
  if (method === "tasks/result") return readTaskState({ ...args, status: "completed" });
  // In the stateless revision, no state follows a cancellation.
  if (method === "tasks/cancel") return readTaskState({ ...args, status: "cancelled" });
  if (isOfTask(method)) return readTaskState(fields);
  if (method !== undefined || task === undefined) return undefined;
  if (task.isStateless) return fields.resultType === "task" ? readTaskState(fields) : undefined;
  return readTaskState(objectOf(fields.task));
}

/** Reads the state of a task; undefined if it is not valid. */
export function readTaskState(
  { taskId, status, ttl, ttlMs }: JsonObject,
): ServerTaskState | undefined {
  if (typeof taskId !== "string" || typeof status !== "string") return undefined;
  const life = numberOf(ttl ?? ttlMs) ?? LIFE_MS;
  const ms = Math.min(life, LIFE_MAX_MS);
  return { taskId, status, ms };
}

/** A task that keeps its server running. */
interface RunningTask {
  /** The connection on which it began. */
  readonly connection: object | undefined;
  /** Lets its server end. */
  end(): void;
}

/** Keeps servers running while their tasks run: a task outlives its call. */
export class RunningTasks {
  readonly #hold: (server: string, until: Promise<void>) => void;
  readonly #all = new Map<string, Map<string, RunningTask>>();

  /** Takes the function that keeps a server running until a promise resolves. */
  constructor(hold: (server: string, until: Promise<void>) => void) {
    this.#hold = hold;
  }

  /** Sets the state of a task. A task that has ended no longer keeps its server running. */
  note(server: string, { taskId, status, ms }: ServerTaskState, connection?: object): void {
    const running = this.#all.get(server) ?? new Map<string, RunningTask>();
    this.#all.set(server, running);
    const isOver = status !== "working" && status !== "input_required";
    if (isOver) return running.get(taskId)?.end();
    if (running.has(taskId) || running.size >= KEPT_MAX) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = () => {
      clearTimeout(timer);
      running.delete(taskId);
      resolve();
    };
    const timer = setTimeout(end, Math.max(ms, 0));
    Deno.unrefTimer(timer);
    running.set(taskId, { connection, end });
    this.#hold(server, promise);
  }

  /** Sets the state of a known task: a server cannot keep itself running with unknown ones. */
  update(server: string, state: ServerTaskState): void {
    if (this.#all.get(server)?.has(state.taskId)) this.note(server, state);
  }

  /** Ends the tasks that began on a connection that has ended. */
  end(ended: object): void {
    for (const running of this.#all.values()) {
      for (const { connection, end } of running.values()) if (connection === ended) end();
    }
  }
}
