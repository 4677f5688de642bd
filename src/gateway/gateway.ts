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
  UnknownNotification,
} from "../protocol/connection.ts";
import { isDefined } from "../protocol/revisions.ts";
import { type Client, type ClientListener, Clients, type Party } from "./_clients.ts";
import { DroppedMembers } from "./_dropped_members.ts";
import { Offers } from "./_offers.ts";
import { RequestDrain } from "./_request_drain.ts";
import type { Requests } from "./_requests.ts";
import type { ServerNotification } from "./_unknown_notifications.ts";
import { exposed, RecentTools } from "./exposure.ts";
import type { ExposureSettings } from "./options.ts";
import { capabilitiesOf, clientInfoOf } from "./interaction/capabilities.ts";
import type { ClientInput, ClientRequest } from "./interaction/client_request.ts";
import type { Interaction, RequestGateway, SealedStates } from "./interaction/interaction.ts";
import type { MetaCalls } from "./meta_calls.ts";
import { dispatch, type GatewayParts } from "./methods.ts";
import type { GatewayHost } from "./options.ts";
import { RenderedLists } from "./rendered_lists.ts";

/** The subscription of a client without a session, until it is disposed. */
export interface Listening extends Disposable {
  /** Sets the URIs of resources and the ids of tasks. */
  set(listened: { readonly uris: readonly string[]; readonly tasks: readonly string[] }): void;
  /** Reports the members of a notification that the client does not take. */
  dropped(method: string, members: JsonObject): void;
}

/** Serves the requests of clients, over any transport. */
export class Gateway implements ConnectionFactory, RequestGateway, Disposable {
  /** The clients that are connected. */
  readonly clients: Clients;
  /** Set if PML has several processes. */
  replica: SealedStates | undefined;
  /** Names the resources, prompts and skills of servers. */
  readonly offers: Offers;
  /** Reports the members of messages that clients do not get. */
  readonly dropped: DroppedMembers;
  readonly #host: GatewayHost;
  readonly #parts: GatewayParts;
  #requests: Requests | undefined;
  #loading: Promise<Requests> | undefined;
  /** The owner of all requests without a session. */
  readonly #here: Party = {};

