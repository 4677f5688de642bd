/**
 * The connections to MCP servers, over any transport. A connection is opened by the first call,
 * shared, and closed when it is idle.
 *
 * @module
 */

import { type CallClient, NO_CLIENT, type Outcome } from "../../protocol/call.ts";
import { endingError, type ErrorCode, PmlError } from "../../core/errors.ts";
import { type Json, type JsonObject, objectOf, quoted, textOf } from "../../core/json.ts";
import { memoized } from "../../core/memo.ts";
import { LIST_NAMES, type ListItem, type ListName } from "../../protocol/lists.ts";
import type { CheckedCall } from "../server.ts";
import { isUnsent, Outages } from "../../io/outages.ts";
import { Pool, type PoolLease, type PoolLimits, type PoolOwner } from "../../io/pool.ts";
import { UnresponsiveServers } from "../../io/unresponsive_servers.ts";
import { safeResultMembers, withMembers } from "./_other_members.ts";
import { RpcError } from "../../protocol/errors.ts";
import { errorFor } from "./_error_answers.ts";
import { ConnectionLists } from "./_connection_lists.ts";
import { DeclaredCapabilities } from "./_declared_capabilities.ts";
import { Notices } from "./_notices.ts";
import { OlderSessions } from "./_older_sessions.ts";
import { FinishedElicitations } from "./_url_elicitation.ts";
import type { ListKey } from "./_server_lists.ts";
import {
  type FollowTarget,
  type ResourceSubscription,
  ResourceSubscriptions,
} from "./_subscriptions.ts";
import { RunningTasks, taskIn } from "./_tasks.ts";
import {
  resultOf,
  sendToolCall,
  type ServerCall,
  toolError,
  withRanHint,
  withRestart,
} from "./_server_call.ts";
import { type ConnectionOwner, type PartialNotification, ServerConnection } from "./connection.ts";
import { type OpenWire, retryIfLost, SessionLost, type UpstreamServer } from "./wire.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";
import { passOn } from "./_usable_skills.ts";

/** The errors of a server that cannot be reached. */
const UNREACHED: readonly ErrorCode[] = ["UPSTREAM_DOWN", "TIMED_OUT"];
/** The errors of a start that `pml list` shows. A missing key or sign-in is not a failure. */
const FAILED_STARTS: readonly ErrorCode[] = [
  ...UNREACHED,
  "PERMISSION_DENIED",
  "UPSTREAM_PROTOCOL",
];

