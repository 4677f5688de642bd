/**
 * An MCP server on stdio without a library, so that it can send messages that no library allows:
 * tools for clients with certain capabilities, and tasks, as each revision has them.
 *
 *     deno run -A wire_server.ts ERA LEDGER
 *
 * @module
 */

export {};

type Json = Record<string, unknown>;

interface Task {
  readonly taskId: string;
  status: string;
  result: Json | undefined;
  asked: Json;
  readonly over: PromiseWithResolvers<void>;
}

const [era = "legacy", ledger = "/dev/null"] = Deno.args;
const isModern = era === "modern";
const META = "io.modelcontextprotocol/";
const TASKS = `${META}tasks`;
const REVISION = isModern ? "2026-07-28" : "2025-11-25";
const AT = "2026-01-01T00:00:00Z";
const tasks = new Map<string, Task>();
const answers = new Map<unknown, (said: unknown) => void>();
/** The task ids of each subscription. */
const listens = new Map<unknown, readonly unknown[]>();
const FORM = { type: "object", properties: { name: { type: "string" } } };
const ASKED = {
  who: {
    method: "elicitation/create",
    params: { mode: "form", message: "Who?", requestedSchema: FORM },
  },
  say: { method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } },
};
const held = Promise.withResolvers<void>();
let greeted: Json = {};

/** An error response. */
class Refused extends Error {
  constructor(readonly code: number, message: string, readonly data?: Json) {
    super(message);
  }
}

function note(line: string): void {
  Deno.writeTextFileSync(ledger, `${line}\n`, { append: true });
}