  /** Takes the host. Sends no request to any server yet. */
  constructor(host: GatewayHost) {
    this.#host = host;
    const rendered = new RenderedLists();
    const offers = this.offers = new Offers(host, rendered);
    this.dropped = new DroppedMembers(host.log);
    const clients = this.clients = new Clients((error) => this.#onError(error), this.dropped);
    const recentTools = new RecentTools(host);
    const requests = () => this.#loaded();
    this.#parts = { host, clients, offers, rendered, recentTools, requests };
  }

  readonly connect: ConnectionFactory["connect"] = (peer, isStateless, party = this.#here) =>
    this.#connectionOf(this.clients.add(peer, isStateless, party));

  /** Returns a gateway for one client with its own connection. `end` waits for its requests. */
  apart(): ConnectionFactory & {
    readonly listen: () => Listening;
    readonly end: () => Promise<void>;
  } {
    const drain = new RequestDrain();
    return {
      connect: (peer, isStateless, party = drain) =>
        this.#connectionOf(this.clients.add(peer, isStateless, party), drain),
      listen: () => this.listen({ party: drain }),
      end: () => drain.drain(),
    };
  }

  #connectionOf(client: Client, drain?: RequestDrain): Connection {
    return new ClientConnection(this, client, drain);
  }

  /** Passes on a notification of a server whose method no revision defines. */
  notified(server: string, notification: ServerNotification): void {
    this.#use(({ notifications }) => notifications.fromServer(server, notification));
  }

  /** Returns whether a client without a session began a task of this id. */
  hasTask(id: string): boolean {
    return this.#requests?.tasks.has(id) === true;
  }

  /** Notifies the client that began a task of its state. */
  taskChanged(server: string, state: JsonObject): void {
    const updating = this.#requests?.tasks.update(server, state);
    if (updating !== undefined) this.clients.taskChanged(updating);
  }

  /**
   * Opens the subscription of a client without a session. Returns functions that set its resources
   * and tasks, and that close it. By default all such clients of its party are notified.
   */
  listen(
    { party = this.#here, tell }: Partial<Pick<ClientListener, "party" | "tell">> = {},
  ): Listening {
    const { clients } = this;
    const listener: ClientListener = {
      party,
      tell: tell ?? ((...args) => clients.tellStateless(party, ...args)),
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
        this.#use((requests) => {
          if (!clients.listeners.has(listener)) return;
          follow(requests);
          requests.following.listen(listener, uris);
        });
      },
      dropped: (method, members) => clients.dropped(method, members),
      [Symbol.dispose]: () => {
        clients.listeners.delete(listener);
        if (this.#requests === undefined) return;
        follow(this.#requests);
        this.#requests.following.leave(listener);
      },
    };
  }

  /** Returns the tools that clients are shown, with some settings in place of the present ones. */
  exposed(
    settings: Partial<ExposureSettings> = {},
    { query }: { readonly query?: string | undefined } = {},
  ): Promise<readonly JsonObject[]> {
    const { rendered } = this.#parts;
    return exposed({ ...this.#host.settings(), ...settings }, this.#host, { rendered, query });
  }

  /** Returns the meta-tools. The first call loads their module. */
  async metaCalls(): Promise<MetaCalls> {
    return await (await this.#loaded()).toolCalls.metaCalls();
  }

  /**
   * Loads the code of the calls that clients will make: that of meta-tools only if they are listed.
   */
  async prepareCalls(): Promise<void> {
    const { toolCalls } = await this.#loaded();
    if (listedMetaTools(this.#host.settings()).length > 0) await toolCalls.metaCalls();
  }

  /** Returns the functions by which a client is asked outside of its requests. */
  async inputFrom(client: Parameters<Interaction["inputFrom"]>[0]): Promise<ClientInput> {
    return (await this.#loaded()).interaction.inputFrom(client);
  }

  /** Resolves when the notifications that clients have sent are passed on. */
  async passedOn(): Promise<void> {
    await (this.#requests ?? await this.#loading)?.notifications.passedOn();
  }

  /** Cancels the work that waits for input of clients. */
  [Symbol.dispose](): void {
    this.#requests?.[Symbol.dispose]();
  }

  #onError({ message }: Error): void {
    this.#host.log.debug(message);
  }

  /** Returns the server of all requests except lists. The first use loads it. */
  #loaded(): Maybe<Requests> {
    return this.#requests ?? (this.#loading ??= this.#load());
  }

  async #load(): Promise<Requests> {
    try {
      const { Requests } = await import("./_requests.ts");
      return this.#requests = new Requests(this.#host, this);
    } finally {
      // The next request tries again after a failure.
      this.#loading = undefined;
    }
  }

  /** Calls `act` with the server of other requests, now or when it is loaded. */
  #use(act: (requests: Requests) => void): void {
    const requests = this.#loaded();
    if (requests instanceof Promise) requests.then(act).catch((error) => this.#onError(error));
    else act(requests);
  }

  /** Removes a client that has disconnected. */
  leave(client: Client): void {
    this.clients.remove(client);
    this.#requests?.following.leave(client);
    // Clients that exist for one request share a party, and send the input with the next request.
    if (client.peer.isBrief !== true) this.#requests?.interaction.leave(client.party);
  }

  /** Serves a request of a client. */
  serve(client: Client, params: JsonObject, context: RequestContext): Promise<JsonObject> {
    const request = this.#requestOf(client, context, params);
    client.capabilities = request.capabilities;
    return dispatch(request, this.#parts);
  }

  /**
   * Passes on a notification of a client whose method no revision has. Others are for PML itself, so
   * their members are reported.
   */
  note(
    client: Client,
    { method, params, members, envelope }: UnknownNotification,
  ): Promise<void> {
    if (isDefined(method)) {
      if (members !== undefined) this.dropped.noteOfClient(method, members);
      return Promise.resolve();
    }
    const notification = { ...this.#requestOf(client, { envelope }, params), method, members };
    const pass = ({ notifications }: Requests) => notifications.fromClient(notification);
    const requests = this.#loaded();
    if (!(requests instanceof Promise)) return pass(requests);
    return requests.then(pass).catch((error) => this.#onError(error));
  }

  /** Returns a message with its client as that describes itself: in `_meta`, or in `initialize`. */
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
      this.#host.notes?.note(client.info, capabilities);
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

  note(notification: UnknownNotification): void {
    const passing = this.#gateway.note(this.#client, notification);
    void (this.#drain === undefined ? passing : this.#drain.follow(passing));
  }

  close(): void {
    this.#gateway.leave(this.#client);
  }
}
