/**
 * Serves the messages of one connection, for all transports.
 *
 * The first message decides whether the connection has a handshake (`initialize`), or each request
 * names its revision.
 *
 * @module
 */

import { NO_CLIENT } from "./call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { durationText } from "../core/amounts.ts";
import { type JsonObject, objectOf } from "../core/json.ts";
import { callAfter } from "../io/waiting.ts";
import type { Maybe } from "../core/maybe.ts";
import type {
  ClientPeer,
  ClientRequestOptions,
  Connection,
  ConnectionFactory,
  Hello,
  SentNotification,
} from "./connection.ts";
import {
  envelopeError,
  hasEnvelope,
  revisionError,
  revisionOf,
  separateReserved,
  tokenError,
} from "./envelope.ts";
import { type Handshake, initializeResult, isInitialize } from "./initialize.ts";
import { errorText, type Message, type RequestMessage, resultText } from "./message.ts";
import { messageWith } from "./message_members.ts";
import { OpenRequest, type RequestHost, ResultTexts } from "./open_request.ts";
import { ERROR, type ErrorObject, NO_SUCH_METHOD, RpcError } from "./errors.ts";
import {
  isDefinedMethod,
  isOfOtherKind,
  type RevisionKind,
  STATELESS_REVISION,
  statelessPart,
} from "./revisions.ts";
import { type IncomingNotification, type PeerHost, RpcPeer } from "./rpc_peer.ts";
import { type ListenedItems, ListenRequests, type Notification } from "./subscriptions.ts";

/** Sends messages to the client. */
export interface ClientTransport {
  /**
   * Sends a notification or a request. `related` is the id, as JSON, of the client's request to which
   * the message belongs.
   */
  send(message: JsonObject, related?: string): Promise<void>;
  /** Answers a request. `id` is JSON; `members` is the text of the answer's members. */
  answer(id: string, members: string): void;
}

/** A notification to the client. */
interface OutgoingMessage {
  readonly method: string;
  readonly members?: JsonObject | undefined;
}

/** The collaborators of a connection. */
export interface ProtocolHost {
  /** The id of the HTTP session, if the connection is a session. */
  readonly sessionId?: string;
  /** Receives the roots of the client. */
  readonly roots?: RootsReceiver;
  /** Receives the function that asks the client outside of its requests. */
  readonly questions?: QuestionsReceiver;
  /** Returns PML's own description of itself. */
  hello(isStateless: boolean): Hello;
  /** Receives all subscriptions of the client after each change. */
  listensTo(listened: ListenedItems): void;
  /** Returns whether there is a task with this id. */
  isTask(id: string): boolean;
}

/** Asks the client. Returns undefined if it refuses, answers too late, or cannot be asked. */
export type AskClient = (
  method: string,
  options: ClientRequestOptions,
) => Promise<JsonObject | undefined>;

/** Receives the roots of a client. */
export interface RootsReceiver {
  /** Takes the function that asks the client for its roots. */
  connect(ask: () => Promise<JsonObject | undefined>): void;
  /** Is called when the client notifies that its roots have changed. */
  onChanged(): void;
  /** Is called when a client of an older revision has finished its handshake. */
  onInitialized?(): void;
}

/** Receives the function that asks a client outside of its requests. */
export interface QuestionsReceiver {
  /** Takes the function that asks the client. */
  connect(ask: AskClient): void;
}

/** How long a client may take to return its roots, in milliseconds. */
const ROOTS_MS = 2_000;
const BAD_INITIALIZE =
  "Invalid params: initialize needs protocolVersion, capabilities, and clientInfo with name and version";

/** Serves one connection. */
export class ProtocolServer implements PeerHost, RequestHost, AsyncDisposable {
  readonly #connections: Promise<ConnectionFactory>;
  readonly #host: ProtocolHost;
  readonly #transport: ClientTransport;
  readonly #peer: RpcPeer;
  readonly #subscriptions: ListenRequests;
  /** Writes the results. */
  readonly texts: ResultTexts;
  #revisionKind: RevisionKind | undefined;
  #handshake: Handshake | undefined;
  /** The capabilities in `initialize`. */
  #clientCapabilities = objectOf(undefined);
  #clientInfo = objectOf(undefined);
  #connecting: Promise<Connection> | undefined;
  #connection: Connection | undefined;
  /** Whether the client has listened for a resource or a task. */
  #hasListened = false;
  /** The methods of the notifications about lists that the next microtask sends. */
  readonly #changedLists = new Set<string>();

