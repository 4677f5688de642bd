/**
 * The MCP face: one server for both protocol eras, its lists, and its calls.
 *
 * @module
 */

import {
  type Call,
  type CallClient,
  type CallTool,
  changedCall,
  type ContentBlock,
  type Outcome,
} from "../core/call.ts";
import { isObject, type JsonObject, objectOf } from "../core/json.ts";
import type { ListName } from "../core/lists.ts";
import { safeItem } from "../core/safe_text.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { missingIn } from "../core/toolset.ts";
import { membersOf } from "./_call_members.ts";
import { Clients, type Listener, type Party } from "./_clients.ts";
import { forNamedClient } from "./_client_results.ts";
import { Following } from "./_following.ts";
import { Offers } from "./_offers.ts";
import { forOlderClient, toolForModernClient, toolForOlderClient } from "./_older_results.ts";
import { isKept, isOwn, readKept, readOwn } from "./_own_resources.ts";
import { Pages } from "./_pages.ts";
import { countedAs, invalid, optionalText, text } from "./_params.ts";
import { ServerRequests } from "./_server_requests.ts";
import { Tasks } from "./_tasks.ts";
import type { OwnersOptions } from "./_unknown_methods.ts";
import { RequestDrain } from "./_request_drain.ts";
import type { Face } from "../protocol/connection.ts";
import { faceOf } from "./connection.ts";
import { bareTools, exposed, type ExposureSettings, listsServers } from "./exposure.ts";
import { LEVELS } from "../core/levels.ts";
import { capabilitiesOf, clientNameOf } from "./interaction/capabilities.ts";
import type { ClientRequest } from "./interaction/client_request.ts";
import { type ClientInput, Interaction, type SealedStates } from "./interaction/interaction.ts";
import type { MetaCall, MetaCalls } from "./meta_calls.ts";
import { isMetaTool } from "./meta_tools.ts";
import type { GatewayOptions } from "./options.ts";
import { failed, refusal } from "../protocol/failures.ts";
import { unknownTool } from "./unknown_tool.ts";

/** How long a client may cache a list, in milliseconds: rules may change it. */
const TTL_MS = 5_000;

type Listed = Exclude<ListName, "tools">;

/** What a client listens for, until it is disposed. */
export interface Listening extends Disposable {
  /** Sets the URIs of resources and the ids of tasks. */
  set(wanted: { readonly uris: readonly string[]; readonly tasks: readonly string[] }): void;
}

/** Serves the requests of clients, whoever reads their messages. */
export class Gateway implements Face, Disposable {
  /** The clients that are connected. */
  readonly clients: Clients;
  /** The tasks that clients began. */
  readonly tasks: Tasks;
  /** Set where one PML has several processes. */
  replica: SealedStates | undefined;
  readonly #options: GatewayOptions;
  readonly #offers: Offers;
  readonly #interaction: Interaction;
  readonly #requests: ServerRequests;
  readonly #following: Following;
  readonly #owners: OwnersOptions;
  readonly #pages = new Pages();
  /** The party of all requests without a session. */
  readonly #here: Party = {};
  #meta: Promise<typeof import("./meta_calls.ts")> | undefined;
  #metaCalls: MetaCalls | undefined;

