/**
 * The addresses below `/api/`: each reads its parameters and calls an action.
 *
 * @module
 */

import type { AnswerRequest, CallRow, Done, Reply, ServerAction } from "../control/api.ts";
import type { ActionResult } from "../control/process_clients.ts";
import { type JsonObject, listOf, objectOf, textOf } from "../core/json.ts";
import type { PageActions, ToolDecision } from "./actions.ts";
import type { CallFilter } from "./calls.ts";
import { PageFailure } from "./failure.ts";
import type { PageData, PageEventListener } from "./page_data.ts";
import type { PageApi } from "./server.ts";

/** Answers a `GET`. */
type Read = (query: Query) => Promise<unknown>;
/** Answers a `POST`. */
type Act = (body: Body, signal: AbortSignal) => Promise<unknown>;

/** The length and the number of the intervals of the charts: 60 minutes. */
const [INTERVAL_MS, INTERVALS] = [60_000, 60];
const REPLIES: readonly Reply[] = [
  "once",
  "session",
  "always",
  "always-reads",
  "always-all",
  "no",
  "never",
];
const SERVER_ACTIONS: readonly ServerAction["action"][] = [
  "restart",
  "stop",
  "disable",
  "enable",
  "sign-in",
  "remove",
];
const DECISIONS: readonly ToolDecision["decision"][] = ["allow", "ask", "deny"];
const STATES: readonly CallRow["state"][] = [
  "running",
  "asking",
  "done",
  "failed",
  "refused",
  "cancelled",
];

/** Answers requests with the actions and the data of the page. */
export class PageRoutes implements PageApi {
  readonly #actions: PageActions;
  readonly #data: PageData;
  readonly #reads: Readonly<Record<string, Read>>;
  readonly #acts: Readonly<Record<string, Act>>;

  /** Creates the routes for these actions and this data. */
  constructor(actions: PageActions, data: PageData) {
    this.#actions = actions;
    this.#data = data;
    this.#reads = this.#readTable();
    this.#acts = this.#actTable();
  }

  read(name: string, query: URLSearchParams): Promise<unknown> | undefined {
    const read = Object.hasOwn(this.#reads, name) ? this.#reads[name] : undefined;
    return read?.(new Query(query));
  }

  act(name: string, body: JsonObject, signal: AbortSignal): Promise<unknown> | undefined {
    const act = Object.hasOwn(this.#acts, name) ? this.#acts[name] : undefined;
    return act && this.#withRefresh(act(new Body(body), signal));
  }

  follow(listener: PageEventListener): Promise<Disposable> {
    return this.#data.follow(listener);
  }

  record(event: string, about: JsonObject): void {
    this.#actions.record(event, about);
  }

  /** Awaits an action, and then reads the changed data. */
  async #withRefresh(work: Promise<unknown>): Promise<unknown> {
    try {
      return await work;
    } finally {
      this.#data.refresh();
    }
  }

  #readTable(): Readonly<Record<string, Read>> {
    const [actions, data] = [this.#actions, this.#data];
    return {
      state: () => data.state(),
      search: (query) => actions.search(query.text("workspace"), query.text("query")),
      tools: (query) => actions.tools(query.text("workspace"), query.optional("server")),
      tool: (query) => actions.tool(query.text("workspace"), query.text("id")),
      calls: async (query) => {
        await data.calls.read();
        return data.calls.list(parseFilter(query));
      },
      call: async (query) => {
        await data.calls.read();
        const story = await data.calls.story(query.text("id"));
        if (story !== undefined) return story;
        throw new PageFailure(404, "NOT_FOUND", { message: "The journal has no such call" });
      },
      context: (query) => actions.context(query.text("workspace")),
      metrics: async (query) => {
        await data.calls.read();
        const workspace = query.optional("workspace");
        const intervals = { now: Date.now(), intervalMs: INTERVAL_MS, count: INTERVALS };
        return data.calls.series({ ...intervals, ...workspace !== undefined && { workspace } });
      },
      rules: (query) => actions.rules(query.text("workspace")),
      settings: (query) => actions.settings(query.text("workspace")),
      clients: (query) => actions.clients(query.text("workspace")),
    };
  }

  #actTable(): Readonly<Record<string, Act>> {
    const actions = this.#actions;
    return {
      answer: (body) => this.#answer(body),
      server: (body) => this.#server(body),
      "add/plan": (body) =>
        actions.planAdd({ ...body.texts("workspace", "source"), ...body.optional("name") }),
      "import/plan": (body) => actions.planImport(body.texts("workspace", "client")),
      "plan/apply": (body) => actions.apply({ ...body.texts("plan"), tools: body.decisions() }),
      pause: (body) => actions.pause(body.text("workspace"), true),
      resume: (body) => actions.pause(body.text("workspace"), false),
      "rules/remove": (body) =>
        actions.removeRule({
          ...body.texts("workspace", "rule"),
          ...body.optional("effect", "word"),
        }),
      call: (body, signal) =>
        actions.call({
          ...body.texts("workspace", "tool"),
          arguments: objectOf(body.value("arguments")),
          signal,
        }),
      cancel: async (body) =>
        doneOf(
          await this.#data.processes.cancel(body.text("process"), body.text("call")),
          "The call was cancelled",
        ),
    };
  }

