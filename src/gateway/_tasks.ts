/**
 * The tasks that clients began. Clients know them by ids of PML's own, so that those of two servers
 * never mix, and nobody asks a server for what another call began.
 *
 * @module
 */

import type { Server, ServerContext } from "@modelcontextprotocol/server";
import type { Call, CallTool, Outcome, Question } from "../core/call.ts";
import type { PmlError } from "../core/errors.ts";
import { defined, isObject, type Json, type JsonObject, objectOf } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import type { ClientRequest } from "./_exchange.ts";
import { invalid, text } from "./_params.ts";
import { ANY, relay } from "./asking.ts";

const TASKS = "io.modelcontextprotocol/tasks";
const RELATED = "io.modelcontextprotocol/related-task";
/** How many tasks are known: the oldest are forgotten. */
const MOST = 10_000;
/** How much one may ask at once. */
const ASKED_MAX = 64;

/** What the tasks need of the face. */
export interface TasksOptions {
  readonly callTool: CallTool;
  readonly leave: (question: Question) => Promise<PmlError>;
  /** Passes a request on to the server of a tool, for an older client, which can be asked meanwhile. */
  readonly ask: (request: ClientRequest, wanted: Wanted) => Promise<JsonObject>;
  /** The same for another one, which cannot. */
  readonly pass: (request: ClientRequest, wanted: Wanted) => Promise<JsonObject>;
}

/** What is asked of a server beside calls of its tools. */
export interface Wanted {
  /** Its door, or the tool whose task it is about. */
  readonly door: string;
  readonly server: string;
  readonly method: string;
  readonly params: JsonObject;
}

interface Begun {
  readonly tool: ToolId;
  /** Its id at the server. */
  readonly there: string;
  /** What it asks now, as it was told. */
  readonly asked: Map<string, JsonObject>;
}

/** What the SDK takes for the tasks of an older revision, unless it is told how to read it. */
const REUSED = ["tasks/get", "tasks/cancel"];

/** Has a server of the newest revision take requests about tasks. */
export function takeTasks(
  server: Server,
  serve: (params: unknown, context: ServerContext) => Promise<JsonObject>,
): void {
  for (const method of REUSED) server.setRequestHandler(method, { params: ANY }, serve);
}

/** Knows the tasks. */
export class Tasks {
  readonly #options: TasksOptions;
  readonly #all = new Map<string, Begun>();
  /** Their ids by the servers' own. */
  readonly #ids = new Map<string, string>();

  /** Knows none yet. */
  constructor(options: TasksOptions) {
    this.#options = options;
  }

  /** Gives what a call says of tasks for its client. */
  static wantedBy({ client, params, capabilities }: ClientRequest): Pick<Call, "task"> {
    if (client.isModern) {
      return TASKS in objectOf(capabilities.extensions) ? { task: { isModern: true } } : {};
    }
    return isObject(params.task)
      ? { task: { isModern: false, wanted: objectOf(params.task) } }
      : {};
  }

  /** Takes note of a task that a call began, and gives it an id of its own. */
  begun(call: Call, outcome: Extract<Outcome, { readonly kind: "result" }>): Outcome {
    const { content: _, ...result } = outcome.result;
    const { isModern } = call.task ?? {};
    const state = objectOf(isModern ? result : result.task);
    const own = crypto.randomUUID();
    const there = String(state.taskId);
    const begun = { tool: call.id, there, asked: new Map() };
    this.#all.set(own, begun);
    this.#ids.set(keyOf(begun), own);
    const [[first, oldest] = []] = this.#all;
    if (this.#all.size > MOST && first !== undefined && oldest !== undefined) {
      this.#all.delete(first);
      this.#ids.delete(keyOf(oldest));
    }
    const task = { ...state, taskId: own };
    const told = isModern ? { ...task, resultType: "task" } : { ...result, task };
    // It is no result of a tool, and has no content.
    return { ...outcome, result: told as unknown as typeof outcome.result };
  }

