/**
 * A connection to an MCP server, over any transport: the handshake, requests, and the requests and
 * notifications of the server.
 *
 * @module
 */

import { messageOf } from "../../core/errors.ts";
import type { CallClient } from "../../protocol/call.ts";
import { durationText } from "../../core/amounts.ts";
import { Cancellation } from "../../core/cancellation.ts";
import type { PmlError } from "../../core/errors.ts";
import {
  isObject,
  type Json,
  type JsonObject,
  objectOf,
  quoted,
  visible,
} from "../../core/json.ts";
import { tooLargeError } from "../../core/json_bounds.ts";
import { SKILLS_EXTENSION } from "../../protocol/extension_methods.ts";
import { type ListItem, type ListName, LISTS } from "../../protocol/lists.ts";
import { withoutNamed } from "../../protocol/result_members.ts";
import { LimitedLog } from "../../io/limited_log.ts";
import { aborted, pause, unlessAborted } from "../../io/waiting.ts";
import { RpcError } from "../../protocol/errors.ts";
import { messageOfServer, type RequestMessage } from "../../protocol/message.ts";
import { SUBSCRIPTION } from "../../protocol/subscriptions.ts";
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
import { deniedTo } from "./_answers.ts";
import { type Agreement, shakeHands } from "./_handshake.ts";
import { ALL_CHANGES } from "./_meta.ts";
import { type StatelessConnection, StatelessRequests } from "./_stateless.ts";
import { type AnsweringConnection, IncomingRequests } from "./_incoming_requests.ts";
import { Responsiveness, type WatchedConnection } from "./_responsiveness.ts";
import { answerRequest, type PeerRequest } from "./_server_requests.ts";
import { type ListConnection, logMessage, type ReadList, readList } from "./_read.ts";
import type { ListedTools } from "./_server_lists.ts";
import type { ListKey } from "./_server_lists.ts";
import { withAddresses } from "./_url_elicitation.ts";
import type { ResourceSubscription } from "./_subscriptions.ts";
import { ASIDE, runsTasks } from "./_task_methods.ts";
import { type Excess, type OpenWire, protocolError, SessionLost, type Wire } from "./wire.ts";
import type { UpstreamServer } from "./upstream_server.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";

/** A notification of a server. */
export type PartialNotification =
  & Omit<IncomingNotification, "members">
  & Partial<IncomingNotification>;

/** The owner of the connections. */
export interface ConnectionOwner {
  /** The PML that the connection belongs to. */
  readonly host: UpstreamsHost;
  /** Aborts when the start is cancelled. */
  readonly closing: AbortSignal;
  /**
   * Receives the notifications of a server. `client` is the client of the request that one belongs
   * to, if that is known.
   */
  notified(server: string, notification: PartialNotification, client?: CallClient): void;
  /** Is called when a server stops answering, and when it answers again or has ended. */
  responds(server: string, isResponsive: boolean): void;
  /** Returns the definition of a tool, if it is known. */
  toolOf(server: UpstreamServer, tool: string): ListItem | undefined;
  /** Is called when a connection has ended. `isHung`: PML ended it, and nothing else did. */
  ended(connection: ServerConnection, server: UpstreamServer, isHung: boolean): void;
}

/** The capabilities of clients that servers get. */
interface CapabilitySource {
  capabilitiesFor(name: string, able?: JsonObject): JsonObject;
}

/** The options of a connection, besides its server. */
interface ConnectionParts {
  readonly owner: ConnectionOwner;
  readonly declared: CapabilitySource;
  /** Whether it is a session of the older revisions, although the server has the newest one. */
  readonly isSession: boolean;
}

