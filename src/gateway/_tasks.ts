/**
 * The tasks that clients began. Clients get PML's own ids for them, so that the ids of two servers
 * are never equal, and PML can refuse requests for the tasks of other owners.
 *
 * @module
 */

import type { Call, Outcome, TaskRequest } from "../protocol/call.ts";
import { TASKS_EXTENSION } from "../protocol/extension_methods.ts";
import { isObject, type Json, type JsonObject, objectOf, withoutUndefined } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { ERROR, RpcError } from "../protocol/errors.ts";
import type { Client } from "./_clients.ts";
import { takePage } from "./_pages.ts";
import { invalidParams, requiredText } from "./_params.ts";
import type { ForwardedRequest, ForwardedRequests } from "./_forwarded_requests.ts";
import type { TaskPlaces } from "./_unknown_methods.ts";
import type { ClientRequest } from "./interaction/request_client.ts";
import type { Interaction } from "./interaction/interaction.ts";
import type { GatewayHost } from "./options.ts";

const RELATED_TASK_KEY = "io.modelcontextprotocol/related-task";
/** The maximum number of tasks. The oldest task is dropped first. */
const TASKS_MAX = 10_000;
const FINAL_STATES = ["completed", "failed", "cancelled"];
/** The maximum number of open input requests of one task. */
const REQUESTS_MAX = 64;
/** The maximum number of tasks that PML follows at once: each may need a connection. */
const FOLLOWED_MAX = 100;

/** The parts of the gateway's host that tasks need. */
type TaskHost = Pick<GatewayHost, "judge" | "unfollow" | "log">;

/** A task that runs at a server. */
interface ServerTask {
  readonly tool: ToolId;
  /** The id of the task at its server. */
  readonly serverTaskId: string;
  readonly client: Client | undefined;
  hasEnded: boolean;
  /** The input requests of the task without an answer, as the client sees them. */
  readonly requests: Map<string, JsonObject>;
}

/** Keeps the tasks of all clients. */
export class Tasks implements TaskPlaces {
  readonly #host: TaskHost;
  readonly #interaction: Pick<Interaction, "prefix" | "serverInputFrom">;
  readonly #requests: ForwardedRequests;
  readonly #all = new Map<string, ServerTask>();
  /** PML's ids of the tasks, by server and the server's own id. */
  readonly #ids = new Map<string, string>();
  /** The client of a call that may begin a task. */
  readonly #clients = new WeakMap<TaskRequest, Client>();
  /** For each followed task, by PML's id: whether its server accepted the request to follow it. */
  readonly #followed = new Map<string, Promise<boolean>>();

  /** Takes the collaborators. There is no task yet. */
  constructor(
    host: TaskHost,
    interaction: Pick<Interaction, "prefix" | "serverInputFrom">,
    requests: ForwardedRequests,
  ) {
    this.#host = host;
    this.#interaction = interaction;
    this.#requests = requests;
  }

  /** Returns the member `task` of a call, if the client of the request wants a task. */
  taskOptions(request: ClientRequest): Pick<Call, "task"> {
    const { client, params } = request;
    if (!(client.isStateless ? declaresTasks(request) : isObject(params.task))) return {};
    const task: TaskRequest = client.isStateless
      ? { isStateless: true }
      : { isStateless: false, options: objectOf(params.task) };
    this.#clients.set(task, client);
    return { task };
  }

  /** Returns whether a client of the stateless revision began a task of this id. */
  has(taskId: string): boolean {
    // guard: http-own-tasks
    return this.#all.get(taskId)?.client?.isStateless === true;
  }

  /** Returns the server of a task and the task's id there; undefined for another owner's task. */
  placeOf(
    taskId: string,
    client: Pick<Client, "owner">,
  ): { readonly server: string; readonly id: string } | undefined {
    const task = this.#all.get(taskId);
    // guard: task-places
    if (task === undefined || !isTaskOfOwner(task, { client })) return undefined;
    return { server: splitToolId(task.tool).server, id: task.serverTaskId };
  }

