/**
 * The MCP face: one server for both protocol eras, its lists, and its calls.
 *
 * @module
 */

import {
  type Call,
  type CallTool,
  changedCall,
  type ContentBlock,
  type Outcome,
} from "../protocol/call.ts";
import { type JsonObject, objectOf } from "../core/json.ts";
import type { Maybe } from "../core/maybe.ts";
import { splitToolId } from "../core/tool_id.ts";
import type {
  Connection,
  Face,
  RequestContext,
  UnknownNotification,
} from "../protocol/connection.ts";
import { type Client, Clients, type Listener, type Party } from "./_clients.ts";
import { Following } from "./_following.ts";
import { Offers } from "./_offers.ts";
import { RequestDrain } from "./_request_drain.ts";
import { ServerRequests } from "./_server_requests.ts";
import { Tasks } from "./_tasks.ts";
import { ToolCalls } from "./_tool_calls.ts";
import { type ServerNotification, UnknownNotifications } from "./_unknown_notifications.ts";
import { exposed } from "./exposure.ts";
import type { ExposureSettings } from "./options.ts";
import { capabilitiesOf, clientNameOf } from "./interaction/capabilities.ts";
import type { ClientRequest } from "./interaction/client_request.ts";
import { Interaction, type SealedStates } from "./interaction/interaction.ts";
import type { ClientInput } from "./interaction/client_input.ts";
import type { MetaCalls } from "./meta_calls.ts";
import { dispatch, type GatewayParts } from "./methods.ts";
import type { GatewayOptions } from "./options.ts";
import { RenderedLists } from "./rendered_lists.ts";

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
  readonly #interaction: Interaction;
  readonly #parts: GatewayParts;
  readonly #notifications: UnknownNotifications;
  /** The party of all requests without a session. */
  readonly #here: Party = {};

  /** Makes the face; nothing is asked of any server yet. */
  constructor(options: GatewayOptions) {
    const { servers, settings, onError } = options;
    const callTool: CallTool = (call) => {
      const { actor } = settings();
      // Questions of servers come with the actor "local".
      const own = call.actor === actor ? call : changedCall(call, { actor });
      return options.callTool(own).then((outcome) => this.#ordered(call, outcome));
    };
    this.#options = { ...options, callTool };
    const rendered = new RenderedLists();
    const offers = new Offers({ servers, rendered, prefix: () => settings().prefix });
    const clients = this.clients = new Clients(onError);
    const replica = () => this.replica;
    const interaction = this.#interaction = new Interaction({ ...this.#options, replica });
    const requests = new ServerRequests({ ...this.#options, interaction });
    const shared = { ...this.#options, replica, clients, offers, requests };
    const tasks = this.tasks = new Tasks(shared);
    const following = new Following(shared);
    const toolCalls = new ToolCalls(this.#options, interaction, tasks);
    this.#parts = {
      ...{ options: this.#options, clients, offers, rendered },
      ...{ requests, following, tasks, toolCalls },
    };
    const owners = { offers, servers, tasks };
    this.#notifications = new UnknownNotifications({ ...this.#options, clients, owners });
  }

  readonly connect: Face["connect"] = (peer, isModern, party = this.#here) =>
    this.#connectionOf(this.clients.add(peer, isModern, party));

  /** Returns what serves one client over a connection of its own. `end` waits for its requests. */
  apart(): Face & { readonly listen: () => Listening; readonly end: () => Promise<void> } {
    const drain = new RequestDrain();
    return {
      connect: (peer, isModern, party = drain) =>
        this.#connectionOf(this.clients.add(peer, isModern, party), drain),
      listen: () => this.listen({ party: drain }),
      end: () => drain.drain(),
    };
  }

  #connectionOf(client: Client, drain?: RequestDrain): Connection {
    return {
      isModern: client.isModern,
      serve: (given, context) => {
        const params = objectOf(given);
        return drain === undefined
          ? this.#serve(client, params, context)
          : drain.serve(context, () => this.#serve(client, params, context));
      },
      note: (notification) => this.#note(client, notification),
      close: () => {
        this.clients.remove(client);
        this.#parts.following.leave(client);
      },
    };
  }

  /** Passes on a notification of a server whose method no revision defines. */
  notified(server: string, notification: ServerNotification): void {
    this.#notifications.fromServer(server, notification);
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
        this.#parts.following.listen(listener, uris);
      },
      [Symbol.dispose]: () => {
        clients.listeners.delete(listener);
        follow();
        this.#parts.following.leave(listener);
      },
    };
  }

  /** Returns the tools that clients are shown, with some settings in place of the present ones. */
  exposed(
    settings: Partial<ExposureSettings> = {},
    { query }: { readonly query?: string | undefined } = {},
  ): Promise<readonly JsonObject[]> {
    const { options, rendered } = this.#parts;
    return exposed({ ...options.settings(), ...settings }, { ...options, rendered, query });
  }

  /** Returns the meta-tools. The first call loads their module. */
  async metaCalls(): Promise<MetaCalls> {
    return await this.#parts.toolCalls.metaCalls();
  }

  /** Returns the functions by which a client is asked outside of its requests. */
  inputFrom(client: Parameters<Interaction["inputFrom"]>[0]): ClientInput {
    return this.#interaction.inputFrom(client);
  }

  /** Cancels the work that waits for input of clients. */
  [Symbol.dispose](): void {
    this.#interaction[Symbol.dispose]();
  }

  #serve(client: Client, params: JsonObject, context: RequestContext): Promise<JsonObject> {
    const sender = this.#senderOf(client, context);
    client.capabilities = sender.capabilities;
    return dispatch({ ...sender, context, params }, this.#parts);
  }

  #note(client: Client, { method, params, envelope }: UnknownNotification): void {
    this.#notifications.fromClient({ ...this.#senderOf(client, { envelope }), method, params });
  }

  /** Returns a client as it describes itself in the `_meta` of a message, or in its `initialize`. */
  #senderOf(
    client: Client,
    message: Pick<RequestContext, "envelope">,
  ): Omit<ClientRequest, "context" | "params"> {
    const { peer } = client;
    const clientName = clientNameOf(message, peer);
    return {
      client,
      capabilities: capabilitiesOf(message, peer.getClientCapabilities()),
      clientName,
      toolset: () => this.#options.settings().toolsetFor?.(clientName),
    };
  }

  /** Returns an outcome after the notifications that its server sent before it. */
  #ordered(call: Call, outcome: Outcome): Maybe<Outcome> {
    if (outcome.kind !== "result") return outcome;
    const { server } = splitToolId(call.id);
    const linked = this.#linked(call, server, outcome);
    const pending = call.isNotification === true
      ? undefined
      : this.#notifications.pendingOf(server);
    return pending === undefined ? linked : pending.then(() => linked);
  }

  /** Remembers the resources that a result links: they may then be read. */
  #linked(
    call: Pick<Call, "method" | "task">,
    server: string,
    outcome: Extract<Outcome, { readonly kind: "result" }>,
  ): Outcome {
    if (call.method === "prompts/get") {
      this.#parts.offers.link(server, contentOf(outcome.result as unknown as JsonObject));
    }
    if (call.method !== undefined) return outcome;
    if (outcome.task !== undefined) return this.tasks.begun(call as Call, outcome);
    this.#parts.offers.link(server, outcome.result.content);
    return outcome;
  }
}

/** Returns the content of a prompt's messages. */
function contentOf({ messages }: JsonObject): readonly ContentBlock[] {
  const all = Array.isArray(messages) ? messages : [];
  return all.map((one) => objectOf(objectOf(one).content))
    .filter(({ type }) => typeof type === "string") as unknown as readonly ContentBlock[];
}