  /** Answers a request about a task. */
  async serve(request: ClientRequest): Promise<JsonObject> {
    const { context: { mcpReq: { method, inputResponses } }, params } = request;
    if (method === "tasks/list") return { tasks: await this.#list(request) };
    const own = text(params, "taskId");
    // The SDK takes them out; what was not asked is not answered either.
    const said = Object.entries(inputResponses ?? {})
      .filter(([key]) => this.#all.get(own)?.asked.has(key));
    const answers = method === "tasks/update" && { inputResponses: Object.fromEntries(said) };
    const all = { ...params, ...answers } as JsonObject; // parsed JSON
    const result = await this.#ask(request, { own, method, params: all });
    const inputRequests = result.inputRequests === undefined
      ? undefined
      : await this.#asked(own, { request, asked: objectOf(result.inputRequests) });
    return { ...result, ...defined({ inputRequests }) };
  }

  /** Gives the notification of a task of a server under its own id; nothing for one that is unknown. */
  told(server: string, { inputRequests: _, ...state }: JsonObject): JsonObject | undefined {
    const taskId = this.#ids.get(`${server} ${state.taskId}`);
    return taskId === undefined ? undefined : { ...state, taskId };
  }

  async #ask(
    request: ClientRequest,
    { own, method, params }: Omit<Wanted, "door" | "server"> & { readonly own: string },
  ): Promise<JsonObject> {
    const begun = this.#all.get(own);
    if (begun === undefined) throw invalid("no task of this id is known");
    const { server, tool } = splitToolId(begun.tool);
    const wanted = { door: tool, server, method, params: { ...params, taskId: begun.there } };
    const { ask, pass } = this.#options;
    const result = await (request.client.isModern ? pass : ask)(request, wanted);
    const { _meta, ...rest } = result;
    const meta = objectOf(_meta);
    const related = RELATED in meta ? { ...meta, [RELATED]: { taskId: own } } : _meta;
    return { ...rest, ..."taskId" in rest && { taskId: own }, ...defined({ _meta: related }) };
  }

  /** Asks the servers how their tasks stand; one that its server does not know any more is left out. */
  async #list(request: ClientRequest): Promise<JsonObject[]> {
    const states = [...this.#all.keys()].map((own) =>
      this.#ask(request, { own, method: "tasks/get", params: { taskId: own } })
        .then((state) => [state], () => [])
    );
    return (await Promise.all(states)).flat();
  }

  /** Has what a task asks judged and worded as any question of a server; what may not be asked is left out. */
  async #asked(
    own: string,
    { request, asked }: { readonly request: ClientRequest; readonly asked: JsonObject },
  ): Promise<JsonObject> {
    const begun = this.#all.get(own);
    if (begun === undefined) return {};
    const { asked: known } = begun;
    for (const key of known.keys()) if (!(key in asked)) known.delete(key);
    for (const [key, one] of Object.entries(asked)) {
      if (!known.has(key) && known.size < ASKED_MAX) await this.#put(one, { key, begun, request });
    }
    return Object.fromEntries(known);
  }

  async #put(
    one: Json,
    { key, begun: { tool, asked: known }, request }: {
      readonly key: string;
      readonly begun: Begun;
      readonly request: ClientRequest;
    },
  ): Promise<void> {
    const { method, params } = objectOf(one);
    if (method !== "elicitation/create" && method !== "sampling/createMessage") return;
    const { server } = splitToolId(tool);
    const { signal } = request.context.mcpReq;
    const put = relay({
      ...this.#options,
      capabilities: request.capabilities,
      asksClient: () => false,
      askClient: ({ method, params }) => {
        known.set(key, { method, params });
        return Promise.resolve({});
      },
    });
    // What may not be asked is left out.
    await put({ server, method, params: objectOf(params), signal }).catch(() => {});
  }
}

function keyOf({ tool, there }: Begun): string {
  return `${splitToolId(tool).server} ${there}`;
}
