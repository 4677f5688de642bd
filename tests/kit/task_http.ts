/**
 * A server over Streamable HTTP on loopback whose only slow tool always runs as a task, in either
 * revision.
 *
 * @module
 */

import {
  createMcpHandler,
  type McpHttpHandler,
  ProtocolError,
  Server,
  type ServerContext,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";

type Json = Record<string, unknown>;

interface Task {
  readonly taskId: string;
  status: string;
  readonly over: PromiseWithResolvers<void>;
}

const META = "io.modelcontextprotocol/";
const TASKS = `${META}tasks`;
const AT = "2026-01-01T00:00:00Z";
const ANY = { "~standard": { version: 1, vendor: "test", validate: (value: Json) => ({ value }) } };
const OBJECT = { type: "object" as const };

/** The server, and its records. */
export class TaskHttp implements AsyncDisposable {
  /** Its actions, a line each. */
  readonly ledger: string[] = [];
  /** The `Mcp-Name` headers of the task requests of the newest revision, by method. */
  readonly named = new Map<string, string | null>();
  readonly #isModern: boolean;
  readonly #tasks = new Map<string, Task>();
  readonly #sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  readonly #servers = new Set<Server>();
  readonly #modern: McpHttpHandler | undefined;
  readonly #http: Deno.HttpServer<Deno.NetAddr>;
  /** The subscribers of tasks, with the id of their request. */
  readonly #listens = new Map<ReadableStreamDefaultController<Uint8Array>, Json>();

  /** Listens on a free port of 127.0.0.1, for one revision. */
  constructor(kind: "legacy" | "modern") {
    this.#isModern = kind === "modern";
    const make = () => this.#make();
    this.#modern = this.#isModern ? createMcpHandler(make, { legacy: "reject" }) : undefined;
    const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    this.#http = Deno.serve(options, async (request) => {
      const listen = this.#isModern ? await this.#listen(request.clone()) : undefined;
      return listen ?? await (this.#modern?.fetch(request) ?? this.#older(request));
    });
  }

  /** The address. */
  get url(): string {
    return `http://127.0.0.1:${this.#http.addr.port}/mcp`;
  }

  /** Ends all tasks, and notifies the clients. */
  async finish(status = "completed"): Promise<void> {
    for (const task of this.#tasks.values()) {
      if (task.status === "working") await this.#end(task, status);
    }
  }

  /** Notifies the clients of the state of a task, with any further members. */
  async tell(taskId: string, more: Json = {}): Promise<void> {
    const task = this.#tasks.get(taskId);
    const params = { ...task ? this.#shown(task) : { taskId, status: "working" }, ...more };
    if (!this.#isModern) {
      const method = "notifications/tasks/status";
      for (const server of this.#servers) {
        await server.notification({ method, params } as never).catch(() => {});
      }
      return;
    }
    for (const [controller, { id }] of this.#listens) {
      const _meta = { [`${META}subscriptionId`]: id };
      const message = { method: "notifications/tasks", params: { ...params, _meta } };
      controller.enqueue(event(message));
    }
  }

  /** Stops listening, and closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const controller of this.#listens.keys()) controller.close();
    for (const transport of this.#sessions.values()) await transport.close();
    await this.#modern?.close();
    await this.#http.shutdown();
  }

  #make(): Server {
    const extensions = { extensions: { [TASKS]: {} } };
    const tasks = { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };
    const capabilities = { tools: {}, ...this.#isModern ? extensions : tasks };
    const server = new Server({ name: "tasks", version: "1" }, { capabilities } as never);
    this.#servers.add(server);
    server.onclose = () => void this.#servers.delete(server);
    const serve = async (method: string, params: Json, context: ServerContext) => {
      this.ledger.push(`${method} ${params.taskId ?? params.name ?? ""}`.trim());
      if (this.#isModern && method !== "tools/list") assertTakesTasks(context);
      return await this.#answer(method, params) as never;
    };
    server.fallbackRequestHandler = ({ method, params }, context) =>
      serve(method, params as Json ?? {}, context);
    for (const method of ["tasks/get", "tasks/cancel", "tasks/update", "tasks/result"]) {
      server.setRequestHandler(
        method,
        { params: ANY } as never,
        (params: unknown, context: ServerContext) => serve(method, params as Json, context),
      );
    }
    return server;
  }

  async #answer(method: string, params: Json): Promise<Json> {
    switch (method) {
      case "tools/list": {
        const own = this.#isModern ? {} : { execution: { taskSupport: "required" } };
        return { tools: [{ name: "slow", inputSchema: OBJECT, outputSchema: OBJECT, ...own }] };
      }
      case "tools/call":
        return await this.#begin(params);
    }
    const task = this.#tasks.get(String(params.taskId));
    if (task === undefined) throw new ProtocolError(-32602, "Task not found");
    if (method === "tasks/cancel") {
      await this.#end(task, "cancelled");
      return this.#isModern ? {} : this.#shown(task);
    }
    if (method === "tasks/result") {
      await task.over.promise;
      const _meta = { [`${META}related-task`]: { taskId: task.taskId } };
      return { ...resultOf(task), _meta };
    }
    return this.#shown(task);
  }

  async #begin({ task: wanted, arguments: args }: Json): Promise<Json> {
    if (!this.#isModern && wanted === undefined) {
      throw new ProtocolError(-32601, "It runs as a task alone");
    }
    const taskId = `task-${this.#tasks.size + 1}`;
    const task: Task = { taskId, status: "working", over: Promise.withResolvers<void>() };
    this.#tasks.set(taskId, task);
    if ((args as Json | undefined)?.done === true) await this.#end(task, "completed");
    const shown = this.#shown(task, false);
    return this.#isModern ? { resultType: "task", ...shown } : { task: shown };
  }

  async #end(task: Task, status: string): Promise<void> {
    task.status = status;
    task.over.resolve();
    await this.tell(task.taskId);
  }

  #shown(task: Task, isWhole = true): Json {
    const { taskId, status } = task;
    const dates = { createdAt: AT, lastUpdatedAt: AT };
    if (!this.#isModern) return { taskId, status, ...dates, ttl: 60_000, pollInterval: 5 };
    const more = isWhole && status === "completed" ? { result: resultOf(task) } : {};
    return { taskId, status, ...dates, ttlMs: 60_000, pollIntervalMs: 5, ...more };
  }

  /** Answers subscriptions to tasks, which the SDK does not support. */
  async #listen(request: Request): Promise<Response | undefined> {
    const { method, id, params } = await request.json().catch(() => ({})) as Json;
    const named = request.headers.get("mcp-name");
    if (typeof method === "string") this.named.set(method, named);
    const { notifications, _meta } = (params ?? {}) as { notifications?: Json; _meta?: Json };
    if (method !== "subscriptions/listen" || !Array.isArray(notifications?.taskIds)) return;
    const { extensions = {} } = _meta?.[`${META}clientCapabilities`] as { extensions?: Json };
    if (!(TASKS in extensions)) {
      const error = { code: -32021, message: "Missing required client capability" };
      return Response.json({ jsonrpc: "2.0", id, error }, { status: 400 });
    }
    this.ledger.push(`listen ${notifications.taskIds}`);
    let own: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        own = controller;
        this.#listens.set(controller, { id });
        const acknowledged = "notifications/subscriptions/acknowledged";
        const meta = { _meta: { [`${META}subscriptionId`]: id } };
        controller.enqueue(event({ method: acknowledged, params: { notifications, ...meta } }));
      },
      cancel: () => {
        if (own !== undefined) this.#listens.delete(own);
        this.ledger.push(`left ${notifications.taskIds}`);
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }

  async #older(request: Request): Promise<Response> {
    const known = request.headers.get("mcp-session-id");
    if (known !== null) {
      const transport = this.#sessions.get(known);
      if (transport !== undefined) return await transport.handleRequest(request);
      const error = { code: -32001, message: "Session not found" };
      return Response.json({ jsonrpc: "2.0", error, id: null }, { status: 404 });
    }
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void this.#sessions.set(id, transport),
    });
    await this.#make().connect(transport);
    return await transport.handleRequest(request);
  }
}

/** Refuses a request that does not declare support for tasks. */
function assertTakesTasks({ mcpReq: { envelope } }: ServerContext): void {
  const able = (envelope as Json | undefined)?.[`${META}clientCapabilities`] as Json | undefined;
  if (TASKS in (able?.extensions as Json | undefined ?? {})) return;
  throw new ProtocolError(-32021, "Missing required client capability", {
    requiredCapabilities: { extensions: { [TASKS]: {} } },
  });
}

function resultOf({ status }: Task): Json {
  return { content: [{ type: "text", text: status }], structuredContent: { status }, "x/kept": 1 };
}

function event(message: Json): Uint8Array {
  return new TextEncoder().encode(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
}
