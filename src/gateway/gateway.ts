/**
 * The MCP gateway: one server for all protocol revisions, its lists, and its calls.
 *
 * @module
 */

import { listedMetaTools } from "../config/exposure.ts";
import { type JsonObject, objectOf, textOf } from "../core/json.ts";
import type { Maybe } from "../core/maybe.ts";
import type {
  Connection,
  ConnectionFactory,
  RequestContext,
  ServedOperation,
  UnknownNotification,
} from "../protocol/connection.ts";
import { isDefinedMethod } from "../protocol/revisions.ts";
import type { RequestSpan, Tracer } from "../protocol/trace.ts";
import { type Client, type ClientListener, Clients, type RequestOwner } from "./_clients.ts";
import { DroppedMembers } from "./_dropped_members.ts";
import { Offers } from "./_offers.ts";
import { RequestDrain } from "./_request_drain.ts";
import type { Requests } from "./_requests.ts";
import type { ServerNotification } from "./_unknown_notifications.ts";
import { RecentTools, selectTools } from "./exposure.ts";
import type { ExposureSettings } from "./options.ts";
import { capabilitiesOf, clientInfoOf } from "./interaction/capabilities.ts";
import type { ClientInput, ClientRequest } from "./interaction/request_client.ts";
import type { Interaction, RequestGateway, SealedStates } from "./interaction/interaction.ts";
import type { OpenQuestions } from "./interaction/open_questions.ts";
import type { MetaCalls } from "./meta_calls.ts";
import { dispatch, type GatewayParts } from "./methods.ts";
import type { GatewayHost } from "./options.ts";
import { RenderedLists } from "./rendered_lists.ts";

/** The subscription of a client without a session, until the subscription is disposed. */
export interface Listening extends Disposable {
  /** Sets the URIs of the resources and the ids of the tasks whose changes the client gets. */
  set(listened: { readonly uris: readonly string[]; readonly tasks: readonly string[] }): void;
  /** Reports the members of a notification that the client does not take. */
  reportDropped(method: string, members: JsonObject): void;
}

/** Serves the requests of clients, over any transport. */
export class Gateway implements ConnectionFactory, RequestGateway, Disposable {
  /** The clients that are connected. */
  readonly clients: Clients;
  /** Seals states, so that several processes of PML can serve one client; undefined for one process. */
  replica: SealedStates | undefined;
  /** Names the resources, prompts and skills of servers. */
  readonly offers: Offers;
  /** Logs which members of messages clients do not get. */
  readonly dropped: DroppedMembers;
  readonly #host: GatewayHost;
  readonly #parts: GatewayParts;
  #requests: Requests | undefined;
  #loading: Promise<Requests> | undefined;
  #onQuestions: (() => void) | undefined;
  /** The owner of all requests without a session. */
  readonly #sessionlessOwner: RequestOwner = {};

  /** Takes the host. Sends no request to any server yet. */
  constructor(host: GatewayHost) {
    this.#host = host;
    const rendered = new RenderedLists();
    const offers = this.offers = new Offers(host, rendered);
    this.dropped = new DroppedMembers(host.log);
    const clients = this.clients = new Clients((error) => this.#onError(error), this.dropped);
    const recentTools = new RecentTools(host);
    const requests = () => this.#loadRequests();
    this.#parts = { host, clients, offers, rendered, recentTools, requests };
  }

  readonly connect: ConnectionFactory["connect"] = (
    peer,
    isStateless,
    owner = this.#sessionlessOwner,
  ) => this.#connectionOf(this.clients.add(peer, isStateless, owner));

  /**
   * Returns a factory of connections with their own owner, for one process that uses this gateway.
   * `end` waits for the requests of these connections.
   */
  separateConnections(): ConnectionFactory & {
    readonly listen: () => Listening;
    readonly end: () => Promise<void>;
  } {
    const drain = new RequestDrain();
    return {
      connect: (peer, isStateless, owner = drain) =>
        this.#connectionOf(this.clients.add(peer, isStateless, owner), drain),
      listen: () => this.listen({ owner: drain }),
      end: () => drain.drain(),
    };
  }

  #connectionOf(client: Client, drain?: RequestDrain): Connection {
    return new ClientConnection(this, client, drain);
  }

