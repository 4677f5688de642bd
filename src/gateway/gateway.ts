/**
 * The MCP face: one server for both protocol eras, its lists, and its calls.
 *
 * @module
 */

import {
  type McpServerFactory,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { Call, CallTool, Outcome, Question, Verdict } from "../core/call.ts";
import type { PmlError } from "../core/errors.ts";
import { defined, isObject, type JsonObject, objectOf } from "../core/json.ts";
import type { ListName } from "../core/lists.ts";
import { splitToolId, type ToolId, toolId } from "../core/tool_id.ts";
import type { Catalog } from "../search/catalog.ts";
import type { SearchAnswer, SearchOptions } from "../search/search.ts";
import type { Asked } from "../workflow/batch.ts";
import { type Client, Clients } from "./_clients.ts";
import { type ClientRequest, Exchange, type Working } from "./_exchange.ts";
import { Offers } from "./_offers.ts";
import { isOwn, readOwn } from "./_own_resources.ts";
import { countedAs, invalid, optionalText, passedOn, text } from "./_params.ts";
import { takeTasks, Tasks, type Wanted } from "./_tasks.ts";
import { wantedBy } from "./_wanted.ts";
import { capabilitiesOf } from "./asking.ts";
import { bareTools, exposed, type ExposureSettings } from "./exposure.ts";
import { helloOf } from "./hello.ts";
import { LEVELS } from "../core/levels.ts";
import type { MetaCalls } from "./meta_calls.ts";
import { isMetaTool } from "./meta_tools.ts";
import { failed, forOlderClient, refusal } from "./results.ts";
import type { Schemas } from "./schemas.ts";
import type { Servers } from "./servers.ts";

/** How long a client may keep a list: rules change under it. */
const FRESH = { ttlMs: 5_000, cacheScope: "private" };

/** What the configuration says of the face. */
export interface FaceSettings extends ExposureSettings {
  /** What clients are told as the name and the version of this server. */
  readonly name: string;
  readonly version: string;
  /** Whether questions may go to the client at all. */
  readonly asksClient: boolean;
  /** How long a question waits for its answer. */
  readonly approvalMs: number;
}

/** What the face needs of the house; functions are asked at each request. */
export interface GatewayOptions {
  readonly callTool: CallTool;
  readonly servers: Servers;
  readonly catalog: Catalog;
  readonly schemas: Schemas;
  readonly search: (
    query: string | readonly string[],
    options: SearchOptions,
  ) => Promise<SearchAnswer>;
  readonly judge: (id: ToolId, args?: JsonObject) => Verdict;
  readonly settings: () => FaceSettings;
  /** Tells the servers from which level on log messages are wanted. */
  readonly setLevel: (level: string) => void;
  /** Asks once for several calls, or gives what lets each pass. */
  readonly askForAll: (calls: readonly Call[]) => Promise<Asked>;
  /** Leaves a question for the terminal, for a client that cannot ask; gives the error to tell. */
  readonly leave: (question: Question) => Promise<PmlError>;
  /** Why nothing can be called at all, if so. */
  readonly problem: () => PmlError | undefined;
  /** Takes back a request to follow a resource, or a task. */
  readonly unfollow: (
    followed: { readonly server: string; readonly uri: string; readonly isTask?: boolean },
  ) => void;
  /** Told of a resource that cannot be followed for a client that nobody can tell. */
  readonly onLost: (error: Error) => void;
  readonly onError: (error: Error) => void;
  /** Gives what was counted, as plain JSON. */
  readonly metrics: () => object;
  /** Told of each list of tools and each answer of one, by the name of the meta-tool. */
  readonly onAnswer: (what: string, answer: JsonObject) => void;
}

/** For what no request waits for. */
const NOBODY: Working = { signal: new AbortController().signal, answer: undefined };

/** Serves MCP requests; every connection gets its own SDK server from the factory. */
export class Gateway implements Disposable {
  readonly #options: GatewayOptions;
  readonly #offers: Offers;
  readonly #exchange: Exchange;
  readonly #clients: Clients;
  readonly #tasks: Tasks;
  #meta: Promise<MetaCalls> | undefined;
  #listened: readonly string[] = [];

  /** Makes the face; nothing is asked of any server yet. */
  constructor(options: GatewayOptions) {
    const { servers, judge, settings, leave, onError, onLost } = options;
    const callTool: CallTool = async (call) => this.#linked(call, await options.callTool(call));
    this.#options = { ...options, callTool };
    this.#offers = new Offers({ servers, judge, prefix: () => settings().prefix });
    this.#clients = new Clients(onError);
    this.#tasks = new Tasks({
      callTool,
      leave,
      ask: (request, wanted) => this.#ask(request, wanted),
      pass: async ({ context: { mcpReq: { signal, id } } }, wanted) =>
        await this.#now(wanted, { signal, request: JSON.stringify(id), answer: undefined }),
      follow: (wanted) => this.#now(wanted, NOBODY),
      unfollow: (followed) => options.unfollow({ ...followed, isTask: true }),
      isDenied: (tool) => judge(tool).kind === "deny",
      onLost,
    });
    this.#exchange = new Exchange({
      callTool,
      leave,
      asksClient: () => settings().asksClient,
      approvalMs: () => settings().approvalMs,
    });
  }

  /** Makes the server of one connection, for either era. */
  readonly factory: McpServerFactory = ({ era }) => {
    const { onError, servers, settings } = this.#options;
    const isModern = era === "modern";
    const { serverInfo, ...hello } = helloOf(servers.states(), { ...settings(), isModern });
    const server = new Server(serverInfo, {
      ...hello,
      debouncedNotificationMethods: ["tools", "resources", "prompts"]
        .map((list) => `notifications/${list}/list_changed`),
    });
    const client = this.#clients.add(server, isModern);
    // It may have said so before it was here.
    if (client.isModern) this.#listen(client);
    server.onerror = onError;
    server.onclose = () => this.#leave(client);
    server.removeRequestHandler("logging/setLevel");
    // What is registered by its method loses the fields that the SDK does not know.
    const serve = (params: unknown, context: ServerContext) =>
      this.#serve({ client, context, params: objectOf(params) });
    server.fallbackRequestHandler = ({ params }, context) => serve(params, context);
    if (client.isModern) takeTasks(server, serve);
    return server;
  };

  /** Tells every client that a list is another one. */
  listChanged(list: ListName): void {
    this.#clients.listChanged(list);
  }

  /** Tells who follows it that a resource of a server has changed. */
  updated(server: string, uri: string): void {
    this.#clients.updated({ server, name: uri });
  }

  /** Tells the clients what a server logs. */
  logged(message: JsonObject): void {
    this.#clients.logged(message);
  }

  /** Tells the client that began it how a task of a server stands. */
  taskChanged(server: string, state: JsonObject): void {
    const told = this.#tasks.told(server, state);
    if (told !== undefined) this.#clients.taskChanged(told);
  }

  /** Tells whether a client began a task of this id. */
  isTask(id: string): boolean {
    return this.#tasks.has(id);
  }

  /** Tells the clients that a page of a server is done with. */
  elicited(params: JsonObject): void {
    this.#clients.elicited(params);
  }

  /** Has these resources and tasks followed, and no others, for a client that listens without a session. */
  follow({ uris, tasks }: {
    readonly uris: readonly string[];
    readonly tasks: readonly string[];
  }): void {
    this.#listened = uris;
    this.#tasks.follow(tasks);
    for (const client of this.#clients.modern) this.#listen(client);
  }

  /** Gives the tools that a client is shown, with what it says that it is about. */
  list(query?: string): Promise<readonly JsonObject[]> {
    return this.exposed({}, query);
  }

  /** Gives the tools that clients would be shown if these settings were in place of the present. */
  exposed(settings: Partial<ExposureSettings>, query?: string): Promise<readonly JsonObject[]> {
    return exposed({ ...this.#options.settings(), ...settings }, { ...this.#options, query });
  }

  /** Gives up what waits for clients. */
  [Symbol.dispose](): void {
    this.#exchange[Symbol.dispose]();
  }

  async #serve(request: Omit<ClientRequest, "capabilities">): Promise<JsonObject> {
    const { client, context, params } = request;
    const capabilities = capabilitiesOf(context, client.server.getClientCapabilities());
    client.capabilities = capabilities;
    try {
      const answer = await this.#answer({ ...request, capabilities });
      const { settings, onAnswer } = this.#options;
      const what = countedAs(context.mcpReq.method, { params, exposure: settings().exposure });
      if (what !== undefined) onAnswer(what, answer);
      return answer;
    } catch (error) {
      throw refusal(error);
    }
  }

  async #answer(request: ClientRequest): Promise<JsonObject> {
    const { client, context: { mcpReq: { method } }, params } = request;
    const fresh = client.isModern ? FRESH : {};
    switch (method) {
      case "tools/list":
        // Not of MCP: a client may say what its tools are to be for.
        return { tools: await this.list(optionalText(params, "query")), ...fresh };
      case "resources/list":
        return { resources: await this.#listed("resources"), ...fresh };
      case "resources/templates/list":
        return { resourceTemplates: await this.#listed("resourceTemplates"), ...fresh };
      case "prompts/list":
        return { prompts: await this.#listed("prompts"), ...fresh };
      case "tools/call":
        return await this.#call(request);
      case "resources/read":
        if (isOwn(params.uri)) return readOwn(params.uri, this.#options);
        return await this.#ask(request, await wantedBy(this.#offers, { method, params }));
      case "prompts/get":
      case "completion/complete":
        return await this.#ask(request, await wantedBy(this.#offers, { method, params }));
      case "resources/subscribe":
        await this.#subscribe(request, text(params, "uri"));
        return {};
      case "resources/unsubscribe":
        await this.#inTurn(client, () => this.#unfollow(client, params.uri));
        return {};
      case "logging/setLevel":
        return this.#setLevel(client, text(params, "level"));
      case "tasks/get":
      case "tasks/result":
      case "tasks/list":
      case "tasks/cancel":
      case "tasks/update":
        return await this.#tasks.serve(request);
      default:
        throw new ProtocolError(ProtocolErrorCode.MethodNotFound, "Method not found");
    }
  }

  async #listed(list: Exclude<ListName, "tools">): Promise<readonly JsonObject[]> {
    return this.#options.problem() === undefined ? await this.#offers.list(list) : [];
  }

  async #call(request: ClientRequest): Promise<JsonObject> {
    const { params: { arguments: args = {}, _meta, ...params }, client } = request;
    try {
      const name = text(params, "name");
      if (!isObject(args)) throw invalid("arguments is no object");
      const asked = { arguments: args as JsonObject, ...passedOn(_meta) };
      const result = await this.#exchange.serve(request, async (working) => {
        const call = { ...asked, ...working };
        const meta = await this.metaCalls();
        if (isMetaTool(name)) return await meta.call(name, call);
        const own = { ...call, ...this.#tasks.wantedBy(request), via: "tools/call" };
        return await meta.callTool(this.#idOf(name), own);
      });
      return client.isModern ? result : forOlderClient(result);
    } catch (error) {
      return failed(error);
    }
  }

  async #ask(request: ClientRequest, wanted: Wanted): Promise<JsonObject> {
    return await this.#exchange.serve(request, (working) => this.#pass(wanted, working));
  }

  /** Passes a request on to a server, through the one door. */
  async #pass({ door, server, method, params }: Wanted, working: Working): Promise<Outcome> {
    const { _meta, ...rest } = params;
    const problem = this.#options.problem();
    if (problem !== undefined) throw problem;
    const { answer, ...meanwhile } = working;
    return await this.#options.callTool({
      id: toolId(server, door),
      method,
      arguments: rest,
      via: method,
      actor: "local",
      callId: crypto.randomUUID(),
      ...meanwhile,
      ...passedOn(_meta),
      ...defined({ answer }),
    });
  }

  /** Passes a request on whose client cannot be asked for it. */
  async #now(wanted: Wanted, working: Working): Promise<JsonObject> {
    const outcome = await this.#pass(wanted, working);
    if (outcome.kind === "ask") throw await this.#options.leave(outcome.question);
    return outcome.result as unknown as JsonObject; // plain JSON
  }

  /** One after the other: what came first has to be over before its end counts. */
  async #inTurn(client: Client, work: () => void | Promise<void>): Promise<void> {
    const turn = client.turn.then(work);
    client.turn = turn.catch(() => {}); // told to who waits for it
    await turn;
  }

  async #subscribe(request: ClientRequest, uri: string): Promise<void> {
    const { client } = request;
    const ask = (wanted: Wanted) => this.#ask(request, wanted);
    await this.#inTurn(client, () => this.#follow({ client, uri }, ask));
  }

  /** Follows what the client listens for when its turn comes, and nothing else. */
  #listen(client: Client): void {
    const ask = (wanted: Wanted) => this.#now(wanted, NOBODY);
    this.#inTurn(client, async () => {
      const uris = this.#listened;
      for (const uri of client.followed.keys()) {
        if (!uris.includes(uri)) this.#unfollow(client, uri);
      }
      for (const uri of uris) {
        await this.#follow({ client, uri }, ask).catch(this.#options.onLost);
      }
    }).catch(this.#options.onError);
  }

  async #follow(
    { client, uri }: { readonly client: Client; readonly uri: string },
    ask: (wanted: Wanted) => Promise<unknown>,
  ): Promise<void> {
    if (isOwn(uri) || client.followed.has(uri)) return;
    const { server, name } = await this.#offers.resource(uri);
    const params = { uri: name };
    await ask({ door: "@resources", server, method: "resources/subscribe", params });
    if (this.#clients.has(client)) client.followed.set(uri, { server, name });
    else this.#options.unfollow({ server, uri: name });
  }

  /** Gives a resource up, which nothing can forbid. */
  #unfollow(client: Client, uri: unknown): void {
    const place = client.followed.get(uri as string);
    if (place === undefined) return;
    client.followed.delete(uri as string);
    this.#options.unfollow({ server: place.server, uri: place.name });
  }

  #leave(client: Client): void {
    this.#clients.remove(client);
    for (const uri of client.followed.keys()) this.#unfollow(client, uri);
  }

  #setLevel(client: Client, level: string): JsonObject {
    if (!LEVELS.includes(level)) throw invalid(`level is none of ${LEVELS.join(", ")}`);
    client.level = level;
    this.#options.setLevel(this.#clients.level());
    return {};
  }

  /** Remembers what a result links, which may then be read. */
  #linked(call: Call, outcome: Outcome): Outcome {
    if (outcome.kind === "result" && call.method === undefined) {
      if (outcome.task !== undefined) return this.#tasks.begun(call, outcome);
      this.#offers.link(splitToolId(call.id).server, outcome.result.content);
    }
    return outcome;
  }

  /** Gives what answers the meta-tools; what only calls need is loaded by the first of them. */
  metaCalls(): Promise<MetaCalls> {
    this.#meta ??= import("./meta_calls.ts").then(({ MetaCalls }) => new MetaCalls(this.#options));
    return this.#meta;
  }

  #idOf(name: string): ToolId {
    const { catalog, settings, servers } = this.#options;
    const bare = settings().prefix ? undefined : bareTools(catalog).get(name)?.id;
    const id = bare ?? servers.idOf(name);
    if (id !== undefined) return id;
    throw servers.unknown(name);
  }
}
