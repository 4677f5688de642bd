/**
 * A connection to an MCP server, over any transport: the handshake, requests, and the requests and
 * notifications of the server.
 *
 * @module
 */

import { messageOf, type PmlError } from "../../core/errors.ts";
import type { CallClient } from "../../protocol/call.ts";
import { durationText } from "../../core/amounts.ts";
import { Cancellation } from "../../core/cancellation.ts";
import {
  isObject,
  type Json,
  type JsonObject,
  objectOf,
  quoted,
  visible,
  withoutUndefined,
} from "../../core/json.ts";
import { tooLargeError } from "../../core/json_bounds.ts";
import { SKILLS_EXTENSION } from "../../protocol/extension_methods.ts";
import { type ListItem, type ListName, LISTS } from "../../protocol/lists.ts";
import { LimitedLog } from "../../io/limited_log.ts";
import { pause, unlessAborted, whenAborted } from "../../io/waiting.ts";
import { RpcError } from "../../protocol/errors.ts";
import { messageOfServer, type RequestMessage } from "../../protocol/message.ts";
import {
  type IncomingNotification,
  type PeerHost,
  type RequestId,
  type RequestOptions,
  RpcPeer,
  withoutClient,
} from "../../protocol/rpc_peer.ts";
import { startTimer } from "./_start_timer.ts";
import type { Living } from "../../io/pool.ts";
import { denialError } from "./_error_answers.ts";
import { type Agreement, shakeHands } from "./_handshake.ts";
import { ALL_CHANGES } from "./_meta.ts";
import { type StatelessConnection, StatelessRequests } from "./_stateless.ts";
import { type AnsweringConnection, IncomingRequests } from "./_incoming_requests.ts";
import { FollowedRequests } from "./_request_follower.ts";
import { Responsiveness, type WatchedConnection } from "./_responsiveness.ts";
import { answerRequest, type PeerRequest } from "./_server_requests.ts";
import { type ListConnection, logMessage, readList, type ReceivedList } from "./_read_list.ts";
import type { ListedTools, ListKey } from "./_server_lists.ts";
import { withAddresses } from "./_url_elicitation.ts";
import { type ResourceSubscription, withoutSubscription } from "./_subscriptions.ts";
import { BACKGROUND_REQUEST, runsTasks } from "./_task_methods.ts";
import {
  type Excess,
  type OpenWire,
  protocolError,
  SessionLost,
  type UpstreamServer,
  type Wire,
} from "./wire.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";

/** A notification of a server, or of PML in place of the server, which has no unknown members. */
export type PartialNotification =
  & Omit<IncomingNotification, "members">
  & Partial<IncomingNotification>;

/** The owner of the connections. */
export interface ConnectionOwner {
  /** The PML that the connection belongs to. */
  readonly host: UpstreamsHost;
  /** Aborts when the start is cancelled. */
  readonly closing: AbortSignal;
  /** Receives a notification. `client` is the client of the related request, if known. */
  onNotification(server: string, notification: PartialNotification, client?: CallClient): void;
  /** Is called when a server stops answering, and when it answers again or has ended. */
  onResponsive(server: string, isResponsive: boolean): void;
  /** Returns the definition of a tool, if it is known. */
  toolOf(server: UpstreamServer, tool: string): ListItem | undefined;
  /** Is called when a connection has ended. `isHung`: PML ended it because the server hung. */
  onConnectionEnd(connection: ServerConnection, server: UpstreamServer, isHung: boolean): void;
}

/** Decides which client capabilities servers get. */
interface CapabilitySource {
  capabilitiesFor(name: string, clientCapabilities?: JsonObject): JsonObject;
}

/** The options of a connection. */
interface ConnectionParts {
  readonly owner: ConnectionOwner;
  readonly declared: CapabilitySource;
  /** Whether only the older revisions are used, although the server supports the stateless one. */
  readonly isSession: boolean;
}

