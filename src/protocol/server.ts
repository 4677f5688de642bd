/**
 * Serves the messages of one connection, whichever transport carries them.
 *
 * The first message decides the kind of the connection: the one with `initialize`, or the one in
 * which each request names its revision.
 *
 * @module
 */

import { NO_CLIENT } from "./call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { durationText } from "../core/amounts.ts";
import { type JsonObject, objectOf } from "../core/json.ts";
import { after } from "../io/waiting.ts";
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
  lift,
  revisionOf,
  tokenError,
  unsupported,
} from "./envelope.ts";
import { greet, type Handshake, isInitialize } from "./initialize.ts";
import { errorText, type Message, type RequestMessage, resultText } from "./message.ts";
import { messageWith } from "./message_members.ts";
import { ResultTexts } from "./result_texts.ts";
import { OpenRequest, type RequestHost } from "./open_request.ts";
import { ERROR, type ErrorObject, NO_SUCH_METHOD, RpcError } from "./errors.ts";
import {
  isDefined,
  isOfOtherKind,
  type RevisionKind,
  STATELESS_REVISION,
  statelessPart,
} from "./revisions.ts";
import { type IncomingNotification, type PeerHost, RpcPeer } from "./rpc_peer.ts";
import { type Listened, ListenRequests, type Notification } from "./subscriptions.ts";

/** Sends messages to the client. */
export interface ClientTransport {
  /** Sends a notification or a request. `related` is the id, as JSON, of the request it belongs to. */
  send(message: JsonObject, related?: string): Promise<void>;
  /** Answers a request. `members` is the text of the answer's members; the id is JSON. */
  answer(id: string, members: string): void;
}

/** A message of PML to the client. */
interface OutgoingMessage {
  readonly method: string;
  readonly members?: JsonObject | undefined;
}

/** The options of `ProtocolServer`. */
export interface ProtocolServerOptions {
  readonly transport: ClientTransport;
  /** Returns PML's own description of itself. */
  readonly hello: (isStateless: boolean) => Hello;
  /** Receives the roots of the client. */
  readonly roots?: RootsReceiver | undefined;
  /** Receives the function that asks the client outside of its requests. */
  readonly questions?: QuestionsReceiver;
  /** Is called with all subscriptions of the client when they change. */
  readonly onListen: (listened: Listened) => void;
  /** Returns whether there is a task with this id. */
  readonly isTask: (id: string) => boolean;
}

/** Asks the client. Returns undefined if it refuses, is too late, or cannot be asked. */
export type AskClient = (
  method: string,
  options: ClientRequestOptions,
) => Promise<JsonObject | undefined>;

/** Receives the roots of a client. */
export interface RootsReceiver {
  /** Takes the function that asks the client for its roots. */
  connect(ask: () => Promise<JsonObject | undefined>): void;
  /** Is called when the client notifies that its roots have changed. */
  changed(): void;
  /** Is called when a client of an older revision has finished its handshake. */
  initialized?(): void;
}

/** Receives the function that asks a client outside of its requests. */
export interface QuestionsReceiver {
  /** Takes the function. */
  connect(ask: AskClient): void;
}

/** How long a client may take to return its roots, in milliseconds. */
const ROOTS_MS = 2_000;
const BAD_INITIALIZE =
  "Invalid params: initialize needs protocolVersion, capabilities, and clientInfo with name and version";

/** Serves one connection. */
export class ProtocolServer implements PeerHost, RequestHost, AsyncDisposable {
  readonly #connections: Promise<ConnectionFactory>;
  readonly #options: ProtocolServerOptions;
  readonly #transport: ClientTransport;
  readonly #peer: RpcPeer;
  readonly #subscriptions: ListenRequests;
  /** Writes the results. */
  readonly texts: ResultTexts;
  #revisionKind: RevisionKind | undefined;
  #greeted: Handshake | undefined;
  /** The members of its `initialize`. */
  #clientCapabilities = objectOf(undefined);
  #clientInfo = objectOf(undefined);
  #connecting: Promise<Connection> | undefined;
  #connection: Connection | undefined;
  /** Whether the client has listened for a resource or a task. */
  #hasListened = false;
  /** The lists whose change is notified with the next microtask. */
  readonly #changed = new Set<string>();