  /** Sets the tasks that are followed at their servers. */
  follow(ids: readonly string[]): void {
    for (const taskId of this.#followed.keys()) if (!ids.includes(taskId)) this.#unfollow(taskId);
    for (const taskId of ids) {
      const task = this.#all.get(taskId);
      if (task === undefined || !this.has(taskId) || task.hasEnded || this.#followed.has(taskId)) {
        continue;
      }
      if (this.#followed.size >= FOLLOWED_MAX) return;
      const { server, tool } = splitToolId(task.tool);
      const params = { taskId: task.serverTaskId };
      const answer = this.#requests.sendWithoutInput({
        ruleName: tool,
        server,
        method: "tasks/listen",
        params,
      });
      this.#followed.set(
        taskId,
        answer.then(() => true, ({ message }) => {
          this.#host.log.warn(message);
          return false;
        }),
      );
    }
  }

  /** Records a task that a call began. Returns the outcome with PML's id of the task. */
  begin(call: Call, outcome: Extract<Outcome, { readonly kind: "result" }>): Outcome {
    const { content: _, ...result } = outcome.result;
    const { isStateless } = call.task ?? {};
    const state = objectOf(isStateless ? result : result.task);
    const taskId = `${this.#interaction.prefix}${crypto.randomUUID()}`;
    const serverTaskId = String(state.taskId);
    const client = call.task && this.#clients.get(call.task);
    const serverTask = {
      tool: call.id,
      serverTaskId,
      requests: new Map(),
      client,
      hasEnded: false,
    };
    this.#all.set(taskId, serverTask);
    this.#ids.set(serverKeyOf(serverTask), taskId);
    const [[oldestId, oldest] = []] = this.#all;
    if (this.#all.size > TASKS_MAX && oldestId !== undefined && oldest !== undefined) {
      this.#unfollow(oldestId);
      this.#all.delete(oldestId);
      this.#ids.delete(serverKeyOf(oldest));
    }
    const task = { ...state, taskId };
    const taskResult = isStateless ? { ...task, resultType: "task" } : { ...result, task };
    // This is not yet the result of the tool, so it has no content.
    return { ...outcome, result: taskResult as unknown as typeof outcome.result };
  }

  /** Answers a request about a task. */
  async serve(request: ClientRequest): Promise<JsonObject> {
    // guard: tasks-declared
    if (request.client.isStateless && !declaresTasks(request)) {
      throw new RpcError(ERROR.missingClientCapability, "The client did not declare tasks", {
        requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } },
      });
    }
    const { context: { method, inputResponses }, params } = request;
    if (method === "tasks/list") return await this.#list(request);
    const taskId = requiredText(params, "taskId");
    const task = this.#all.get(taskId);
    if (task === undefined || !isTaskOfOwner(task, request)) {
      throw invalidParams("no task of this id is known");
    }
    // PML passes on only the answers to open requests of the task.
    const responses = Object.entries(inputResponses ?? {}).filter(([key]) =>
      task.requests.has(key)
    );
    const answers = method === "tasks/update" && { inputResponses: Object.fromEntries(responses) };
    const all = { ...params, ...answers } as JsonObject; // parsed JSON
    const result = await this.#forward(request, { taskId, task, method, params: all });
    const inputRequests = result.inputRequests === undefined
      ? undefined
      : await this.#updateRequests(task, {
        request,
        inputRequests: objectOf(result.inputRequests),
      });
    return { ...result, ...withoutUndefined({ inputRequests }) };
  }

  /**
   * Returns a server's notification about a task with PML's id, and the client of the task. Returns
   * undefined for a task that is unknown, or that the rules now deny. Leaves out input requests,
   * which are checked when the client gets the state.
   */
  update(
    server: string,
    { inputRequests, _meta: _, ...state }: JsonObject,
  ): { readonly client: Client; readonly params: JsonObject } | undefined {
    const taskId = this.#ids.get(`${server} ${state.taskId}`) ?? "none";
    const { client, tool } = this.#all.get(taskId) ?? {};
    // guard: task-denied
    if (client === undefined || tool === undefined || this.#host.judge(tool).kind === "deny") {
      return undefined;
    }
    this.#recordState(taskId, state.status);
    // A client without a session learns only that there are requests. `tasks/get` returns them.
    const inputMember = client.isStateless && inputRequests !== undefined && { inputRequests: {} };
    return { client, params: { ...state, ...inputMember, taskId } };
  }

  /** Records the state of a task. Stops following a task that has ended. */
  #recordState(taskId: string, status: Json | undefined): void {
    const task = this.#all.get(taskId);
    if (task === undefined || !FINAL_STATES.includes(status as string)) return;
    task.hasEnded = true;
    this.#unfollow(taskId);
  }

  #unfollow(taskId: string): void {
    const accepting = this.#followed.get(taskId);
    const task = this.#all.get(taskId);
    this.#followed.delete(taskId);
    if (task === undefined) return;
    const { server } = splitToolId(task.tool);
    accepting?.then((isAccepted) =>
      isAccepted && this.#host.unfollow({ server, uri: task.serverTaskId, isTask: true })
    );
  }

  async #forward(
    request: ClientRequest,
    { taskId, task, method, params }: Omit<ForwardedRequest, "ruleName" | "server"> & {
      readonly taskId: string;
      readonly task: ServerTask;
    },
  ): Promise<JsonObject> {
    const { server, tool } = splitToolId(task.tool);
    const forwarded = {
      ruleName: tool,
      server,
      method,
      params: { ...params, taskId: task.serverTaskId },
    };
    const { client, context: { cancellation, idText, trace } } = request;
    const requests = this.#requests;
    // Until the request ends, PML cannot ask a client without a session for input.
    const result = client.isStateless
      ? await requests.sendWithoutInput(forwarded, {
        cancellation,
        client: { requestId: idText, trace },
        answer: undefined,
      })
      : await requests.send(request, forwarded);
    if (method === "tasks/get") this.#recordState(taskId, result.status);
    const { _meta, ...rest } = result;
    const meta = objectOf(_meta);
    const related = RELATED_TASK_KEY in meta ? { ...meta, [RELATED_TASK_KEY]: { taskId } } : _meta;
    return {
      ...rest,
      ..."taskId" in rest && { taskId },
      ...withoutUndefined({ _meta: related }),
    };
  }

  /** Requests the states of tasks. Leaves out tasks that no longer exist at the server. */
  async #list(request: ClientRequest): Promise<JsonObject> {
    const all = [...this.#all].filter(([, task]) => isTaskOfOwner(task, request));
    const { items, cursorMember } = takePage(all, request.params, ([taskId]) => taskId);
    const states = items.map(([taskId, task]) =>
      this.#forward(request, { taskId, task, method: "tasks/get", params: {} })
        .then((state) => [state], () => [])
    );
    return { tasks: (await Promise.all(states)).flat(), ...cursorMember };
  }

  /**
   * Checks new input requests of a task, and changes their texts, like other requests of servers.
   * Leaves out denied requests.
   */
  async #updateRequests(
    task: ServerTask,
    { request, inputRequests }: {
      readonly request: ClientRequest;
      readonly inputRequests: JsonObject;
    },
  ): Promise<JsonObject> {
    const { requests: questions } = task;
    for (const key of questions.keys()) if (!(key in inputRequests)) questions.delete(key);
    for (const [key, inputRequest] of Object.entries(inputRequests)) {
      if (!questions.has(key) && questions.size < REQUESTS_MAX) {
        await this.#addRequest(inputRequest, { key, task, request });
      }
    }
    return Object.fromEntries(questions);
  }

  async #addRequest(
    inputRequest: Json,
    { key, task: { tool, requests: questions }, request }: {
      readonly key: string;
      readonly task: ServerTask;
      readonly request: ClientRequest;
    },
  ): Promise<void> {
    const { method, params } = objectOf(inputRequest);
    if (method !== "elicitation/create" && method !== "sampling/createMessage") return;
    const { server } = splitToolId(tool);
    const { signal } = request.context.cancellation;
    const forward = this.#interaction.serverInputFrom({
      capabilities: request.capabilities,
      requestInput: ({ method, params }) => {
        questions.set(key, { method, params });
        return Promise.resolve({});
      },
    });
    // An error means that the request is denied, so the client does not get it.
    await forward({ server, method, params: objectOf(params), signal }).catch(() => {});
  }
}

/** Returns whether a request of the stateless revision declares tasks. */
export function declaresTasks(
  { capabilities: { extensions } }: Pick<ClientRequest, "capabilities">,
): boolean {
  return TASKS_EXTENSION in objectOf(extensions);
}

/** Returns whether the owner of a request began a task. */
function isTaskOfOwner(
  { client }: ServerTask,
  request: { readonly client: Pick<Client, "owner"> },
): boolean {
  return client?.owner === request.client.owner;
}

function serverKeyOf({ tool, serverTaskId }: ServerTask): string {
  return `${splitToolId(tool).server} ${serverTaskId}`;
}