  /** Passes on a notification of a server whose method no revision defines. */
  passOnNotification(server: string, notification: ServerNotification): void {
    this.#whenLoaded(({ notifications }) => notifications.passFromServer(server, notification));
  }

  /** Returns whether a client without a session began a task of this id. */
  hasTask(id: string): boolean {
    return this.#requests?.tasks.has(id) === true;
  }

  /** Sends the state of a task to the client that began the task. */
  notifyTask(server: string, state: JsonObject): void {
    const change = this.#requests?.tasks.update(server, state);
    if (change !== undefined) this.clients.notifyTaskChanged(change);
  }

  /**
   * Opens the subscription of a client without a session. The returned object sets the resources and
   * tasks, and closes the subscription. By default all clients of the owner are notified.
   */
  listen(
    { owner = this.#sessionlessOwner, notify }: Partial<Pick<ClientListener, "owner" | "notify">> =
      {},
  ): Listening {
    const { clients } = this;
    const listener: ClientListener = {
      owner,
      notify: notify ?? ((...args) => clients.notifyStateless(owner, ...args)),
      tasks: [],
      followed: new Map(),
      turn: Promise.resolve(),
    };
    clients.listeners.add(listener);
    const follow = ({ tasks }: Requests) =>
      tasks.follow([...clients.listeners].flatMap((one) => one.tasks));
    return {
      set: ({ uris, tasks }) => {
        listener.tasks = tasks;
        this.#whenLoaded((requests) => {
          if (!clients.listeners.has(listener)) return;
          follow(requests);
          requests.followedResources.setFollowed(listener, uris);
        });
      },
      reportDropped: (method, members) => clients.reportDropped(method, members),
      [Symbol.dispose]: () => {
        clients.listeners.delete(listener);
        if (this.#requests === undefined) return;
        follow(this.#requests);
        this.#requests.followedResources.unfollowAll(listener);
      },
    };
  }

  /** Returns the tools that clients see. `settings` replaces some of the current settings. */
  exposedTools(
    settings: Partial<ExposureSettings> = {},
    { query }: { readonly query?: string | undefined } = {},
  ): Promise<readonly JsonObject[]> {
    const { rendered } = this.#parts;
    return selectTools({ ...this.#host.settings(), ...settings }, this.#host, { rendered, query });
  }

  /** Returns the meta-tools. The first call loads their module. */
  async metaCalls(): Promise<MetaCalls> {
    return await (await this.#loadRequests()).toolCalls.metaCalls();
  }

  /**
   * Loads the code for calls of tools, and the code of meta-tools if they are listed.
   */
  async prepareCalls(): Promise<void> {
    const { toolCalls } = await this.#loadRequests();
    if (listedMetaTools(this.#host.settings()).length > 0) await toolCalls.metaCalls();
  }

  /** The questions that wait in forms of clients; undefined before the first call. */
  get questions(): OpenQuestions | undefined {
    return this.#requests?.interaction.questions;
  }

  /** Sets the function that is called after each change of the questions; undefined removes it. */
  followQuestions(onChange: (() => void) | undefined): void {
    this.#onQuestions = onChange;
    if (this.questions !== undefined) this.questions.onChange = onChange;
  }

  /** Returns the functions that ask a client outside of its requests. */
  async inputFrom(client: Parameters<Interaction["inputFrom"]>[0]): Promise<ClientInput> {
    return (await this.#loadRequests()).interaction.inputFrom(client);
  }

  /** Resolves when the notifications that clients have sent are passed on. */
  async whenPassedOn(): Promise<void> {
    await (this.#requests ?? await this.#loading)?.notifications.whenPassedOn();
  }

  /** Cancels the work that waits for input of clients. */
  [Symbol.dispose](): void {
    this.#requests?.[Symbol.dispose]();
  }

  #onError({ message }: Error): void {
    this.#host.log.debug(message);
  }

  /** Returns the object that serves all requests except lists. The first use loads it. */
  #loadRequests(): Maybe<Requests> {
    return this.#requests ?? (this.#loading ??= this.#load());
  }

  async #load(): Promise<Requests> {
    try {
      const { Requests } = await import("./_requests.ts");
      this.#requests = new Requests(this.#host, this);
      this.#requests.interaction.questions.onChange = this.#onQuestions;
      return this.#requests;
    } finally {
      // The next request tries again after a failure.
      this.#loading = undefined;
    }
  }

  /** Calls `act` with the object that serves requests, now or when it is loaded. */
  #whenLoaded(work: (requests: Requests) => void): void {
    const requests = this.#loadRequests();
    if (requests instanceof Promise) requests.then(work).catch((error) => this.#onError(error));
    else work(requests);
  }

  /** Removes a client that has disconnected. */
  removeClient(client: Client): void {
    this.clients.remove(client);
    this.#requests?.followedResources.unfollowAll(client);
    // Clients that live for one request share an owner, and send the input with the next request.
    if (client.peer.isBrief !== true) this.#requests?.interaction.leave(client.owner);
  }

  /** Serves a request of a client. */
  serve(client: Client, params: JsonObject, context: RequestContext): Promise<JsonObject> {
    const request = this.#requestOf(client, context, params);
    client.capabilities = request.capabilities;
    const { tracer } = this.#host;
    if (tracer !== undefined) context.trace = beginSpan(tracer, request);
    return dispatch(request, this.#parts);
  }

  /** Counts a request that was served. */
  countServed(operation: ServedOperation): void {
    this.#host.metrics.countServed(operation);
  }

  /**
   * Passes on a notification of a client whose method no revision defines. All other notifications
   * are for PML itself, so their unknown members are reported as dropped.
   */
  handleNotification(
    client: Client,
    { method, params, members, envelope }: UnknownNotification,
  ): Promise<void> {
    if (isDefinedMethod(method)) {
      if (members !== undefined) this.dropped.reportClientMembers(method, members);
      return Promise.resolve();
    }
    const notification = { ...this.#requestOf(client, { envelope }, params), method, members };
    const pass = ({ notifications }: Requests) => notifications.passFromClient(notification);
    const requests = this.#loadRequests();
    if (!(requests instanceof Promise)) return pass(requests);
    return requests.then(pass).catch((error) => this.#onError(error));
  }

  /** Adds the client's name, version and capabilities (from `_meta` or `initialize`) to a message. */
  #requestOf<C extends Pick<RequestContext, "envelope">>(
    client: Client,
    context: C,
    params: JsonObject,
  ): Omit<ClientRequest, "context"> & { readonly context: C } {
    const { peer } = client;
    client.info = clientInfoOf(context, peer);
    const clientName = textOf(client.info.name);
    const capabilities = capabilitiesOf(context, peer.getClientCapabilities());
    if (!client.isReported) {
      client.isReported = true;
      this.#host.notes?.note(client.info, capabilities, peer.isBrief === true);
    }
    return {
      client,
      context,
      params,
      capabilities,
      clientName,
      toolset: () => this.#host.settings().toolsetFor?.(clientName),
    };
  }
}

/** Begins the span of a request. */
function beginSpan(
  tracer: Tracer,
  { client: { peer }, context, params }: ClientRequest,
): RequestSpan {
  const { method, meta, idText, since } = context;
  const session = peer.sessionId;
  return tracer.beginServed({
    method,
    params,
    meta,
    idText,
    since,
    session,
    isRemote: session !== undefined || peer.isBrief === true,
    revision: peer.getNegotiatedProtocolVersion(),
  });
}

/** The connection of one client. */
class ClientConnection implements Connection {
  readonly isStateless: boolean;
  readonly #gateway: Gateway;
  readonly #client: Client;
  readonly #drain: RequestDrain | undefined;

  /** Takes the gateway, its client, and the drain that waits for its requests, if there is one. */
  constructor(gateway: Gateway, client: Client, drain: RequestDrain | undefined) {
    this.isStateless = client.isStateless;
    this.#gateway = gateway;
    this.#client = client;
    this.#drain = drain;
  }

  serve(rawParams: unknown, context: RequestContext): Promise<JsonObject> {
    const params = objectOf(rawParams);
    const serve = () => this.#gateway.serve(this.#client, params, context);
    return this.#drain === undefined ? serve() : this.#drain.serve(context, serve);
  }

  countServed(operation: ServedOperation): void {
    this.#gateway.countServed(operation);
  }

  handleNotification(notification: UnknownNotification): void {
    const passing = this.#gateway.handleNotification(this.#client, notification);
    void (this.#drain === undefined ? passing : this.#drain.track(passing));
  }

  close(): void {
    this.#gateway.removeClient(this.#client);
  }
}