function send(message: Json): void {
  Deno.stdout.writeSync(
    new TextEncoder().encode(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`),
  );
}

function objectOf(value: unknown): Json {
  return typeof value === "object" && value !== null ? value as Json : {};
}

/** Returns the capabilities of the client: from the request, or from initialize. */
function ableIn(params: Json): Json {
  return isModern ? objectOf(objectOf(params._meta)[`${META}clientCapabilities`]) : greeted;
}

function toolsFor(able: Json): readonly Json[] {
  const slow = isModern ? {} : { execution: { taskSupport: "required" } };
  const more = Object.entries({
    asks: "elicitation" in able,
    samples: "sampling" in able,
    views: `${META}ui` in objectOf(able.extensions),
  }).filter(([, isShown]) => isShown).map(([name]) => name);
  return [
    ...["plain", "hold", "finish", ...more].map((name) => ({
      name,
      inputSchema: { type: "object" },
    })),
    { name: "slow", inputSchema: { type: "object" }, outputSchema: { type: "object" }, ...slow },
  ];
}

function shown({ taskId, status, result, asked }: Task, isWhole = false): Json {
  const dates = { createdAt: AT, lastUpdatedAt: AT };
  if (!isModern) return { taskId, status, ...dates, ttl: 60_000, pollInterval: 5 };
  const asks = status === "input_required" ? { inputRequests: asked } : {};
  const more = isWhole ? status === "completed" ? { result } : asks : {};
  return { taskId, status, ...dates, ttlMs: 60_000, pollIntervalMs: 5, ...more };
}

/** Asks the client, as older servers do, and records its answer. */
async function askNow(taskId: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  answers.set("asked", resolve);
  const _meta = { [`${META}related-task`]: { taskId } };
  send({ id: "asked", method: ASKED.who.method, params: { ...ASKED.who.params, _meta } });
  note(`told ${JSON.stringify(await promise)}`);
}

function end(task: Task, status: string): void {
  task.status = status;
  const structuredContent = { status };
  task.result = { content: [{ type: "text", text: status }], structuredContent, "x/kept": 1 };
  task.over.resolve();
  if (!isModern) return send({ method: "notifications/tasks/status", params: shown(task) });
  for (const [id, ids] of listens) {
    const _meta = { [`${META}subscriptionId`]: id };
    const params = { ...shown(task, true), _meta };
    if (ids.includes(task.taskId)) send({ method: "notifications/tasks", params });
  }
}

function finish(): void {
  held.resolve();
  for (const one of tasks.values()) {
    if (one.status === "working") end(one, "completed");
  }
}

function begin(params: Json): Json {
  const wants = isModern ? TASKS in objectOf(ableIn(params).extensions) : "task" in params;
  if (!wants && isModern) {
    throw new Refused(-32021, "Missing required client capability", {
      requiredCapabilities: { extensions: { [TASKS]: {} } },
    });
  }
  if (!wants) throw new Refused(-32601, "It runs as a task alone");
  const taskId = `task-${tasks.size + 1}`;
  const over = Promise.withResolvers<void>();
  const asked = { who: ASKED.who };
  const task: Task = { taskId, status: "working", result: undefined, asked, over };
  tasks.set(taskId, task);
  note(`begin ${taskId} ${JSON.stringify(params.task ?? null)}`);
  const { done, asks } = objectOf(params.arguments);
  if (done === true) end(task, "completed");
  if (asks !== undefined) task.status = "input_required";
  if (asks === "more") task.asked = ASKED;
  return isModern ? { resultType: "task", ...shown(task) } : { task: shown(task) };
}

async function answered(method: string, params: Json): Promise<Json> {
  switch (method) {
    case "initialize":
      if (isModern) throw new Refused(-32022, "Too old", { supported: [REVISION] });
      greeted = objectOf(params.capabilities);
      return {
        protocolVersion: REVISION,
        serverInfo: { name: "wire", version: "1" },
        capabilities: {
          tools: {},
          tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
        },
      };
    case "server/discover":
      return {
        supportedVersions: [REVISION],
        capabilities: { tools: {}, extensions: { [TASKS]: {} } },
      };
    case "tools/list":
      return { tools: toolsFor(ableIn(params)) };
    case "tools/call":
      if (params.name === "slow") return begin(params);
      if (params.name === "finish") finish();
      if (params.name === "hold") {
        note("hold");
        await held.promise;
      }
      return { content: [{ type: "text", text: String(params.name) }] };
    case "ping":
      return {};
  }
  return await told(method, params);
}

/** Answers a request about a task. */
async function told(method: string, params: Json): Promise<Json> {
  note(`${method} ${params.taskId}`);
  const task = tasks.get(String(params.taskId));
  if (task === undefined) throw new Refused(-32602, "Failed to retrieve task: Task not found");
  const isUnable = isModern && !(TASKS in objectOf(ableIn(params).extensions));
  if (isUnable) throw new Refused(-32021, "Missing required client capability");
  const isOpen = task.status === "working" || task.status === "input_required";
  switch (method) {
    case "tasks/get":
      return shown(task, true);
    case "tasks/update":
      note(`told ${JSON.stringify(objectOf(params.inputResponses).who ?? null)}`);
      end(task, "completed");
      return {};
    case "tasks/result":
      if (task.status === "input_required") {
        await askNow(task.taskId);
        end(task, "completed");
      }
      await task.over.promise;
      return { ...task.result, _meta: { [`${META}related-task`]: { taskId: task.taskId } } };
    case "tasks/cancel":
      if (!isOpen) throw new Refused(-32602, "It is over");
      end(task, "cancelled");
      return isModern ? {} : shown(task);
  }
  throw new Refused(-32601, "Method not found");
}

async function serve({ id, method, params, result: said }: Json): Promise<void> {
  if (method === undefined) answers.get(id)?.(said);
  if (id === undefined || typeof method !== "string") return;
  const { taskIds } = objectOf(objectOf(params).notifications);
  if (method === "subscriptions/listen" && Array.isArray(taskIds)) {
    listens.set(id, taskIds);
    return note(`listen ${taskIds}`);
  }
  try {
    const result = await answered(method, objectOf(params));
    send({ id, result: isModern ? { resultType: "complete", ...result } : result });
  } catch (error) {
    const { code, message, data } = error as Refused;
    send({ id, error: { code: code ?? -32603, message, ...data && { data } } });
  }
}

note(`start ${Deno.pid}`);
let rest = "";
const decoder = new TextDecoder();
for await (const chunk of Deno.stdin.readable) {
  const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) void serve(JSON.parse(line));
}