/** The connections of this process. */
export class Upstreams implements PoolOwner, ConnectionOwner, AsyncDisposable {
  readonly deathCode = "UPSTREAM_DOWN";
  /** The lists of the servers. */
  readonly lists: ConnectionLists;
  /** The process of PML to which the connections belong. */
  readonly host: UpstreamsHost;
  readonly #pool: Pool<ServerConnection>;
  readonly #closing = new AbortController();
  /** Aborts when PML ends. */
  readonly closing: AbortSignal = this.#closing.signal;
  readonly #running = new Set<ServerConnection>();
  /** The servers that PML ended because they hung. Their next result gets a remark about that. */
  readonly #restarted = new Set<string>();
  readonly #declared: DeclaredCapabilities;
  readonly #sessions: OlderSessions;
  readonly #tasks = new RunningTasks((name, until) => {
    // If the server fails or was removed, its tasks end with it.
    this.#holdFor(name, until).catch(() => {});
  });
  readonly #outages = new Outages();
  readonly #elicitations = new FinishedElicitations();
  readonly #unresponsive: UnresponsiveServers;
  readonly #subscriptions: ResourceSubscriptions;
  readonly #notices: Notices;
  /** Returns the same object for the same limits, because each use of a server reads the limits. */
  readonly #poolLimits = memoized(({ idleMs }: PoolLimits) => ({ idleMs, idleChildren: Infinity }));

  /** Starts nothing. */
  constructor(host: UpstreamsHost) {
    this.host = host;
    this.#pool = new Pool(this);
    this.#unresponsive = new UnresponsiveServers(host.home);
    this.#declared = new DeclaredCapabilities(host.clients, (name) => {
      for (const list of LIST_NAMES) host.clients.onListChanged(name, list);
    });
    this.lists = new ConnectionLists(host, this.#declared, this.closing);
    this.#sessions = new OlderSessions(
      host,
      (server, declared) => this.#connect(server, declared, true),
    );
    this.#notices = new Notices(
      host,
      this.#tasks,
      (name, lists) => this.lists.forget(this.#serverOf(name), lists),
    );
    this.#subscriptions = new ResourceSubscriptions(
      host,
      (following) => this.#follow(following),
    );
  }

  /** Returns a list of a server: the same array until the server reports a change. */
  async listOf(server: UpstreamServer, list: ListName): Promise<readonly ListItem[]> {
    return await this.lists.get(server, list, (read) => this.#use(server, read));
  }

  /** Returns the server that has this name now. */
  #serverOf(name: string): UpstreamServer {
    return this.host.upstreamOf(name, this);
  }

  /** Starts a server and requests its tools, so that the first call does not wait for them. */
  async warm(name: string): Promise<void> {
    const server = this.#serverOf(name);
    await this.#use(
      server,
      (connection) => this.lists.listToolsOn(connection, server, this.closing),
    );
  }

  /** Ends the connections of a server. Running calls fail; the next call opens a new connection. */
  async end(name: string): Promise<void> {
    await Promise.all([this.#pool.end(name), this.#sessions.end(name)]);
  }

  /** Returns the open connections of a server. */
  runningOf(name: string): readonly Pick<ServerConnection, "rss">[] {
    return [...this.#running].filter((connection) => connection.name === name);
  }

  /** Returns the ids of the extensions that a server declared at its last start. */
  extensionsOf(name: string): readonly string[] {
    return this.#declared.serverExtensions(name);
  }

  /**
   * The limits of connections. Their number has no limit, because all servers may be in use at
   * once.
   */
  get poolLimits(): PoolLimits {
    return this.#poolLimits(this.host.limits);
  }

  /** Sets the log level of the running servers. */
  setLevel(level: string): void {
    for (const connection of this.#running) connection.setLevel(level);
  }

  /** Notifies the running servers that their roots have changed. */
  rootsChanged(): void {
    for (const connection of this.#running) connection.rootsChanged();
  }

  /**
   * Sends a call, or another request, that has passed the checks. With `hasToBeListed`, the call
   * fails if the server no longer lists the tool that was checked.
   */
  call(server: UpstreamServer, call: CheckedCall, hasToBeListed: boolean): Promise<Outcome> {
    const { method } = call;
    if (method === "tasks/listen" || method === "resources/subscribe") {
      return this.#addFollower(server, call);
    }
    const listKey = this.lists.keyOf(server);
    const params = this.#paramsOf(server, call, listKey);
    const request: ServerCall = {
      server,
      call,
      listKey,
      params,
      hasToBeListed,
      connection: undefined,
      isStateless: false,
    };
    const use = (connection: ServerConnection) => this.#useConnection(request, connection);
    return this.#use(server, use, call.client);
  }

  async #addFollower({ name: server }: UpstreamServer, call: CheckedCall): Promise<Outcome> {
    const { arguments: args, cancellation: { signal } } = call;
    const isTask = call.method === "tasks/listen";
    const uri = textOf(isTask ? args.taskId : args.uri);
    await this.#subscriptions.add({ server, uri, isTask }, signal).catch((error) => {
      throw error instanceof RpcError ? errorFor(server, error) : error;
    });
    return { kind: "result", result: { content: [] } };
  }

  /** Returns the params of a request, with the name of the tool at its server. */
  #paramsOf(server: UpstreamServer, call: CheckedCall, listKey: ListKey): JsonObject {
    const { method, arguments: args, tool } = call;
    if (method !== undefined) return withMembers(args, call);
    return withMembers(
      { name: this.lists.ownNameOf(server, tool, listKey), arguments: args },
      call,
    );
  }

  /** Removes one follower of a resource or task. */
  unfollow(followed: FollowTarget): void {
    this.#subscriptions.remove(followed);
  }

  /** Follows all resources again, as far as the current rules allow. */
  readonly refollow = (): void => this.#subscriptions.followAllAgain();

  /** Closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#subscriptions[Symbol.dispose]();
    this.#declared[Symbol.dispose]();
    this.#unresponsive[Symbol.dispose]();
    // Does not wait for a server that is still starting.
    this.#closing.abort(endingError("start the server"));
    await this.#sessions[Symbol.asyncDispose]();
    await this.#pool[Symbol.asyncDispose]();
  }

  /**
   * Sends a request on a connection. For a client of an older revision, uses a session if possible.
   */
  #useConnection(request: ServerCall, connection: ServerConnection): Promise<Outcome> {
    const { server, call: { client, cancellation } } = request;
    if (client.usesOlderRevision !== true || !connection.mayHaveSession) {
      return this.#compareAndSend(request, connection);
    }
    const use = (session: ServerConnection) => this.#compareAndSend(request, connection, session);
    return this.#sessions.use(server, { stateless: connection, cancellation }, use);
  }

  /** Checks that the connection still lists the tool that was checked, and sends the request. */
  #compareAndSend(
    request: ServerCall,
    connection: ServerConnection,
    session = connection,
  ): Promise<Outcome> {
    request.connection = connection;
    request.isStateless = session.isStateless;
    const comparing = this.lists.compare(request, connection);
    if (comparing === undefined) return this.#sendAndRecover(request, connection, session);
    return comparing.then(() => this.#sendAndRecover(request, connection, session));
  }

  #sendAndRecover(
    request: ServerCall,
    connection: ServerConnection,
    session: ServerConnection,
  ): Promise<Outcome> {
    // Some servers ignore a message with members that JSON-RPC does not define.
    const memberTest = session.learnMembers(request.call);
    const sending = memberTest === undefined
      ? this.#send(request, session)
      : memberTest.then(() => this.#send(request, session));
    return sending.then(
      (result) => this.#outcomeOf(request, result),
      (error) => this.#recover(request, { connection, session, error }),
    );
  }

  #send({ call, params, listKey }: ServerCall, connection: ServerConnection): Promise<Json> {
    // guard: late-start
    call.assertCurrent();
    if (call.method !== undefined && call.isNotification === true) {
      connection.notify(call.method, params, call);
      return Promise.resolve({});
    }
    if (call.method !== undefined) {
      return passOn({ call, params, listKey }, connection, this.lists.cache);
    }
    const support = () =>
      objectOf(this.lists.tool(listKey, String(params.name))?.execution).taskSupport;
    return sendToolCall(connection, params, { call, support });
  }

  /**
   * Handles the error of a request. If the server requires that the user opens a page, and the user
   * does, sends the request again. Returns an error response to a tool call as the result of the
   * tool, and throws other errors.
   */
  async #recover(
    request: ServerCall,
    { connection, session, error: first }: {
      readonly connection: ServerConnection;
      readonly session: ServerConnection;
      readonly error: unknown;
    },
  ): Promise<Outcome> {
    const { server: { name }, call } = request;
    let result: Json;
    try {
      if (!await this.#elicitations.open(first, name, call)) throw first;
      // Meanwhile the server may have listed a different tool with this name.
      // guard: listed-again
      await this.lists.compare(request, connection);
      result = await this.#send(request, session);
    } catch (error) {
      const isTool = call.method === undefined;
      if (!(error instanceof RpcError)) throw isTool ? withRanHint(error) : error;
      if (!isTool) throw errorFor(name, error);
      result = toolError(name, error) as unknown as JsonObject; // plain JSON
    }
    return this.#outcomeOf(request, result);
  }

  #outcomeOf(request: ServerCall, result: Json): Outcome {
    const { server, call, connection, isStateless } = request;
    const { name } = server;
    const { method = "tools/call", arguments: args } = call;
    this.lists.forgetOld(request);
    const task = taskIn(result, call);
    if (task !== undefined) this.#tasks.note(name, task, connection);
    const uri = method === "resources/read" ? textOf(args.uri) : undefined;
    const extensions = () => Object.keys(objectOf(call.client.capabilities?.extensions));
    const checked = resultOf(result, name, { method, uri, isStateless, extensions });
    const isFirst = task === undefined && method === "tools/call" && this.#restarted.delete(name);
    const all = isFirst ? withRestart(name, checked) : checked;
    // `RpcPeer` has noted the members of the answer that are next to the result.
    const others = safeResultMembers(result, this.host);
    return { kind: "result", result: all, ...(task && { task: task.status }), ...others };
  }

  async #follow({ server, ...following }: ResourceSubscription): Promise<void> {
    // guard: following
    if (!following.isTask && !this.host.mayFollow(server)) {
      throw new PmlError(
        "PERMISSION_DENIED",
        `Cannot continue to follow resources of ${quoted(server)}`,
      );
    }
    await this.#use(this.#serverOf(server), (connection) => connection.follow(following));
  }

  /** Keeps a server running until a promise resolves. */
  async #holdFor(name: string, until: Promise<void>): Promise<void> {
    const server = this.#serverOf(name);
    await Promise.all([this.#sessions.hold(server, until), this.#use(server, () => until)]);
  }

  /**
   * Uses a server, and starts it first if necessary. Reports the start to the client. Not `async`,
   * because each call waits here.
   */
  #use<T>(
    server: UpstreamServer,
    use: (connection: ServerConnection) => Promise<T>,
    client: CallClient = NO_CLIENT,
  ): Promise<T> {
    const { name } = server;
    this.#declared.begin(name);
    let lease: PoolLease<ServerConnection> | undefined;
    try {
      const hasOutage = !this.#outages.isEmpty &&
        this.#outages.errorOf(keyOf(server)) !== undefined;
      lease = hasOutage ? undefined : this.#pool.hold(name, server.version());
      const using = lease === undefined
        ? this.#startAndUse(server, use, client)
        : use(lease.living);
      return using.then((result) => {
        lease?.[Symbol.dispose]();
        this.#declared.end(name);
        return result;
      }, (error) => this.#endFailed(server, { use, lease, error }));
    } catch (error) {
      return this.#endFailed(server, { use, lease, error });
    }
  }

  #startAndUse<T>(
    server: UpstreamServer,
    use: (connection: ServerConnection) => Promise<T>,
    { onProgress }: CallClient,
  ): Promise<T> {
    const work = () => this.#useNew(server, use);
    return this.host.starts.runWithProgress(server.name, { onProgress, work });
  }

  /** Ends a use that failed. Repeats it in a new session if its session was lost. */
  async #endFailed<T>(
    server: UpstreamServer,
    { use, lease, error }: {
      readonly use: (connection: ServerConnection) => Promise<T>;
      readonly lease: PoolLease<ServerConnection> | undefined;
      readonly error: unknown;
    },
  ): Promise<T> {
    lease?.[Symbol.dispose]();
    try {
      // The server lost the session and did not handle the request: sends it in another session.
      if (lease !== undefined && error instanceof SessionLost) {
        return await this.#useNew(server, use);
      }
      throw this.#noteOutage(server, error);
    } finally {
      this.#declared.end(server.name);
    }
  }

  /**
   * Records a failed start, and an outage of a remote server if the error means that it cannot be
   * reached. Returns the error.
   */
  #noteOutage(server: UpstreamServer, error: unknown, isStart = false): unknown {
    const isOutage = error instanceof PmlError && !(error instanceof SessionLost) &&
      (isStart || isUnsent(error));
    if (!isOutage || !isStart && !server.isRemote || this.closing.aborted) return error;
    const isNew = isStart || this.#outages.errorOf(keyOf(server)) === undefined;
    if (isNew && server.hasFiles && FAILED_STARTS.includes(error.code)) {
      this.lists.recordUnreached(server, error);
    }
    if (server.isRemote) this.#outages.record(keyOf(server), error);
    return error;
  }

  /** Uses a server that must be started, or that could not be reached the last time. */
  async #useNew<T>(
    server: UpstreamServer,
    use: (connection: ServerConnection) => Promise<T>,
  ): Promise<T> {
    const { name } = server;
    const version = server.version();
    // Records the outage here: after a few failures, the pool only reports that each start fails.
    const start = () =>
      this.#start(server).catch((error) => {
        throw this.#noteOutage(server, error, true);
      });
    const run = <R>(use: (connection: ServerConnection) => Promise<R>) =>
      retryIfLost(() => this.#pool.use(name, { name, version, start, use }));
    const outage = this.#outages.errorOf(keyOf(server));
    // If the last error was an answer of the server, such as "wrong key", it will answer soon
    // again.
    const mayAnswerSoon = outage && !UNREACHED.includes(outage.code);
    const probe = () => run(() => Promise.resolve());
    const waitMs = mayAnswerSoon ? this.host.limits.startMs : undefined;
    await this.#outages.throwDuringOutage(keyOf(server), probe, waitMs);
    try {
      return await run(use);
    } catch (error) {
      throw this.#noteOutage(server, error);
    }
  }

  async #start(server: UpstreamServer): Promise<ServerConnection> {
    const { name } = server;
    // A process that does not answer may still be ending when the next process has started.
    for (const connection of this.#running) {
      if (connection.name === name && connection.isHung) this.#onEnd(connection, server, true);
    }
    const connection = await this.#connect(server, this.#declared);
    this.#declared.setConnection(name, connection);
    this.#declared.saveServerCapabilities(server, connection.capabilities, this.host);
    this.lists.cache.markOld(this.lists.keyOf(server));
    return connection;
  }

  /** Prepares a connection. That takes long if the server must be installed first. */
  async #prepare(server: UpstreamServer): Promise<OpenWire> {
    const open = await server.prepare(this.closing);
    // Meanwhile the user may have removed the server, or changed its definition.
    // guard: late-install
    if (this.#serverOf(server.name).version() === server.version()) return open;
    throw new PmlError("CANCELLED", `Cannot start ${quoted(server.name)}: it has changed`);
  }

  async #connect(
    server: UpstreamServer,
    declared: DeclaredCapabilities,
    isSession = false,
  ): Promise<ServerConnection> {
    const open = await this.#prepare(server);
    const connection = await ServerConnection.start(server, open, {
      owner: this,
      declared,
      isSession,
    });
    if (connection.isAlive) this.#running.add(connection);
    const { level } = this.host.clients;
    if (level !== undefined) connection.setLevel(level);
    return connection;
  }

  /** Passes on a notification of a server. */
  onNotification(server: string, notification: PartialNotification, client?: CallClient): void {
    const { method, params } = notification;
    if (method === "notifications/elicitation/complete") this.#elicitations.note(server, params);
    this.#notices.take(server, { ...notification, client });
  }

  /** Returns the definition of a tool, if it is known. */
  toolOf(server: UpstreamServer, tool: string): ListItem | undefined {
    return this.lists.tool(this.lists.keyOf(server), tool);
  }

  /** Notes that a server stopped answering, or that it answers again or has ended. */
  onResponsive(server: string, isResponsive: boolean): void {
    this.#unresponsive.set(server, !isResponsive);
  }

  /** Notes that a connection has ended. With `isHung`, PML ended it because the server hung. */
  onConnectionEnd(connection: ServerConnection, server: UpstreamServer, isHung: boolean): void {
    this.#onEnd(connection, server, isHung || connection.isHung);
    this.#tasks.end(connection);
    if (isHung && server.isRemote !== true) this.#restart(server.name);
  }

  /**
   * Removes a connection that has ended. If the server hung, its next result gets a remark about
   * the restart.
   */
  #onEnd(connection: ServerConnection, { name, isRemote }: UpstreamServer, isHung: boolean): void {
    const isFirst = this.#running.delete(connection);
    if (isFirst && isHung && isRemote !== true) this.#restarted.add(name);
  }

  /** Restarts a server that was ended, so that the next call need not wait for the start. */
  #restart(name: string): void {
    const ready = async () => await this.#use(this.#serverOf(name), () => Promise.resolve());
    // If the start fails, the next call starts the server again and reports why.
    ready().catch(() => {});
  }
}

/**
 * Returns the key for outages of a server. The key depends on the definition, because with another
 * definition the server may be reachable.
 */
function keyOf(server: UpstreamServer): string {
  return `${server.name} ${server.version()}`;
}
