/**
 * The tasks that clients began. Clients see ids of PML, so that ids of two servers never mix, and
 * no client can request the task of another client.
 *
 * @module
 */

import type { Call, Outcome, TaskRequest } from "../protocol/call.ts";
import { TASKS_EXTENSION } from "../protocol/extension_methods.ts";
import { defined, isObject, type Json, type JsonObject, objectOf } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { ERROR, RpcError } from "../protocol/errors.ts";
import type { Client } from "./_clients.ts";
import { partOf } from "./_pages.ts";
import { invalidParams, requiredText } from "./_params.ts";
import type { ForwardedRequest, ForwardedRequests } from "./_forwarded_requests.ts";
import type { TaskPlaces } from "./_unknown_methods.ts";
import type { ClientRequest } from "./interaction/client_request.ts";
import type { Interaction } from "./interaction/interaction.ts";
import type { GatewayHost } from "./options.ts";

const RELATED = "io.modelcontextprotocol/related-task";
/** The maximum number of tasks that are kept. The oldest are dropped. */
const MOST = 10_000;
const OVER = ["completed", "failed", "cancelled"];
/** The maximum number of open requests of one task. */
const ASKED_MAX = 64;
/** The maximum number of tasks that are followed at once: each may need a connection. */
const FOLLOWED_MAX = 100;

/** The parts of the gateway's host that tasks need. */
type TaskHost = Pick<GatewayHost, "judge" | "unfollow" | "log">;

interface ServerTask {
  readonly tool: ToolId;
  /** Its id at the server. */
  readonly serverTaskId: string;
  readonly client: Client | undefined;
  isOver: boolean;
  /** The open requests of the task, as the client sees them. */
  readonly requests: Map<string, JsonObject>;
}

/** Keeps the tasks of all clients. */
export class Tasks implements TaskPlaces {
  readonly #host: TaskHost;
  readonly #interaction: Pick<Interaction, "prefix" | "inputAlone">;
  readonly #requests: ForwardedRequests;
  readonly #all = new Map<string, ServerTask>();
  /** Their ids by the servers' own. */
  readonly #ids = new Map<string, string>();
  /** The client of a call that may begin a task. */
  readonly #clients = new WeakMap<TaskRequest, Client>();
  /** The followed tasks, with promises that resolve when their servers have accepted. */
  readonly #followed = new Map<string, Promise<boolean>>();

  /** Takes the collaborators. There is no task yet. */
  constructor(
    host: TaskHost,
    interaction: Pick<Interaction, "prefix" | "inputAlone">,
    requests: ForwardedRequests,
  ) {
    this.#host = host;
    this.#interaction = interaction;
    this.#requests = requests;
  }

  /** Returns the member `task` of a call for its client. */
  wantedBy(request: ClientRequest): Pick<Call, "task"> {
    const { client, params } = request;
    if (!(client.isStateless ? takes(request) : isObject(params.task))) return {};
    const task: TaskRequest = client.isStateless
      ? { isStateless: true }
      : { isStateless: false, options: objectOf(params.task) };
    this.#clients.set(task, client);
    return { task };
  }

  /** Returns whether a client of the stateless revision began a task of this id. */
  has(own: string): boolean {
    // guard: http-own-tasks
    return this.#all.get(own)?.client?.isStateless === true;
  }

  /** Returns the server of a task and its id there; undefined for a task of another party. */
  placeOf(
    own: string,
    client: Pick<Client, "party">,
  ): { readonly server: string; readonly id: string } | undefined {
    const task = this.#all.get(own);
    // guard: task-places
    if (task === undefined || !isOf(task, { client })) return undefined;
    return { server: splitToolId(task.tool).server, id: task.serverTaskId };
  }