  /** Takes the factory that opens the connection and serves its requests. */
  constructor(connections: Promise<ConnectionFactory>, options: ProtocolServerOptions) {
    this.#connections = connections;
    this.#options = options;
    this.#transport = options.transport;
    this.texts = new ResultTexts(options.hello);
    this.#peer = new RpcPeer(this);
    this.#subscriptions = new ListenRequests(options.isTask);
    options.roots?.connect(() => this.#ask("roots/list", { ms: ROOTS_MS }));
    options.questions?.connect((method, how) => this.#ask(method, how));
  }

  /** Takes an `initialize` that was answered. */
  greeted(greeted: Handshake): void {
    this.#greeted = greeted;
    const params = objectOf(greeted.message.params);
    this.#clientCapabilities = objectOf(params.capabilities);
    this.#clientInfo = objectOf(params.clientInfo);
    this.#revisionKind = "handshake";
  }

  /** Opens the connection of a client that sent `initialize`, before its first other request. */
  async open(): Promise<void> {
    await (this.#connecting ??= this.#connect("handshake"));
  }

  /** Serves a message. */
  take(message: Message): void {
    if (message.kind === "cancel" && this.#subscriptions.close(message.request)) this.#listens();
    if (message.kind === "cancel" || message.kind === "notification") {
      this.#revisionKind ??= hasEnvelope(objectOf(message.message.params))
        ? "stateless"
        : "handshake";
    }
    this.#peer.receive(message);
  }

  /** Cancels everything and closes the connection. */
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
    const badToken = tokenError(params);
    if (badToken !== undefined) return this.#refuse(id, badToken);
    if (isInitialize(message) && !hasEnvelope(params)) return this.#initialize(message, id);
    const revisionKind = this.#revisionKind ?? (hasEnvelope(params) ? "stateless" : "handshake");
    const invalid = revisionKind === "stateless"
      ? envelopeError(params) ?? unsupported(revisionOf(params))
      : undefined;
    // An invalid first request does not decide the kind.
    if (invalid !== undefined && this.#revisionKind === undefined) return this.#refuse(id, invalid);
    // A client that asks for the revisions may choose the other kind afterwards.
    const part = revisionKind === "stateless" ? statelessPart(method) : undefined;
    if (part === "discover" && invalid === undefined) {
      return this.#answer(id, this.texts.discovered());
    }
    this.#revisionKind = revisionKind;
    const error = isOfOtherKind(method, revisionKind) ? NO_SUCH_METHOD : invalid;
    if (error !== undefined) return this.#refuse(id, error);
    if (part === "listen") return this.#listen(id, params);
    const open = new OpenRequest(request, revisionKind, this);
    if (open.members !== undefined) this.#peer.takesMembers = true;
    void this.#peer.serve(open);
  }

  #initialize(message: JsonObject, id: string): void {
    const { protocolVersion } = objectOf(message.params);
    if (this.#revisionKind === "stateless") {
      const error = unsupported(protocolVersion);
      if (error !== undefined) return this.#refuse(id, error);
    }
    this.#revisionKind ??= "handshake";
    const result = greet(message, this.#options.hello(false));
    if (result === undefined) {
      return this.#refuse(id, { code: ERROR.invalidParams, message: BAD_INITIALIZE });
    }
    this.greeted({ message, result });
    this.#answer(id, result);
  }

  #listen(id: string, params: JsonObject): void {
    const refusal = this.#subscriptions.open(id, params);
    if (refusal !== undefined) return this.#refuse(id, refusal);
    this.#listens();
    void this.#send(this.#subscriptions.acknowledgement(id));
  }

  #listens(): void {
    const listened = this.#subscriptions.listened;
    const listens = listened.uris.length + listened.tasks.length > 0;
    if (listens || this.#hasListened) this.#options.onListen(listened);
    this.#hasListened ||= listens;
  }

  /** Takes a notification. */
  onNotification(notification: IncomingNotification): void {
    const { method } = notification;
    if (notification.members !== undefined) this.#peer.takesMembers = true;
    if (method === "notifications/roots/list_changed") this.#options.roots?.changed();
    if (method === "notifications/initialized") this.#options.roots?.initialized?.();
    if (isDefined(method) && notification.members === undefined) return;
    // If no connection can be opened, the first request reports why.
    this.#pass(notification).catch(() => {});
  }

  /** Passes on a notification that PML does not know, or one with members that it does not know. */
  async #pass({ method, params: rawParams, members }: IncomingNotification): Promise<void> {
    const connecting = this.#connecting ??= this.#connect(this.#revisionKind ?? "handshake");
    const connection = this.#connection ?? await connecting;
    const { params, envelope } = lift(rawParams);
    connection.note({ method, params, members, envelope });
  }

  async #ask(method: string, options: ClientRequestOptions): Promise<JsonObject | undefined> {
    // In the stateless revision, a client can be asked only within a call.
    if (this.#revisionKind !== "handshake") return undefined;
    return await this.ask(method, options).catch(() => undefined);
  }

  /**
   * Sends a request to the client and returns its result. Rejects with the error of the client, with
   * -32001 if it takes too long, and with the reason of the signal.
   */
  async ask(
    method: string,
    { params, ms, signal, related, members, onProgress }: ClientRequestOptions,
  ): Promise<JsonObject> {
    using cancellation = signal === undefined ? new Cancellation() : Cancellation.of(signal);
    const late = () => {
      const why = `The client did not answer ${method} within ${durationText(ms)}`;
      cancellation.cancel(new RpcError(ERROR.requestTimeout, why));
    };
    using _ = after(ms, late);
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
      getClientCapabilities: () => this.#clientCapabilities,
      getClientVersion: () => this.#clientInfo,
      getNegotiatedProtocolVersion: () =>
        revisionKind === "stateless"
          ? STATELESS_REVISION
          : this.#greeted?.result.protocolVersion as string | undefined,
      notification: (one) => this.#notify(one),
      takesMembers: () => this.#peer.takesMembers === true,
    };
  }

  /** Sends a notification to a client that wants it. A list that changes often is notified once. */
  async #notify(one: Notification): Promise<void> {
    const { method } = one;
    const isPlain = one.params === undefined && one.members === undefined;
    if (isPlain && method.endsWith("/list_changed")) {
      if (this.#changed.has(method)) return;
      this.#changed.add(method);
      await Promise.resolve();
      this.#changed.delete(method);
    }
    const all = this.#revisionKind === "stateless" ? this.#subscriptions.copiesOf(one) : [one];
    await Promise.all(all.map((copy) => this.#send(copy)));
  }

  async #send(one: OutgoingMessage, related?: string): Promise<void> {
    await this.#transport.send(messageWith(one, this.#peer.takesMembers === true), related);
  }

  #answer(id: string, result: JsonObject): void {
    this.#transport.answer(id, resultText(result));
  }

  #refuse(id: string, error: ErrorObject): void {
    this.#transport.answer(id, errorText(error));
  }
}