  /** Takes the factory that opens the connection and serves its requests. */
  constructor(
    connections: Promise<ConnectionFactory>,
    transport: ClientTransport,
    host: ProtocolHost,
  ) {
    this.#connections = connections;
    this.#host = host;
    this.#transport = transport;
    this.texts = new ResultTexts((isStateless) => host.hello(isStateless));
    this.#peer = new RpcPeer(this);
    this.#subscriptions = new ListenRequests((id) => host.isTask(id));
    host.roots?.connect(() => this.#ask("roots/list", { ms: ROOTS_MS }));
    host.questions?.connect((method, options) => this.#ask(method, options));
  }

  /** Takes a handshake that the transport has answered already. */
  takeHandshake(handshake: Handshake): void {
    this.#handshake = handshake;
    const params = objectOf(handshake.message.params);
    this.#clientCapabilities = objectOf(params.capabilities);
    this.#clientInfo = objectOf(params.clientInfo);
    this.#revisionKind = "handshake";
  }

  /** Opens the connection of a client that sent `initialize`, before its first other request. */
  async open(): Promise<void> {
    await (this.#connecting ??= this.#connect("handshake"));
  }

  /** Handles a message of the client. */
  receive(message: Message): void {
    if (message.kind === "cancel" && this.#subscriptions.close(message.request)) {
      this.#reportListened();
    }
    if (message.kind === "cancel" || message.kind === "notification") {
      this.#revisionKind ??= hasEnvelope(objectOf(message.message.params))
        ? "stateless"
        : "handshake";
    }
    this.#peer.receive(message);
  }

  /** Cancels all requests and closes the connection. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#peer.end(new Error("Connection closed"));
    const [connection] = await Promise.allSettled([this.#connecting]);
    if (connection.status === "fulfilled") connection.value?.close();
  }

  /** Sends a message of the peer. */
  send(message: JsonObject, related?: string): void {
    void this.#transport.send({ jsonrpc: "2.0", ...message }, related);
  }

  /** Returns the connection. Opens it if it is not open. */
  connection(revisionKind: RevisionKind): Maybe<Connection> {
    return this.#connection ?? (this.#connecting ??= this.#connect(revisionKind));
  }

  /** Sends the answer to a request. */
  answer(id: string, members: string): void {
    this.#transport.answer(id, members);
  }

  /** Sends a notification that belongs to a request. */
  notify(notification: SentNotification, related: string): Promise<void> {
    return this.#send(notification, related);
  }

  /** Returns whether the client has sent, and so takes, members that JSON-RPC does not define. */
  takesMembers(): boolean {
    return this.#peer.takesMembers === true;
  }

  /** Serves a request. */
  onRequest(request: RequestMessage): void {
    const { message, id } = request;
    const { method } = message as JsonObject & { readonly method: string };
    const params = objectOf(message.params);
    const tokenProblem = tokenError(params);
    if (tokenProblem !== undefined) return this.#refuse(id, tokenProblem);
    if (isInitialize(message) && !hasEnvelope(params)) return this.#initialize(message, id);
    const revisionKind = this.#revisionKind ?? (hasEnvelope(params) ? "stateless" : "handshake");
    const envelopeProblem = revisionKind === "stateless"
      ? envelopeError(params) ?? revisionError(revisionOf(params))
      : undefined;
    // An invalid first request does not decide whether the connection has a handshake.
    if (envelopeProblem !== undefined && this.#revisionKind === undefined) {
      return this.#refuse(id, envelopeProblem);
    }
    // After `server/discover`, a client may still begin a handshake.
    const part = revisionKind === "stateless" ? statelessPart(method) : undefined;
    if (part === "discover" && envelopeProblem === undefined) {
      return this.#answer(id, this.texts.discoverResult());
    }
    this.#revisionKind = revisionKind;
    const error = isOfOtherKind(method, revisionKind) ? NO_SUCH_METHOD : envelopeProblem;
    if (error !== undefined) return this.#refuse(id, error);
    if (part === "listen") return this.#listen(id, params);
    const open = new OpenRequest(request, revisionKind, this);
    if (open.members !== undefined) this.#peer.takesMembers = true;
    void this.#peer.serve(open);
  }

  #initialize(message: JsonObject, id: string): void {
    const { protocolVersion } = objectOf(message.params);
    if (this.#revisionKind === "stateless") {
      const error = revisionError(protocolVersion);
      if (error !== undefined) return this.#refuse(id, error);
    }
    this.#revisionKind ??= "handshake";
    const result = initializeResult(message, this.#host.hello(false));
    if (result === undefined) {
      return this.#refuse(id, { code: ERROR.invalidParams, message: BAD_INITIALIZE });
    }
    this.takeHandshake({ message, result });
    this.#answer(id, result);
  }

  #listen(id: string, params: JsonObject): void {
    const refusal = this.#subscriptions.open(id, params);
    if (refusal !== undefined) return this.#refuse(id, refusal);
    this.#reportListened();
    void this.#send(this.#subscriptions.acknowledgement(id));
  }

  #reportListened(): void {
    const listened = this.#subscriptions.listened;
    const listens = listened.uris.length + listened.tasks.length > 0;
    if (listens || this.#hasListened) this.#host.listensTo(listened);
    this.#hasListened ||= listens;
  }

  /** Takes a notification. */
  onNotification(notification: IncomingNotification): void {
    const { method } = notification;
    if (notification.members !== undefined) this.#peer.takesMembers = true;
    if (method === "notifications/roots/list_changed") this.#host.roots?.onChanged();
    if (method === "notifications/initialized") this.#host.roots?.onInitialized?.();
    if (isDefinedMethod(method) && notification.members === undefined) return;
    // If no connection can be opened, the first request reports why.
    this.#passOn(notification).catch(() => {});
  }

  /** Passes on a notification with an unknown method, or with unknown members. */
  async #passOn({ method, params: rawParams, members }: IncomingNotification): Promise<void> {
    const connecting = this.#connecting ??= this.#connect(this.#revisionKind ?? "handshake");
    const connection = this.#connection ?? await connecting;
    const { params, envelope } = separateReserved(rawParams);
    connection.handleNotification({ method, params, members, envelope });
  }

  async #ask(method: string, options: ClientRequestOptions): Promise<JsonObject | undefined> {
    // In the stateless revision, a client can be asked only within a call.
    if (this.#revisionKind !== "handshake") return undefined;
    return await this.ask(method, options).catch(() => undefined);
  }

  /**
   * Sends a request to the client and returns its result. Rejects with the error of the client,
   * with -32001 after `ms` milliseconds, or with the reason of the signal.
   */
  async ask(
    method: string,
    { params, ms, signal, related, members, onProgress }: ClientRequestOptions,
  ): Promise<JsonObject> {
    using cancellation = signal === undefined ? new Cancellation() : Cancellation.of(signal);
    const onTimeout = () => {
      const why = `The client did not answer ${method} within ${durationText(ms)}`;
      cancellation.cancel(new RpcError(ERROR.requestTimeout, why));
    };
    using _ = callAfter(ms, onTimeout);
    const others = members && { message: members };
    const client = onProgress === undefined ? NO_CLIENT : { onProgress };
    const options = { cancellation, client, related, members: others };
    return objectOf(await this.#peer.request(method, params, options));
  }

  async #connect(revisionKind: RevisionKind): Promise<Connection> {
    const connections = await this.#connections;
    return this.#connection = connections.connect(
      this.#client(revisionKind),
      revisionKind === "stateless",
    );
  }

