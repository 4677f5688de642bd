/**
 * The tasks of the conformance fixture, in the newest revision.
 *
 * @module
 */

import { ProtocolError, type Server, type ServerContext } from "@modelcontextprotocol/server";
import {
  type Answers,
  type At,
  content,
  form,
  type Json,
  NAME,
  object,
  pause,
  type Requests,
  string,
  text,
  type Tool,
} from "./words.ts";

/** The name of the extension. */
export const TASKS = "io.modelcontextprotocol/tasks";
const METHODS = ["tasks/get", "tasks/update", "tasks/cancel"];
const ANY = { "~standard": { version: 1, vendor: "test", validate: (value: Json) => ({ value }) } };
const AT = "2026-01-01T00:00:00Z";

interface Task {
  readonly taskId: string;
  status: string;
  readonly asked: Requests;
  readonly said: Record<string, Json>;
  /** Resolves when all questions are answered. */
  readonly answered: PromiseWithResolvers<Answers>;
  outcome: Json;
}

/** The work of a task: it may ask, and it fails by throwing. */
interface Job {
  readonly asks?: Requests;
  readonly run: (answers: Answers) => Promise<Json>;
}

const all = new Map<string, Task>();

/** Returns whether a client supports tasks. */
function takes({ able }: Pick<At, "able">): boolean {
  return TASKS in Object(able.extensions);
}

function begin({ asks = {}, run }: Job): Json {
  const task: Task = {
    taskId: crypto.randomUUID(),
    status: Object.keys(asks).length > 0 ? "input_required" : "working",
    asked: { ...asks },
    said: {},
    answered: Promise.withResolvers(),
    outcome: {},
  };
  all.set(task.taskId, task);
  if (task.status === "working") task.answered.resolve({});
  const end = (status: string, outcome: Json) => {
    if (task.status === "cancelled") return;
    task.status = status;
    task.outcome = outcome;
  };
  task.answered.promise.then(run).then(
    (result) => end("completed", { result }),
    ({ message }) => end("failed", { error: { code: -32603, message } }),
  );
  return { resultType: "task", ...stateOf(task) };
}

function stateOf({ taskId, status }: Task): Json {
  const dates = { createdAt: AT, lastUpdatedAt: AT };
  return { taskId, status, ...dates, ttlMs: 60_000, pollIntervalMs: 100 };
}

/** Registers the handlers of requests about tasks on a server. */
export function takeTasks(server: Server, ableOf: (context: ServerContext) => Json): void {
  for (const method of METHODS) {
    const serve = (params: unknown, context: ServerContext) => {
      if (!takes({ able: ableOf(context) })) throw missing();
      const said = context.mcpReq.inputResponses as Record<string, Json> | undefined;
      return answer(method, { taskId: String((params as Json).taskId), said }) as never;
    };
    server.setRequestHandler(method, { params: ANY } as never, serve);
  }
}

function answer(
  method: string,
  { taskId, said = {} }: { readonly taskId: string; readonly said?: Record<string, Json> },
): Json {
  const task = all.get(taskId);
  if (task === undefined) throw new ProtocolError(-32602, "Task not found");
  if (method === "tasks/cancel") {
    if (task.status === "working" || task.status === "input_required") task.status = "cancelled";
    return {};
  }
  if (method === "tasks/update") {
    for (const [key, one] of Object.entries(said)) {
      if (!(key in task.asked)) continue;
      delete task.asked[key];
      task.said[key] = one;
    }
    if (Object.keys(task.asked).length === 0 && task.status === "input_required") {
      task.status = "working";
      task.answered.resolve(task.said);
    }
    return {};
  }
  const asks = task.status === "input_required" && { inputRequests: task.asked };
  return { ...stateOf(task), ...asks, ...task.outcome };
}

function missing(): Error {
  return new ProtocolError(-32021, "Missing required client capability", {
    requiredCapabilities: { extensions: { [TASKS]: {} } },
  });
}

/** Creates a tool that always runs as a task. */
function job(does: string, made: Job): Tool {
  return {
    does,
    run: (at) => {
      if (!takes(at)) throw missing();
      return begin(made);
    },
  };
}

const CONFIRM = form("Are you sure?", object({ confirm: { type: "boolean" } }));

/** The tools that run as tasks. */
export const TASK_TOOLS: Readonly<Record<string, Tool>> = {
  slow_compute: {
    does: "Takes its time",
    inputSchema: object({ seconds: { type: "number" }, label: string }, ["seconds"]),
    run: async (at) => {
      const seconds = Number(at.args.seconds);
      const run = async () => {
        await pause(seconds * 1_000);
        return content(text(`${at.args.label} took ${seconds} s`));
      };
      return takes(at) ? begin({ run }) : await run();
    },
  },
  failing_job: job("Fails", {
    run: () => Promise.resolve({ ...content(text("It failed")), isError: true }),
  }),
  protocol_error_job: job("Breaks", { run: () => Promise.reject(new Error("It broke")) }),
  confirm_delete: job("Deletes a file", {
    asks: { confirm: CONFIRM },
    run: ({ confirm }) => Promise.resolve(content(text(JSON.stringify(confirm)))),
  }),
  multi_input: job("Asks two questions at once", {
    asks: { one: NAME, two: CONFIRM },
    run: (answers) => Promise.resolve(content(text(JSON.stringify(answers)))),
  }),
  test_tool_with_task: {
    does: "Asks, and goes on as a task",
    run: async (at) => {
      const answers = await at.ask({ user_name: NAME });
      if (answers === undefined) return undefined;
      if (!takes(at)) throw missing();
      return begin({
        run: () => Promise.resolve(content(text(JSON.stringify(answers.user_name)))),
      });
    },
  },
};