  /** Follows these tasks at their servers, and no others. */
  follow(ids: readonly string[]): void {
    for (const own of this.#followed.keys()) if (!ids.includes(own)) this.#unfollow(own);
    for (const own of ids) {
      const task = this.#all.get(own);
      if (task === undefined || !this.has(own) || task.isOver || this.#followed.has(own)) {
        continue;
      }
      if (this.#followed.size >= FOLLOWED_MAX) return;
      const { server, tool } = splitToolId(task.tool);
      const params = { taskId: task.serverTaskId };
      const answer = this.#requests.askAlone({
        ruleName: tool,
        server,
        method: "tasks/listen",
        params,
      });
      this.#followed.set(
        own,
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
    const own = `${this.#interaction.prefix}${crypto.randomUUID()}`;
    const serverTaskId = String(state.taskId);
    const client = call.task && this.#clients.get(call.task);
    const serverTask = {
      tool: call.id,
      serverTaskId,
      requests: new Map(),
      client,
      isOver: false,
    };
    this.#all.set(own, serverTask);
    this.#ids.set(keyOf(serverTask), own);
    const [[first, oldest] = []] = this.#all;
    if (this.#all.size > MOST && first !== undefined && oldest !== undefined) {
      this.#unfollow(first);
      this.#all.delete(first);
      this.#ids.delete(keyOf(oldest));
    }
    const task = { ...state, taskId: own };
    const taskResult = isStateless ? { ...task, resultType: "task" } : { ...result, task };
    // It is not the result of a tool, and has no content.
    return { ...outcome, result: taskResult as unknown as typeof outcome.result };
  }

  /** Answers a request about a task. */
  async serve(request: ClientRequest): Promise<JsonObject> {
    // guard: tasks-declared
    if (request.client.isStateless && !takes(request)) {
      throw new RpcError(ERROR.missingClientCapability, "The client did not declare tasks", {
        requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } },
      });
    }
    const { context: { method, inputResponses }, params } = request;
    if (method === "tasks/list") return await this.#list(request);
    const own = requiredText(params, "taskId");
    const task = this.#all.get(own);
    if (task === undefined || !isOf(task, request)) {
      throw invalidParams("no task of this id is known");
    }
    // Only answers to open requests of the task are passed on.
    const responses = Object.entries(inputResponses ?? {}).filter(([key]) =>
      task.requests.has(key)
    );
    const answers = method === "tasks/update" && { inputResponses: Object.fromEntries(responses) };
    const all = { ...params, ...answers } as JsonObject; // parsed JSON
    const result = await this.#ask(request, { own, task, method, params: all });
    const inputRequests = result.inputRequests === undefined
      ? undefined
      : await this.#requestsOf(task, { request, inputRequests: objectOf(result.inputRequests) });
    return { ...result, ...defined({ inputRequests }) };
  }

  /**
   * Returns the notification of a server's task with PML's id, and its client; undefined for a task
   * that is unknown or denied now. Its requests are checked when the client gets the state.
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
    this.#stands(taskId, state.status);
    const asks = client.isStateless && inputRequests !== undefined && { inputRequests: {} };
    return { client, params: { ...state, ...asks, taskId } };
  }

  /** Records the state of a task. A task that has ended is no longer followed. */
  #stands(own: string, status: Json | undefined): void {
    const task = this.#all.get(own);
    if (task === undefined || !OVER.includes(status as string)) return;
    task.isOver = true;
    this.#unfollow(own);
  }

  #unfollow(own: string): void {
    const followed = this.#followed.get(own);
    const task = this.#all.get(own);
    this.#followed.delete(own);
    if (task === undefined) return;
    const { server } = splitToolId(task.tool);
    followed?.then((isSo) =>
      isSo && this.#host.unfollow({ server, uri: task.serverTaskId, isTask: true })
    );
  }

  async #ask(
    request: ClientRequest,
    { own, task, method, params }: Omit<ForwardedRequest, "ruleName" | "server"> & {
      readonly own: string;
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
    const { client, context: { cancellation, idText } } = request;
    const requests = this.#requests;
    // A client without a session cannot be asked for input meanwhile.
    const result = client.isStateless
      ? await requests.askAlone(forwarded, {
        cancellation,
        client: { requestId: idText },
        answer: undefined,
      })
      : await requests.ask(request, forwarded);
    if (method === "tasks/get") this.#stands(own, result.status);
    const { _meta, ...rest } = result;
    const meta = objectOf(_meta);
    const related = RELATED in meta ? { ...meta, [RELATED]: { taskId: own } } : _meta;
    return { ...rest, ..."taskId" in rest && { taskId: own }, ...defined({ _meta: related }) };
  }

  /** Requests the states of tasks. Leaves out tasks that no longer exist at the server. */
  async #list(request: ClientRequest): Promise<JsonObject> {
    const all = [...this.#all].filter(([, task]) => isOf(task, request));
    const { items, more } = partOf(all, request.params, ([own]) => own);
    const states = items.map(([own, task]) =>
      this.#ask(request, { own, task, method: "tasks/get", params: {} })
        .then((state) => [state], () => [])
    );
    return { tasks: (await Promise.all(states)).flat(), ...more };
  }

  /**
   * Checks and rewords the requests of a task like other requests of servers. Denied ones are left
   * out.
   */
  async #requestsOf(
    task: ServerTask,
    { request, inputRequests }: {
      readonly request: ClientRequest;
      readonly inputRequests: JsonObject;
    },
  ): Promise<JsonObject> {
    const { requests: questions } = task;
    for (const key of questions.keys()) if (!(key in inputRequests)) questions.delete(key);
    for (const [key, one] of Object.entries(inputRequests)) {
      if (!questions.has(key) && questions.size < ASKED_MAX) {
        await this.#put(one, { key, task, request });
      }
    }
    return Object.fromEntries(questions);
  }

  async #put(
    one: Json,
    { key, task: { tool, requests: questions }, request }: {
      readonly key: string;
      readonly task: ServerTask;
      readonly request: ClientRequest;
    },
  ): Promise<void> {
    const { method, params } = objectOf(one);
    if (method !== "elicitation/create" && method !== "sampling/createMessage") return;
    const { server } = splitToolId(tool);
    const { signal } = request.context.cancellation;
    const forward = this.#interaction.inputAlone({
      capabilities: request.capabilities,
      requestInput: ({ method, params }) => {
        questions.set(key, { method, params });
        return Promise.resolve({});
      },
    });
    // Denied requests are left out.
    await forward({ server, method, params: objectOf(params), signal }).catch(() => {});
  }
}

/** Returns whether a client of the stateless revision declares tasks. */
export function takes(
  { capabilities: { extensions } }: Pick<ClientRequest, "capabilities">,
): boolean {
  return TASKS_EXTENSION in objectOf(extensions);
}

/** Returns whether the party of a request began a task. */
function isOf(
  { client }: ServerTask,
  request: { readonly client: Pick<Client, "party"> },
): boolean {
  return client?.party === request.client.party;
}

function keyOf({ tool, serverTaskId }: ServerTask): string {
  return `${splitToolId(tool).server} ${serverTaskId}`;
}