  #client(revisionKind: RevisionKind): ClientPeer {
    return {
      sessionId: this.#host.sessionId,
      getClientCapabilities: () => this.#clientCapabilities,
      getClientVersion: () => this.#clientInfo,
      getNegotiatedProtocolVersion: () =>
        revisionKind === "stateless"
          ? STATELESS_REVISION
          : this.#handshake?.result.protocolVersion as string | undefined,
      notification: (notification) => this.#notify(notification),
      takesMembers: () => this.#peer.takesMembers === true,
    };
  }

  /**
   * Sends a notification if the client wants it. Sends several changes of a list in one turn as one
   * notification.
   */
  async #notify(notification: Notification): Promise<void> {
    const { method } = notification;
    const isPlain = notification.params === undefined && notification.members === undefined;
    if (isPlain && method.endsWith("/list_changed")) {
      if (this.#changedLists.has(method)) return;
      this.#changedLists.add(method);
      await Promise.resolve();
      this.#changedLists.delete(method);
    }
    const copies = this.#revisionKind === "stateless"
      ? this.#subscriptions.copiesOf(notification)
      : [notification];
    await Promise.all(copies.map((copy) => this.#send(copy)));
  }

  async #send(message: OutgoingMessage, related?: string): Promise<void> {
    await this.#transport.send(messageWith(message, this.#peer.takesMembers === true), related);
  }

  #answer(id: string, result: JsonObject): void {
    this.#transport.answer(id, resultText(result));
  }

  #refuse(id: string, error: ErrorObject): void {
    this.#transport.answer(id, errorText(error));
  }
}
