/**
 * Keeps servers running while their tasks run. Tasks differ between the revisions: a client that
 * supports tasks of the server's revision gets the task, and for any other client PML waits for the
 * result.
 *
 * @module
 */

import type { Call } from "../../protocol/call.ts";
import { numberOf } from "../../core/exact_number.ts";
import { type Json, type JsonObject, objectOf } from "../../core/json.ts";
import { isTaskMethod } from "./_task_methods.ts";

/**
 * How long a server is kept running for a task without a `ttl`, and the maximum for any task, in
 * milliseconds.
 */
const [LIFE_MS, LIFE_MAX_MS] = [3_600_000, 86_400_000];
/** The maximum number of tasks of one server that are watched. */
const RUNNING_MAX = 1_000;

/** The state of a task. */
interface ServerTaskState {
  readonly taskId: string;
  readonly status: string;
  /** How long the task keeps its server running, in milliseconds. */
  readonly lifeMs: number;
}

/**
 * Returns the state of a client's task in the result of a call; undefined if the result has none,
 * or if PML itself waits for the task.
 */
export function taskIn(
  result: Json,
  { method, arguments: args, task }: Call,
): ServerTaskState | undefined {
  const fields = objectOf(result);
  if (method === "tasks/result") return readTaskState({ ...args, status: "completed" });
  // In the stateless revision, the server sends no state after a cancellation.
  if (method === "tasks/cancel") return readTaskState({ ...args, status: "cancelled" });
  if (isTaskMethod(method)) return readTaskState(fields);
  if (method !== undefined || task === undefined) return undefined;
  if (task.isStateless) return fields.resultType === "task" ? readTaskState(fields) : undefined;
  return readTaskState(objectOf(fields.task));
}

/** Reads the state of a task; undefined if it is not valid. */
export function readTaskState(
  { taskId, status, ttl, ttlMs }: JsonObject,
): ServerTaskState | undefined {
  if (typeof taskId !== "string" || typeof status !== "string") return undefined;
  const lifeMs = Math.min(numberOf(ttl ?? ttlMs) ?? LIFE_MS, LIFE_MAX_MS);
  return { taskId, status, lifeMs };
}

/** A task that keeps its server running. */
interface RunningTask {
  /** The connection on which the task began. */
  readonly connection: object | undefined;
  /** Stops keeping the server running. */
  end(): void;
}

/** Keeps servers running while their tasks run, because a task can last longer than its call. */
export class RunningTasks {
  readonly #hold: (server: string, until: Promise<void>) => void;
  readonly #all = new Map<string, Map<string, RunningTask>>();

  /** `hold` keeps a server running until a promise resolves. */
  constructor(hold: (server: string, until: Promise<void>) => void) {
    this.#hold = hold;
  }

  /** Sets the state of a task. A task that has ended no longer keeps its server running. */
  note(server: string, { taskId, status, lifeMs }: ServerTaskState, connection?: object): void {
    const running = this.#all.get(server) ?? new Map<string, RunningTask>();
    this.#all.set(server, running);
    const hasEnded = status !== "working" && status !== "input_required";
    if (hasEnded) return running.get(taskId)?.end();
    if (running.has(taskId) || running.size >= RUNNING_MAX) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = () => {
      clearTimeout(timer);
      running.delete(taskId);
      resolve();
    };
    const timer = setTimeout(end, Math.max(lifeMs, 0));
    Deno.unrefTimer(timer);
    running.set(taskId, { connection, end });
    this.#hold(server, promise);
  }

  /**
   * Sets the state of a known task, from a notification. Ignores unknown tasks: with them, a server
   * could keep itself running.
   */
  update(server: string, state: ServerTaskState): void {
    if (this.#all.get(server)?.has(state.taskId)) this.note(server, state);
  }

  /** Forgets the tasks that began on a connection that has ended. */
  end(ended: object): void {
    for (const running of this.#all.values()) {
      for (const { connection, end } of running.values()) if (connection === ended) end();
    }
  }
}