  async #answer(body: Body): Promise<unknown> {
    const request: AnswerRequest = {
      ...body.texts("id", "workspace"),
      ...body.optional("process", "word"),
      where: body.oneOf("where", ["home", "client"]),
      reply: body.oneOf("reply", REPLIES),
    };
    if (request.where === "home") return await this.#actions.answer(request);
    const { id: question, reply } = request;
    const result = await this.#data.processes.answer(body.text("process"), { question, reply });
    return doneOf(result, "Answered. The call goes on in its client");
  }

  async #server(body: Body): Promise<unknown> {
    const action: ServerAction = {
      ...body.texts("workspace", "name"),
      ...body.optional("process", "word"),
      action: body.oneOf("action", SERVER_ACTIONS),
    };
    const { workspace, name, action: kind } = action;
    if (kind !== "restart" && kind !== "stop") return await this.#actions.server(action);
    const processId = textOf(body.value("process"));
    const processes = this.#data.processes.states.filter((one) =>
      processId === "" ? one.workspace === workspace : one.id === processId
    );
    if (processes.length === 0) return { done: false, text: "No PML runs in this workspace" };
    const results = await Promise.all(
      processes.map(({ id }) => this.#data.processes.server(id, { name, action: kind })),
    );
    const isDone = results.some(({ done }) => done);
    const [reason] = results.flatMap((one) => one.reason ?? []);
    const text = kind === "stop" ? `${name} was stopped` : `${name} was started again`;
    return doneOf({ done: isDone, ...reason !== undefined && { reason } }, text);
  }
}

/** Returns the result of an action in a process, with `text` if it succeeded. */
function doneOf({ done, reason }: ActionResult, text: string): Done {
  return { done, text: done ? text : reason ?? "Nothing was changed" };
}

/** The parameters of a request that reads. */
class Query {
  readonly #query: URLSearchParams;

  constructor(query: URLSearchParams) {
    this.#query = query;
  }

  optional(name: string): string | undefined {
    return this.#query.get(name) || undefined;
  }

  text(name: string): string {
    return this.optional(name) ?? throwMissing(name);
  }
}

/** The members of a request that acts. */
class Body {
  readonly #body: JsonObject;

  constructor(body: JsonObject) {
    this.#body = body;
  }

  value(name: string): unknown {
    return Object.hasOwn(this.#body, name) ? this.#body[name] : undefined;
  }

  text(name: string): string {
    return textOf(this.value(name)) || throwMissing(name);
  }

  texts<N extends string>(...names: readonly N[]): Record<N, string> {
    return Object.fromEntries(names.map((name) => [name, this.text(name)])) as Record<N, string>;
  }

  optional<N extends string>(...names: readonly N[]): Partial<Record<N, string>> {
    const all = names.map((name) => [name, textOf(this.value(name))]);
    const nonEmpty = Object.fromEntries(all.filter(([, value]) => value !== ""));
    return nonEmpty as Partial<Record<N, string>>; // `fromEntries()` loses the names
  }

  oneOf<T extends string>(name: string, values: readonly T[]): T {
    return values.find((one) => one === this.value(name)) ?? throwMissing(name);
  }

  decisions(): readonly ToolDecision[] {
    return listOf(this.value("tools")).map((one) => {
      const row = new Body(objectOf(one));
      return { ...row.texts("server", "tool"), decision: row.oneOf("decision", DECISIONS) };
    });
  }
}

function parseFilter(query: Query): CallFilter {
  const [before, limit] = [Number(query.optional("before")), Number(query.optional("limit"))];
  const [workspace, server, text] = ["workspace", "server", "text"]
    .map((name) => query.optional(name));
  const state = STATES.find((one) => one === query.optional("state"));
  return {
    ...workspace !== undefined && { workspace },
    ...server !== undefined && { server },
    ...text !== undefined && { text },
    ...state !== undefined && { state },
    ...before > 0 && { before },
    ...limit >= 1 && { limit: Math.floor(limit) },
  };
}

function throwMissing(name: string): never {
  const message = `The request lacks a valid ${JSON.stringify(name)}`;
  throw new PageFailure(400, "BAD_REQUEST", { message });
}