  /** Makes the face; nothing is asked of any server yet. */
  constructor(options: GatewayOptions) {
    const { servers, settings, onError } = options;
    const callTool: CallTool = (call) => {
      const { actor } = settings();
      // Questions of servers come with the actor "local".
      const own = call.actor === actor ? call : changedCall(call, { actor });
      return options.callTool(own).then((outcome) => this.#linked(call, outcome));
    };
    this.#options = { ...options, callTool };
    this.#offers = new Offers({ servers, prefix: () => settings().prefix });
    this.clients = new Clients(onError);
    const replica = () => this.replica;
    this.#interaction = new Interaction({ ...this.#options, replica });
    const parts = { ...this.#options, replica, clients: this.clients, offers: this.#offers };
    this.#requests = new ServerRequests({ ...parts, interaction: this.#interaction });
    const all = { ...parts, requests: this.#requests };
    this.tasks = new Tasks(all);
    this.#following = new Following(all);
    this.#owners = { offers: this.#offers, servers: this.#options.servers, tasks: this.tasks };
  }

  readonly connect: Face["connect"] = (...of) => this.#face().connect(...of);

  /** Returns what serves one client over a connection of its own. `end` waits for its requests. */
  apart(): Face & { readonly listen: () => Listening; readonly end: () => Promise<void> } {
    const party = new RequestDrain();
    return {
      ...this.#face(party),
      listen: () => this.listen({ party }),
      end: () => party.drain(),
    };
  }

  #face(party?: RequestDrain): Face {
    return faceOf({
      clients: this.clients,
      party: party ?? this.#here,
      serve: (request) => {
        const answered = () => this.#serve(request);
        return party?.serve(request.context, answered) ?? answered();
      },
      onLeft: (client) => this.#following.leave(client),
    });
  }

  /** Tells the client that began it how a task of a server stands. */
  taskChanged(server: string, state: JsonObject): void {
    const told = this.tasks.told(server, state);
    if (told !== undefined) this.clients.taskChanged(told);
  }

  /**
   * Opens what a client without a session listens on. Returns functions that set what it listens
   * for, and that close it. By default everything goes to all such clients of its party.
   */
  listen({ party = this.#here, tell }: Partial<Pick<Listener, "party" | "tell">> = {}): Listening {
    const { clients, tasks } = this;
    const listener: Listener = {
      party,
      tell: tell ?? ((...told) => clients.tellModern(party, ...told)),
      tasks: [],
      followed: new Map(),
      turn: Promise.resolve(),
    };
    clients.listeners.add(listener);
    const follow = () => tasks.follow([...clients.listeners].flatMap((one) => one.tasks));
    return {
      set: ({ uris, tasks }) => {
        listener.tasks = tasks;
        follow();
        this.#following.listen(listener, uris);
      },
      [Symbol.dispose]: () => {
        clients.listeners.delete(listener);
        follow();
        this.#following.leave(listener);
      },
    };
  }

  /** Gives the tools that clients are shown, or would be if these settings were in place of the present. */
  exposed(
    settings: Partial<ExposureSettings> = {},
    { query, toolset }: {
      readonly query?: string | undefined;
      readonly toolset?: CallClient["toolset"];
    } = {},
  ): Promise<readonly JsonObject[]> {
    const options = within(this.#options, toolset);
    return exposed({ ...options.settings(), ...settings }, { ...options, query });
  }

  /** Returns the functions by which a client is asked outside of its requests. */
  inputFrom(client: Parameters<Interaction["inputFrom"]>[0]): ClientInput {
    return this.#interaction.inputFrom(client);
  }

  /** Gives up what waits for clients. */
  [Symbol.dispose](): void {
    this.#interaction[Symbol.dispose]();
  }

  #serve(request: Pick<ClientRequest, "client" | "context" | "params">): Promise<JsonObject> {
    const { client, context, params } = request;
    const capabilities = capabilitiesOf(context, client.peer.getClientCapabilities());
    const name = clientNameOf(context, client.peer);
    const toolset = () => this.#options.settings().toolsetFor?.(name);
    client.capabilities = capabilities;
    const asked: ClientRequest = { client, context, params, capabilities, toolset };
    return context.method === "tools/call" ? this.#call(asked, name) : this.#serveOther(asked);
  }

  async #serveOther(request: ClientRequest): Promise<JsonObject> {
    try {
      const answer = await this.#answer(request);
      this.#count(request, answer);
      return answer;
    } catch (error) {
      throw refusal(error);
    }
  }

  #count({ context: { method }, params }: ClientRequest, answer: JsonObject): void {
    const { exposure } = this.#options.settings();
    const what = countedAs(method, { params, exposure });
    if (what !== undefined) this.#options.metrics.answered(what, answer);
  }

  async #answer(request: ClientRequest): Promise<JsonObject> {
    const { client, context: { method }, params } = request;
    switch (method) {
      case "tools/list":
        return await this.#tools(request);
      case "resources/list":
        return await this.#listed("resources", request);
      case "resources/templates/list":
        return await this.#listed("resourceTemplates", request);
      case "prompts/list":
        return await this.#listed("prompts", request);
      case "resources/read":
        if (isOwn(params.uri)) return await readOwn(params.uri, this.#options);
        if (isKept(params.uri)) return await readKept(params.uri, this.#options);
        return forClient(request, await this.#requests.askAbout(request));
      case "prompts/get":
      case "completion/complete":
        return forClient(request, await this.#requests.askAbout(request));
      case "resources/subscribe":
        await this.#following.subscribe(request, text(params, "uri"));
        return {};
      case "resources/unsubscribe":
        await this.#following.unsubscribe(client, params.uri);
        return {};
      case "logging/setLevel":
        client.level = levelOf(params);
        this.#options.setLevel(this.clients.level());
        return {};
      case "tasks/get":
      case "tasks/result":
      case "tasks/list":
      case "tasks/cancel":
      case "tasks/update":
        return await this.tasks.serve(request);
      default:
        return await this.#requests.passOn(request, this.#owners);
    }
  }

  async #tools({ client, params, toolset }: ClientRequest): Promise<JsonObject> {
    const { servers, settings } = this.#options;
    // `query` is an extension of MCP: a client may state the purpose of its tools.
    const query = optionalText(params, "query");
    const items = (await this.exposed({}, { query, toolset }))
      .map(client.isModern ? toolForModernClient : toolForOlderClient);
    const isComplete = !listsServers(settings(), query) || servers.isComplete("tools");
    return this.#pages.of({ name: "tools", items, about: about(client, isComplete) }, params);
  }

  async #listed(list: Listed, { client, params, toolset }: ClientRequest): Promise<JsonObject> {
    const { problem, judge, servers } = within(this.#options, toolset);
    const items = problem() === undefined
      ? (await this.#offers.list(list, judge)).map(safeItem)
      : [];
    const isComplete = servers.isComplete(list);
    return this.#pages.of({ name: list, items, about: about(client, isComplete) }, params);
  }

  /** Answers a call of a tool, as the client of this name shows it. */
  async #call(request: ClientRequest, clientName: string): Promise<JsonObject> {
    const { client, params } = request;
    let result: JsonObject;
    try {
      const { arguments: args = {} } = params;
      const name = text(params, "name");
      if (!isObject(args)) throw invalid("arguments must be an object");
      // An answer is to the members as they were shown, whatever the configuration is by then.
      const { meta, members } = membersOf(params, this.#options.settings().clientMeta);
      result = await this.#interaction.serve(request, (scope) => {
        const call = { arguments: args as JsonObject, scope, meta, members };
        return this.#callNamed(name, call, request);
      });
    } catch (error) {
      result = failed(error);
    }
    const answer = toolResultFor({ client, name: clientName }, result);
    this.#count(request, answer);
    return answer;
  }

  /** Calls a tool by its name in a list: without waiting, if nothing has to be loaded for that. */
  #callNamed(name: string, call: MetaCall, request: ClientRequest): Promise<Outcome> {
    const meta = this.#loadedMetaCalls(request.toolset);
    if (meta === undefined) return this.#callLater(name, call, request);
    if (isMetaTool(name)) return meta.call(name, call);
    const id = knownId(name, this.#options);
    return id === undefined
      ? this.#callLater(name, call, request)
      : meta.callTool(id, this.#ownCall(call, request));
  }

  async #callLater(name: string, call: MetaCall, request: ClientRequest): Promise<Outcome> {
    const meta = await this.metaCalls(request.toolset);
    if (isMetaTool(name)) return await meta.call(name, call);
    return await meta.callTool(await this.#idOf(name), this.#ownCall(call, request));
  }

  #ownCall(call: MetaCall, request: ClientRequest): MetaCall & { readonly via: string } {
    const { arguments: args, scope, meta, members } = call;
    const headers = request.client.isModern ? request.context.headers : undefined;
    const { task } = this.tasks.wantedBy(request);
    return { arguments: args, scope, meta, members, task, headers, via: "tools/call" };
  }

  /** Remembers what a result links, which may then be read. */
  #linked(call: Pick<Call, "id" | "method" | "task">, outcome: Outcome): Outcome {
    if (outcome.kind !== "result") return outcome;
    const { server } = splitToolId(call.id);
    if (call.method === "prompts/get") {
      this.#offers.link(server, contentOf(outcome.result as unknown as JsonObject));
    }
    if (call.method !== undefined) return outcome;
    if (outcome.task !== undefined) return this.tasks.begun(call as Call, outcome);
    this.#offers.link(server, outcome.result.content);
    return outcome;
  }

  /** Returns the meta-tools. Their module is loaded by the first call. */
  async metaCalls(toolset?: CallClient["toolset"]): Promise<MetaCalls> {
    const { MetaCalls } = await (this.#meta ??= import("./meta_calls.ts"));
    this.#metaCalls ??= new MetaCalls(this.#options);
    return this.#loadedMetaCalls(toolset) ?? new MetaCalls(within(this.#options, toolset));
  }

  /** Returns the loaded meta-tools, for clients for which all tools exist. */
  #loadedMetaCalls(toolset: CallClient["toolset"]): MetaCalls | undefined {
    return toolset?.() === undefined ? this.#metaCalls : undefined;
  }

  async #idOf(name: string): Promise<ToolId> {
    const { settings, servers } = this.#options;
    // A client may know names from a list of an earlier PML.
    if (!settings().prefix && knownId(name, this.#options) === undefined) await servers.prepare();
    const id = knownId(name, this.#options);
    if (id !== undefined) return id;
    throw unknownTool(name, servers);
  }
}

/** Returns how long a client may cache a list. One that is not complete changes soon. */
function about({ isModern }: ClientRequest["client"], isComplete: boolean): JsonObject {
  return isModern ? { ttlMs: isComplete ? TTL_MS : 0, cacheScope: "private" } : {};
}

/** Returns the content of a prompt's messages. */
function contentOf({ messages }: JsonObject): readonly ContentBlock[] {
  const all = Array.isArray(messages) ? messages : [];
  return all.map((one) => objectOf(objectOf(one).content))
    .filter(({ type }) => typeof type === "string") as unknown as readonly ContentBlock[];
}

function levelOf(params: JsonObject): string {
  const level = text(params, "level");
  if (LEVELS.includes(level)) return level;
  throw invalid(`level must be one of ${LEVELS.join(", ")}`);
}

/** Returns the id of a tool by its name in a list, as far as the lists are known. */
function knownId(name: string, { catalog, settings, servers }: GatewayOptions): ToolId | undefined {
  const bare = settings().prefix ? undefined : bareTools(catalog).get(name)?.id;
  return bare ?? servers.idOf(name);
}

/** Returns the options for a client with a tool set: its judge denies all other tools. */
function within(options: GatewayOptions, toolset: CallClient["toolset"]): GatewayOptions {
  const set = toolset?.();
  if (set === undefined) return options;
  const { judge } = options;
  return { ...options, judge: (id, args) => missingIn([set], id) ?? judge(id, args) };
}

/** Returns the result of a tool as the client that sent a request shows it. */
function toolResultFor(
  { client, name }: Pick<ClientRequest, "client"> & { readonly name: string },
  result: JsonObject,
): JsonObject {
  return forClient({ client }, forNamedClient(name, result));
}

function forClient(
  { client: { isModern, peer } }: Pick<ClientRequest, "client">,
  result: JsonObject,
): JsonObject {
  return isModern ? result : forOlderClient(result, peer.getNegotiatedProtocolVersion());
}