/** The member by which PML finds out whether a server takes such members. */
const PROBE = { message: { "pml/probe": true } };
const UPDATED = "notifications/resources/updated";
/** How many invalid messages a server may send before the connection is closed. */
const STRAY_MAX = 10_000;
const TAIL = 4_000;
/** The maximum number of names of members in a line of the log. */
const NAMES_MAX = 10;
/**
 * How much later than the second one the answer to the first of two requests may come, in
 * milliseconds.
 */
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
  /** The tools that the server has listed on this connection, by the owner of the list. */
  readonly listedTools: WeakMap<ListKey, ListedTools> = new WeakMap();
  /** Cancels a request on the wire, if the wire can do that. */
  readonly cancel: PeerHost["cancel"];
  /** When the server could not be reached last, by `performance.now()`: it may have changed. */
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
  readonly #over = new AbortController();
  readonly #retired = new AbortController();
  /** The resources whose updates the server sends on the stream of this connection. */
  readonly #followed = new Set<string>();
  #stray = 0;
  #learning: Promise<void> | undefined;
  #isLost = false;
  #isListening = false;
  #isGreeted = false;
  #runsTasks = false;
  #agreed: Agreement = { isStateless: false, capabilities: {}, instructions: "" };
  #dead: PmlError | undefined;

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
      excess: (ends, excess) => this.#refuse(new TextDecoder().decode(ends), excess),
      onFailure: (id, error, { isOver }) => {
        this.#isLost ||= isOver;
        if (error.code === "UPSTREAM_DOWN") this.lostAt = performance.now();
        if (id !== undefined) this.#peer.fail(id, error);
        // Another connection follows the same resources.
        if (isOver) this.retire();
      },
      onProtocolError: (why) => this.#fail(this.protocolError(why)),
      onEnd: (error) => this.#fail(error),
      onOutput: (text) => this.#log("debug", visible(text.trimEnd(), TAIL)),
      onMissed: () => this.#onMissed(),
      tool: (name) => owner.toolOf(server, name),
    });
    this.cancel = wire.cancel && ((id, params) => wire.cancel?.(id, params));
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
    const { name } = server;
    const { host, closing } = parts.owner;
    using late = startTimer(name, host, closing);
    const connection = new ServerConnection(server, open, parts);
    try {
      await connection.#shakeHands(late.signal);
      return connection;
    } catch (error) {
      await connection[Symbol.asyncDispose]();
      throw error === late.signal.reason ? connection.#denied("") ?? error : error;
    }
  }

  /** The name of its server. */
  get name(): string {
    return this.#server.name;
  }

  /** Aborts when the connection ends. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  /** Whether it takes requests. Once it has ended, it never does again. */
  get alive(): boolean {
    return this.#dead === undefined;
  }

  /** The number of requests without an answer, including cancelled ones. */
  get pending(): number {
    return this.#peer.pending;
  }

  /** Whether the server has stopped answering. */
  get hung(): boolean {
    return this.#isLost || this.#responsiveness.hung;
  }

  /** Whether the server sends notifications when its lists change. */
  get tells(): boolean {
    return this.#wire.tells || this.#isListening;
  }

  /** How to use the server, for models; "" if it has no instructions. */
  get instructions(): string {
    return this.#agreed.instructions;
  }

  /** Whether it uses the stateless revision, in which each request carries the capabilities. */
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

  /** Whether the server can run tools as tasks, in the revision before the newest. */
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
  can(capability: string): boolean {
    return isObject(this.#agreed.capabilities[capability]);
  }

  /**
   * Sends a request and returns the unchanged result. Answers the server's own requests before.
   * Throws `RpcError` if the server answers with an error.
   */
  request(method: string, params: JsonObject, options: RequestOptions): Promise<Json> {
    if (this.isStateless) return this.#stateless.request(method, params, options);
    return this.#peer.request(method, params, options);
  }

  /** Sends a message to the server. */
  send(message: JsonObject): void {
    this.#wire.send(message);
  }

  /** Answers a request of the server. */
  answer(request: PeerRequest): Promise<JsonObject> {
    const { name } = this;
    return answerRequest(request, { name, host: this.#host, refusals: this.#refusals });
  }

  /** Returns the client capabilities that the server gets, for a client with these or for all. */
  capabilitiesFor(able?: JsonObject): JsonObject {
    return this.#declared.capabilitiesFor(this.name, able);
  }

  /** Returns the name of the client that the server gets, for a client with this one or for all. */
  clientInfo(info?: JsonObject): JsonObject | undefined {
    return this.#host.clients.clientInfo(info);
  }

  /** Returns the error for a server that breaks the protocol. */
  protocolError(why: string): PmlError {
    return this.#denied(why) ?? protocolError(this.name, why);
  }

  /** Reads the error of an answer, without secrets. */
  errorOf(error: unknown): RpcError {
    return RpcError.of(withAddresses(this.#host.withoutSecrets(error), error));
  }

  /** Takes a request of the server. */
  onRequest(request: RequestMessage, stream?: RequestId): void {
    this.#incoming.take(request, stream);
  }

  /** Sends a notification. */
  notify(method: string, params: JsonObject, options: RequestOptions): void {
    if (this.isStateless) this.#stateless.notify(method, params, options);
    else this.#peer.notify(method, params, options);
  }

  /**
   * Finds out whether the server takes members that JSON-RPC does not define, before a message that
   * has them. Returns undefined if it has none, or if it is known. Servers with the TypeScript SDK
   * ignore such a message, so the server is asked whether it answers twice: with such a member and
   * without one. Rejects if the message is cancelled: a server that hangs answers neither, and is
   * watched as after a cancelled request.
   */
  learnMembers(
    { members, cancellation }: Pick<RequestOptions, "members" | "cancellation">,
  ): Promise<void> | undefined {
    if (members?.message === undefined || this.#peer.takesMembers !== undefined) return undefined;
    const at = performance.now();
    return unlessAborted(this.#learning ??= this.#learnMembers(), cancellation.signal, (signal) => {
      const { reason } = signal;
      this.#responsiveness.cancelled({ at, reason });
      return reason;
    });
  }

  async #learnMembers(): Promise<void> {
    using cancellation = Cancellation.of(this.#over.signal);
    const { method, params } = this.probe();
    const options = { ...withoutClient(cancellation), lasts: true };
    const odd = this.#peer.request(method, params, { ...options, members: PROBE, isTrial: true });
    const plain = this.#peer.request(method, params, options);
    const settled = plain.catch(() => {}).then(() => pause(MEMBERS_MS, this.#over.signal));
    const takes = await Promise.race([
      odd.then(() => true, () => false),
      settled.then(() => false, () => false),
    ]);
    this.#peer.takesMembers = takes;
    cancellation.cancel(new Error("The answer is not needed"));
  }

  /** Answers all requests of an `input_required` result. */
  answersTo(result: JsonObject, options: RequestOptions): Promise<JsonObject> {
    return this.#stateless.answersTo(result, options);
  }

  /** Reads a list. It is empty if the server does not have it. */
  async list(name: ListName, signal: AbortSignal): Promise<ReadList> {
    const { capability, extension } = LISTS[name];
    const isDeclared = this.can(capability) &&
      (extension === undefined || this.extensions.includes(extension));
    // A server may have tools without declaring the capability.
    if (name !== "tools" && !isDeclared) {
      return { items: [], ttlMs: undefined };
    }
    using cancellation = Cancellation.of(signal);
    const max = this.#host.limits.catalogTools;
    return await readList(name, this, { ...withoutClient(cancellation), max });
  }

  /** Ends its subscriptions: another connection takes its place. */
  retire(): void {
    this.#retired.abort(new SessionLost(this.name));
  }

  /** Follows a resource or a task until the signal aborts or the connection is retired. */
  async tellOf(
    { uri, isTask, signal, onAgreed }: Omit<ResourceSubscription, "server">,
  ): Promise<void> {
    const { signal: over } = this.#over;
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
    await aborted(ending);
    this.#followed.delete(uri);
    if (this.alive && !this.#isLost) {
      this.#peer.request("resources/unsubscribe", { uri }, ASIDE).catch(() => {});
    }
  }

  /** Sets the log level of the server, if it has one. */
  setLevel(level: string): void {
    if (this.isStateless || !this.can("logging")) return;
    // The answer does not matter.
    this.#peer.request("logging/setLevel", { level }, ASIDE).catch(() => {});
  }

  /** Notifies the server that its roots have changed. In the stateless revision it asks each time. */
  rootsChanged(): void {
    if (!this.isStateless && this.alive) {
      this.#wire.send({ method: "notifications/roots/list_changed" });
    }
  }

  /** Closes the connection and its wire. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#fail(this.#wire.down("it was closed", false));
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
    this.#isGreeted = true;
    const { isStateless, capabilities } = agreed;
    this.#runsTasks = runsTasks(capabilities);
    const tells = Object.values(capabilities).some((one) => isObject(one) && one.listChanged);
    if (isStateless && tells) void this.#hearChanges();
  }

  /** Subscribes to changes until the connection ends or the server refuses. */
  async #hearChanges(): Promise<void> {
    const { signal } = this.#over;
    while (this.alive) {
      this.#isListening = true;
      const end = await this.#stateless.listen(ALL_CHANGES, ASIDE).catch((error) => error);
      this.#isListening = false;
      if (!(end instanceof RpcError)) this.lostAt = performance.now();
      // On pipes, the subscription lasts as long as the process.
      if (end instanceof RpcError || this.#wire.tells) return;
      await pause(LISTEN_MS, signal);
      if (this.alive) this.#onMissed();
    }
  }

  /** Notifications may have been lost, so all lists and followed resources count as changed. */
  #onMissed(): void {
    for (const uri of this.#followed) {
      this.#owner.notified(this.name, { method: UPDATED, params: { uri } });
    }
    for (const list of ["tools", "resources", "prompts"]) {
      const method = `notifications/${list}/list_changed`;
      this.#owner.notified(this.name, { method, params: {} });
    }
  }

  #take(message: unknown, request: RequestId | undefined): void {
    try {
      if (!this.#receive(message, request) && !this.#isRefused(message)) this.#strayed();
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
   * Fails the request of a handshake that an error without an id refuses: a server that could not
   * read a request does not know its id. Returns false for other messages.
   */
  #isRefused(message: unknown): boolean {
    if (this.#isGreeted || !isObject(message) || !isObject(message.error)) return false;
    const id = this.#peer.onlyId;
    return (message.id ?? null) === null && id !== undefined &&
      this.#receive({ ...message, id });
  }

  /** Fails the request whose answer is over the limits. */
  #refuse(ends: string, excess: Excess): void {
    const what = `what ${quoted(this.name)} answered`;
    if (this.#peer.refuse(ends, tooLargeError(what, excess))) return;
    this.#log("warn", `A message was dropped: ${excess.why}`);
    this.#strayed();
  }

  /** Takes a notification of the server. */
  onNotification(
    { method, params: original, members }: IncomingNotification,
    request?: RequestId,
  ): void {
    const { name } = this;
    const [owner, host] = [this.#owner, this.#host];
    const cleaned = withoutSubscription(host.withoutSecrets(original));
    // The URI of a resource is compared with the followed ones.
    const params = method === UPDATED ? { ...cleaned, ...uriIn(original) } : cleaned;
    const others = members && { members: host.withoutSecrets(members) };
    if (method !== "notifications/message") {
      const client = this.#peer.clientOf(request);
      return owner.notified(name, { method, params, ...others }, client);
    }
    this.#log("debug", visible(JSON.stringify(params.data) ?? "", TAIL));
    const message = logMessage(name, params);
    this.#peer.latest("onMessage", request)?.client.onMessage?.(message, others?.members);
    owner.notified(name, { method, params: message, ...others });
  }

  /** Logs members of a message that are not passed on. */
  onDropped(method: string, members: JsonObject): void {
    const names = Object.keys(members).slice(0, NAMES_MAX).map((name) => quoted(name, 100));
    const text = `Members of a message were not passed on (${quoted(method, 100)}): ` +
      names.join(", ");
    this.#refusals.write(text, text, (line) => this.#log("info", line));
  }

  /** Returns the request by which PML asks whether the server answers. */
  probe(): { readonly method: string; readonly params?: JsonObject } {
    return this.isStateless ? this.#stateless.probe() : { method: "ping" };
  }

  #strayed(): void {
    if (++this.#stray <= STRAY_MAX) return;
    this.#fail(this.protocolError(`it sent over ${STRAY_MAX} messages that answer no request`));
  }

  #denied(text: string): PmlError | undefined {
    const denial = this.#wire.denial?.(text);
    return denial && deniedTo(this.name, denial);
  }

  /** Notes that the server stopped answering, or that it answers again or has ended. */
  onResponsive(isResponsive: boolean): void {
    if (isResponsive) this.#log("info", "answers again, or has ended");
    else this.#log("warn", "does not answer while calls wait for it");
    this.#owner.responds(this.name, isResponsive);
  }

  /** Ends a server that sent nothing for some time and does not answer a ping. */
  onHung(ms: number): void {
    const why = `it did not answer for ${durationText(Math.round(ms / 1_000) * 1_000)}`;
    this.#log("warn", `was ended: ${why}`);
    this.#fail(this.#wire.down(`${why}, was restarted; whether it ran is not known`, true), true);
  }

  /** Ends the connection: pending requests fail, and nothing is sent again. */
  #fail(error: PmlError, isHung = false): void {
    if (this.#dead) return;
    this.#dead = error;
    this.#responsiveness[Symbol.dispose]();
    this.#peer.end(error);
    this.#over.abort(error);
    if (isHung || error.code === "UPSTREAM_PROTOCOL") this.#wire.kill();
    this.#owner.ended(this, this.#server, isHung);
  }

  #log(level: "debug" | "info" | "warn", text: string): void {
    this.#host.logServer(this.name, level, text);
  }
}

/** Removes the id of PML's own subscription. */
function withoutSubscription(params: JsonObject): JsonObject {
  const meta = objectOf(params._meta);
  if (!(SUBSCRIPTION in meta)) return params;
  return { ...params, _meta: withoutNamed(meta, [SUBSCRIPTION]) };
}

function uriIn({ uri }: JsonObject): JsonObject {
  return uri === undefined ? {} : { uri };
}