/** A member that JSON-RPC does not define: PML tests whether a server accepts such members. */
const PROBE = { message: { "pml/probe": true } };
const UPDATED = "notifications/resources/updated";
/** The maximum number of messages that answer no request. One more closes the connection. */
const STRAY_MAX = 10_000;
/** The maximum length of a server's output or log message in a log line, in characters. */
const OUTPUT_MAX = 4_000;
/** The maximum number of member names in a log line. */
const NAMES_MAX = 10;
/** How long `learnMembers` waits for the first answer after the second one, in milliseconds. */
const MEMBERS_MS = 500;
/** How long to wait before subscribing to changes again, in milliseconds. */
const LISTEN_MS = 5_000;

/** A connection to a server. */
export class ServerConnection
  implements
    Living,
    PeerHost,
    StatelessConnection,
    AnsweringConnection,
    WatchedConnection,
    ListConnection {
  /** The tools that the server has listed on this connection, by the key of its lists. */
  readonly listedTools: WeakMap<ListKey, ListedTools> = new WeakMap();
  /** Cancels a request on the wire, if the wire can do that. */
  readonly cancel: PeerHost["cancel"];
  /** Counts and traces the requests on this connection. */
  readonly follower: PeerHost["follower"];
  /** When the server last could not be reached. Since then, another program may answer. */
  lostAt = -Infinity;
  readonly #server: UpstreamServer;
  readonly #owner: ConnectionOwner;
  readonly #declared: CapabilitySource;
  readonly #isSession: boolean;
  readonly #host: UpstreamsHost;
  readonly #wire: Wire;
  readonly #peer: RpcPeer;
  readonly #incoming: IncomingRequests;
  readonly #responsiveness: Responsiveness;
  readonly #stateless: StatelessRequests;
  readonly #refusals = new LimitedLog();
  readonly #end = new AbortController();
  readonly #retired = new AbortController();
  /** The resources whose updates the server sends on the stream of this connection. */
  readonly #followed = new Set<string>();
  /** The number of messages that answered no request. */
  #strayCount = 0;
  /** The test whether the server accepts members that JSON-RPC does not define. */
  #memberTest: Promise<void> | undefined;
  /** Whether the next request needs another connection. */
  #isLost = false;
  /** Whether PML has subscribed to changes, in the stateless revision. */
  #isListening = false;
  #hasAgreed = false;
  #runsTasks = false;
  #agreed: Agreement = { isStateless: false, capabilities: {}, instructions: "" };
  #endError: PmlError | undefined;

  private constructor(
    server: UpstreamServer,
    open: OpenWire,
    { owner, declared, isSession }: ConnectionParts,
  ) {
    this.#server = server;
    this.#owner = owner;
    this.#declared = declared;
    this.#isSession = isSession;
    this.#host = owner.host;
    const wire = this.#wire = open({
      onMessage: (message, request) => this.#take(message, request),
      onExcess: (ends, excess) => this.#refuse(new TextDecoder().decode(ends), excess),
      onFailure: (id, error, { isLost }) => {
        this.#isLost ||= isLost;
        if (error.code === "UPSTREAM_DOWN") this.lostAt = performance.now();
        if (id !== undefined) this.#peer.fail(id, error);
        // The next connection follows the same resources.
        if (isLost) this.retire();
      },
      onProtocolError: (why) => this.#fail(this.protocolError(why)),
      // A call is only sent after the handshake, so a failed start never ran it.
      onEnd: (end) =>
        this.#fail(typeof end === "string" ? wire.downError(end, this.#hasAgreed) : end),
      onOutput: (text) => this.#log("debug", visible(text.trimEnd(), OUTPUT_MAX)),
      onMissed: () => this.#onMissed(),
      tool: (name) => owner.toolOf(server, name),
    });
    this.cancel = wire.cancel && ((id, params) => wire.cancel?.(id, params));
    this.follower = new FollowedRequests(server.name, owner.host, () => ({
      server: server.name,
      revision: this.#agreed.revision,
      address: wire.address,
      session: wire.sessionId,
    }));
    const peer = this.#peer = new RpcPeer(this);
    this.#incoming = new IncomingRequests(peer, this);
    this.#responsiveness = new Responsiveness(peer, this);
    this.#stateless = new StatelessRequests(peer, this);
  }

  /** Connects to a server and completes the handshake. */
  static async start(
    server: UpstreamServer,
    open: OpenWire,
    parts: ConnectionParts,
  ): Promise<ServerConnection> {
    const { host, closing } = parts.owner;
    using late = startTimer(server, host, closing);
    const connection = new ServerConnection(server, open, parts);
    try {
      await connection.#shakeHands(late.signal);
      return connection;
    } catch (error) {
      await connection[Symbol.asyncDispose]();
      throw error === late.signal.reason ? connection.#denied("") ?? error : error;
    }
  }

  get name(): string {
    return this.#server.name;
  }

  /** Returns the resident memory of the server's process, in bytes; 0 if there is none here. */
  rss(): number {
    return this.#wire.rss?.() ?? 0;
  }

  /** Aborts when the connection ends. */
  get endSignal(): AbortSignal {
    return this.#end.signal;
  }

  /** Whether the connection accepts requests. Once it has ended, it never accepts any again. */
  get isAlive(): boolean {
    return this.#endError === undefined;
  }

  /** The number of requests without an answer, including cancelled ones. */
  get pending(): number {
    return this.#peer.pendingCount;
  }

  /** Whether the connection was lost, or the server has stopped answering. */
  get isHung(): boolean {
    return this.#isLost || this.#responsiveness.isHung;
  }

  /** Whether the server sends notifications when its lists change. */
  get reportsChanges(): boolean {
    return this.#wire.reportsChanges || this.#isListening;
  }

  /** How to use the server, for models; "" if it has no instructions. */
  get instructions(): string {
    return this.#agreed.instructions;
  }

  /** Whether the connection uses the stateless revision: each request declares capabilities. */
  get isStateless(): boolean {
    return this.#agreed.isStateless;
  }

  /** Whether the server may have sessions for clients of the older revisions. */
  get mayHaveSession(): boolean {
    return this.#agreed.isStateless && this.#wire.revisions?.mayHaveSession === true;
  }

  /** Remembers that a session of the older revisions could not be opened. */
  foundNoSession(how: { readonly isRefused: boolean }): void {
    this.#wire.revisions?.foundNoSession?.(how);
  }

  /** Whether the server can run tools as tasks, in an older revision. */
  get runsTasks(): boolean {
    return this.#runsTasks;
  }

  /** The ids of the extensions that the server declared. */
  get extensions(): readonly string[] {
    return Object.keys(objectOf(this.#agreed.capabilities.extensions));
  }

  /** The capabilities that the server declared. */
  get capabilities(): JsonObject {
    return this.#agreed.capabilities;
  }

  /** Whether the server lists the children of a directory. */
  get readsDirectories(): boolean {
    const { extensions } = this.#agreed.capabilities;
    return objectOf(objectOf(extensions)[SKILLS_EXTENSION]).directoryRead === true;
  }

  /** Whether the server declared a capability, such as `resources`. */
  hasCapability(capability: string): boolean {
    return isObject(this.#agreed.capabilities[capability]);
  }

  /**
   * Sends a request and returns the unchanged result. Until then, answers the requests of the
   * server. Throws `RpcError` if the server answers with an error.
   */
  request(method: string, params: JsonObject, options: RequestOptions): Promise<Json> {
    if (this.isStateless) return this.#stateless.request(method, params, options);
    return this.#peer.request(method, params, options);
  }

  send(message: JsonObject): void {
    this.#wire.send(message);
  }

  answer(request: PeerRequest): Promise<JsonObject> {
    const { name } = this;
    return answerRequest(request, { name, host: this.#host, refusals: this.#refusals });
  }

  capabilitiesFor(clientCapabilities?: JsonObject): JsonObject {
    return this.#declared.capabilitiesFor(this.name, clientCapabilities);
  }

  clientInfo(info?: JsonObject): JsonObject | undefined {
    return this.#host.clients.clientInfo(info);
  }

  /** Returns the error for a server that breaks the protocol. */
  protocolError(why: string): PmlError {
    return this.#denied(why) ?? protocolError(this.name, why);
  }

  /** Reads an error response, and removes secrets from it. */
  errorOf(error: unknown): RpcError {
    return RpcError.of(withAddresses(this.#host.withoutSecrets(error), error));
  }

  /** Takes a request of the server. */
  onRequest(request: RequestMessage, stream?: RequestId): void {
    this.#incoming.take(request, stream);
  }

  notify(method: string, params: JsonObject, options: RequestOptions): void {
    if (this.isStateless) this.#stateless.notify(method, params, options);
    else this.#peer.notify(method, params, options);
  }

  /**
   * Finds out whether the server accepts members that JSON-RPC does not define, before PML sends a
   * message with such members. Returns undefined if the message has none, or if the result is
   * known. Servers with the TypeScript SDK ignore such a message. So PML sends a request with such
   * a member and then one without, and waits for both answers. Rejects if the message is cancelled:
   * then the server may hang, so it is watched as after a cancelled request.
   */
  learnMembers(
    { members, cancellation }: Pick<RequestOptions, "members" | "cancellation">,
  ): Promise<void> | undefined {
    if (members?.message === undefined || this.#peer.takesMembers !== undefined) return undefined;
    const activeAt = performance.now();
    return unlessAborted(
      this.#memberTest ??= this.#learnMembers(),
      cancellation.signal,
      (signal) => {
        const { reason } = signal;
        this.#responsiveness.onRequestCancelled({ activeAt, reason });
        return reason;
      },
    );
  }

  async #learnMembers(): Promise<void> {
    using cancellation = Cancellation.of(this.#end.signal);
    const { method, params } = this.probe();
    const options = { ...withoutClient(cancellation), isLongLived: true };
    const trial = this.#peer.request(method, params, { ...options, members: PROBE, isTrial: true });
    const plain = this.#peer.request(method, params, options);
    const settled = plain.catch(() => {}).then(() => pause(MEMBERS_MS, this.#end.signal));
    this.#peer.takesMembers = await Promise.race([
      trial.then(() => true, () => false),
      settled.then(() => false, () => false),
    ]);
    cancellation.cancel(new Error("The answer is not needed"));
  }

  answersTo(result: JsonObject, options: RequestOptions): Promise<JsonObject> {
    return this.#stateless.answersTo(result, options);
  }

  /** Requests a list. Returns an empty list if the server does not declare the list. */
  async list(name: ListName, signal: AbortSignal): Promise<ReceivedList> {
    const { capability, extension } = LISTS[name];
    const isDeclared = this.hasCapability(capability) &&
      (extension === undefined || this.extensions.includes(extension));
    // A server may have tools without declaring the capability.
    if (name !== "tools" && !isDeclared) {
      return { items: [], ttlMs: undefined };
    }
    using cancellation = Cancellation.of(signal);
    const max = this.#host.limits.catalogTools;
    return await readList(name, this, { ...withoutClient(cancellation), max });
  }

  /** Ends the subscriptions of this connection, because another connection replaces it. */
  retire(): void {
    this.#retired.abort(new SessionLost(this.name));
  }

  /** Follows a resource or a task until the signal aborts or the connection is retired. */
  async follow(
    { uri, isTask, signal, onAgreed }: Omit<ResourceSubscription, "server">,
  ): Promise<void> {
    const { signal: over } = this.#end;
    const ending = AbortSignal.any([signal, over, this.#retired.signal]);
    using cancellation = Cancellation.of(ending);
    const options = withoutClient(cancellation);
    if (this.isStateless) {
      onAgreed();
      const filter: JsonObject = isTask ? { taskIds: [uri] } : { resourceSubscriptions: [uri] };
      return await this.#stateless.listen(filter, { ...options, takesTasks: isTask === true });
    }
    await this.#peer.request("resources/subscribe", { uri }, options);
    onAgreed();
    this.#followed.add(uri);
    await whenAborted(ending);
    this.#followed.delete(uri);
    if (this.isAlive && !this.#isLost) {
      this.#peer.request("resources/unsubscribe", { uri }, BACKGROUND_REQUEST).catch(() => {});
    }
  }

  /** Sets the log level of the server, if it has one. */
  setLevel(level: string): void {
    if (this.isStateless || !this.hasCapability("logging")) return;
    // An error is ignored: the server may refuse the level.
    this.#peer.request("logging/setLevel", { level }, BACKGROUND_REQUEST).catch(() => {});
  }

  /** Notifies the server that its roots have changed. Stateless servers request them when needed. */
  rootsChanged(): void {
    if (!this.isStateless && this.isAlive) {
      this.#wire.send({ method: "notifications/roots/list_changed" });
    }
  }

  /** Closes the connection and its wire. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#fail(this.#wire.downError("it was closed", false));
    await this.#wire.close();
  }

  async #shakeHands(signal: AbortSignal): Promise<void> {
    const agreed = this.#agreed = await shakeHands({
      connection: this,
      wire: this.#wire,
      peer: this.#peer,
      incoming: this.#incoming,
      stateless: this.#stateless,
      isSession: this.#isSession,
      signal,
    });
    this.#hasAgreed = true;
    const { isStateless, capabilities } = agreed;
    this.#runsTasks = runsTasks(capabilities);
    const isNotifying = Object.values(capabilities).some((one) => isObject(one) && one.listChanged);
    if (isStateless && isNotifying) void this.#listenForChanges();
  }

  /** Subscribes to changes until the connection ends or the server refuses. */
  async #listenForChanges(): Promise<void> {
    const { signal } = this.#end;
    while (this.isAlive) {
      this.#isListening = true;
      const end = await this.#stateless.listen(ALL_CHANGES, BACKGROUND_REQUEST).catch((error) =>
        error
      );
      this.#isListening = false;
      if (!(end instanceof RpcError)) this.lostAt = performance.now();
      // On pipes, the subscription lasts as long as the process.
      if (end instanceof RpcError || this.#wire.reportsChanges) return;
      await pause(LISTEN_MS, signal);
      if (this.isAlive) this.#onMissed();
    }
  }

  /** Reports all lists and followed resources as changed: notifications may have been lost. */
  #onMissed(): void {
    for (const uri of this.#followed) {
      this.#owner.onNotification(this.name, { method: UPDATED, params: { uri } });
    }
    for (const list of ["tools", "resources", "prompts"]) {
      const method = `notifications/${list}/list_changed`;
      this.#owner.onNotification(this.name, { method, params: {} });
    }
  }

  #take(message: unknown, request: RequestId | undefined): void {
    try {
      if (!this.#receive(message, request) && !this.#failHandshake(message)) this.#countStray();
    } catch (error) {
      this.#fail(this.protocolError(`it sent an invalid message: ${messageOf(error)}`));
    }
  }

  #receive(message: unknown, request?: RequestId): boolean {
    const parsed = messageOfServer(message);
    if (parsed?.kind !== "cancel") {
      return parsed !== undefined && this.#peer.receive(parsed, request);
    }
    const reason = this.#host.withoutSecrets(parsed.reason);
    return this.#peer.receive({ ...parsed, reason }, request);
  }

  /**
   * Fails the request of the handshake if the message is an error without an id: a server that
   * could not read a request does not know its id. Returns false for other messages.
   */
  #failHandshake(message: unknown): boolean {
    if (this.#hasAgreed || !isObject(message) || !isObject(message.error)) return false;
    const id = this.#peer.onlyRequestId;
    return (message.id ?? null) === null && id !== undefined &&
      this.#receive({ ...message, id });
  }

  /** Fails the request whose answer is over the limits. */
  #refuse(ends: string, excess: Excess): void {
    const what = `what ${quoted(this.name)} answered`;
    if (this.#peer.refuse(ends, tooLargeError(what, excess))) return;
    this.#log("warn", `A message was dropped: ${excess.why}`);
    this.#countStray();
  }

  /** Handles a notification of the server: logs it if it is a log message, and passes it on. */
  onNotification(
    { method, params: original, members }: IncomingNotification,
    request?: RequestId,
  ): void {
    const { name } = this;
    const [owner, host] = [this.#owner, this.#host];
    const cleaned = withoutSubscription(host.withoutSecrets(original));
    // The URI is compared with the followed URIs, so it stays as the server sent it.
    const uri = method === UPDATED ? withoutUndefined({ uri: original.uri }) : undefined;
    const params = uri === undefined ? cleaned : { ...cleaned, ...uri };
    const others = members && { members: host.withoutSecrets(members) };
    if (method !== "notifications/message") {
      const client = this.#peer.clientOf(request);
      return owner.onNotification(name, { method, params, ...others }, client);
    }
    this.#log("debug", visible(JSON.stringify(params.data) ?? "", OUTPUT_MAX));
    const message = logMessage(name, params);
    this.#peer.optionsOf("onMessage", request)?.client.onMessage?.(message, others?.members);
    owner.onNotification(name, { method, params: message, ...others });
  }

  /** Logs which members of a message are not passed on. */
  onDropped(method: string, members: JsonObject): void {
    const names = Object.keys(members).slice(0, NAMES_MAX).map((name) => quoted(name, 100));
    const text = `Members of a message were not passed on (${quoted(method, 100)}): ` +
      names.join(", ");
    this.#refusals.write(text, text, (line) => this.#log("info", line));
  }

  /** Returns a request that checks whether the server answers. */
  probe(): { readonly method: string; readonly params?: JsonObject } {
    return this.isStateless ? this.#stateless.probe() : { method: "ping" };
  }

  #countStray(): void {
    if (++this.#strayCount <= STRAY_MAX) return;
    this.#fail(this.protocolError(`it sent over ${STRAY_MAX} messages that answer no request`));
  }

  #denied(text: string): PmlError | undefined {
    const denial = this.#wire.denial?.(text);
    return denial && denialError(this.name, denial);
  }

  /** Notes that the server stopped answering, or that it answers again or has ended. */
  onResponsive(isResponsive: boolean): void {
    if (isResponsive) this.#log("info", "answers again, or has ended");
    else this.#log("warn", "does not answer while calls wait for it");
    this.#owner.onResponsive(this.name, isResponsive);
  }

  /** Ends a server that did not answer for `ms` milliseconds. */
  onHung(ms: number): void {
    const why = `it did not answer for ${durationText(Math.round(ms / 1_000) * 1_000)}`;
    this.#log("warn", `was ended: ${why}`);
    this.#fail(
      this.#wire.downError(`${why}, was restarted; whether it ran is not known`, true),
      true,
    );
  }

  /** Ends the connection: pending requests fail with the error, and no further message is sent. */
  #fail(error: PmlError, isHung = false): void {
    if (this.#endError) return;
    this.#endError = error;
    this.#responsiveness[Symbol.dispose]();
    this.#peer.end(error);
    this.#end.abort(error);
    if (isHung || error.code === "UPSTREAM_PROTOCOL") this.#wire.kill();
    this.#owner.onConnectionEnd(this, this.#server, isHung);
  }

  #log(level: "debug" | "info" | "warn", text: string): void {
    this.#host.logServer(this.name, level, text);
  }
}
