/**
 * The connections to MCP servers, over any transport. A connection is opened by the first call,
 * shared, and closed when it is idle.
 *
 * @module
 */

import { type CallClient, NO_CLIENT, type Outcome } from "../../protocol/call.ts";
import { ending, type ErrorCode, PmlError } from "../../core/errors.ts";
import { type Json, type JsonObject, objectOf, quoted, textOf } from "../../core/json.ts";
import { memoized } from "../../core/memo.ts";
import { LIST_NAMES, type ListItem, type ListName } from "../../protocol/lists.ts";
import type { CheckedCall } from "../server.ts";
import { isUnsent, Outages } from "../../io/outages.ts";
import { Pool, type PoolLimits, type PoolOwner } from "../../io/pool.ts";
import { UnresponsiveServers } from "../../io/unresponsive_servers.ts";
import { besideResult, withMembers } from "./_other_members.ts";
import { RpcError } from "../../protocol/errors.ts";
import { afterSent, errorFor, resultOf, toolError, withRestart } from "./_answers.ts";
import { ConnectionLists } from "./_connection_lists.ts";
import { DeclaredCapabilities } from "./_declared.ts";
import { Notices } from "./_notices.ts";
import { OlderSessions } from "./_older_sessions.ts";
import { FinishedElicitations } from "./_url_elicitation.ts";
import type { ListKey } from "./_server_lists.ts";
import {
  type Followed,
  type ResourceSubscription,
  ResourceSubscriptions,
} from "./_subscriptions.ts";
import { RunningTasks, taskIn } from "./_tasks.ts";
import { sendToolCall, type ServerCall } from "./_tool_call.ts";
import { type ConnectionOwner, type PartialNotification, ServerConnection } from "./connection.ts";
import type { UpstreamServer } from "./upstream_server.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";
import { passOn } from "./_usable_skills.ts";
import { againIfLost, type OpenWire, SessionLost } from "./wire.ts";

/** The errors of a server that cannot be reached. */
const UNREACHED: readonly ErrorCode[] = ["UPSTREAM_DOWN", "TIMED_OUT"];

/** The connections of this process. */
export class Upstreams implements PoolOwner, ConnectionOwner, AsyncDisposable {
  readonly deathCode = "UPSTREAM_DOWN";
  /** The lists of the servers. */
  readonly lists: ConnectionLists;
  /** The PML that the connections belong to. */
  readonly host: UpstreamsHost;
  readonly #pool: Pool<ServerConnection>;
  readonly #closing = new AbortController();
  /** Aborts when PML ends. */
  readonly closing: AbortSignal = this.#closing.signal;
  readonly #running = new Set<ServerConnection>();
  /** The servers that were ended because they did not answer, until their next result. */
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
  /** The same object for the same limits, because each use of a server reads it. */
  readonly #poolLimits = memoized(({ idleMs }: PoolLimits) => ({ idleMs, idleChildren: Infinity }));

  /** Takes the host; starts nothing. */
  constructor(host: UpstreamsHost) {
    this.host = host;
    this.#pool = new Pool(this);
    this.#unresponsive = new UnresponsiveServers(host.home);
    this.#declared = new DeclaredCapabilities(host.clients, (name) => {
      for (const list of LIST_NAMES) host.clients.changed(name, list);
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

  /** Returns the present server of a name. */
  #serverOf(name: string): UpstreamServer {
    return this.host.upstreamOf(name, this);
  }

  /** Starts a server and asks for its tools, so that a first call waits for neither. */
  async warm(name: string): Promise<void> {
    const server = this.#serverOf(name);
    await this.#use(server, (connection) => this.lists.listedOn(connection, server, this.closing));
  }

  /** Returns the ids of the extensions that a server declared at its last start. */
  extensionsOf(name: string): readonly string[] {
    return this.#declared.extensionsOf(name);
  }

  /** The limits of servers: all may be in use at once, so that only idle time closes one. */
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
   * Sends a call, or another request, that has passed the checks. `isCompared`: the server must list
   * the tool that was checked.
   */
  call(server: UpstreamServer, call: CheckedCall, isCompared: boolean): Promise<Outcome> {
    const { method } = call;
    if (method === "tasks/listen" || method === "resources/subscribe") {
      return this.#addFollower(server, call);
    }
    const owner = this.lists.ownerOf(server);
    const params = this.#paramsOf(server, call, owner);
    const request: ServerCall = {
      server,
      call,
      owner,
      params,
      isCompared,
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

  /** Returns the params of a request, with the server's own name of the tool. */
  #paramsOf(server: UpstreamServer, call: CheckedCall, owner: ListKey): JsonObject {
    const { method, arguments: args, tool } = call;
    if (method !== undefined) return withMembers(args, call);
    return withMembers({ name: this.lists.ownNameOf(server, tool, owner), arguments: args }, call);
  }

  /** Removes one follower of a resource. */
  unfollow(followed: Followed): void {
    this.#subscriptions.remove(followed);
  }

  /** Follows all resources again, as far as the present rules allow. */
  readonly refollow = (): void => this.#subscriptions.again();

  /** Closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#subscriptions[Symbol.dispose]();
    this.#declared[Symbol.dispose]();
    this.#unresponsive[Symbol.dispose]();
    // A server that is still starting is not waited for.
    this.#closing.abort(ending("start the server"));
    await this.#sessions[Symbol.asyncDispose]();
    await this.#pool[Symbol.asyncDispose]();
  }

  /** Sends a request on a connection, or in a session for a client of an older revision. */
  #useConnection(request: ServerCall, connection: ServerConnection): Promise<Outcome> {
    const { server, call: { client, cancellation } } = request;
    if (client.isOlder !== true || !connection.mayHaveSession) {
      return this.#compareAndSend(request, connection);
    }
    const use = (session: ServerConnection) => this.#compareAndSend(request, connection, session);
    return this.#sessions.use(server, { stateless: connection, cancellation }, use);
  }

  /** Compares the tool that was checked with the list of the connection, and sends the request. */
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
    const learning = session.learnMembers(request.call);
    const sending = learning === undefined
      ? this.#send(request, session)
      : learning.then(() => this.#send(request, session));
    return sending.then(
      (result) => this.#outcomeOf(request, result),
      (error) => this.#recover(request, { connection, session, error }),
    );
  }

  #send({ call, params, owner }: ServerCall, connection: ServerConnection): Promise<Json> {
    // guard: late-start
    call.assertCurrent();
    if (call.method !== undefined && call.isNotification === true) {
      connection.notify(call.method, params, call);
      return Promise.resolve({});
    }
    if (call.method !== undefined) {
      return passOn({ call, params, owner }, connection, this.lists.cache);
    }
    const support = () =>
      objectOf(this.lists.tool(owner, String(params.name))?.execution).taskSupport;
    return sendToolCall(connection, params, { call, support });
  }

  /** Sends a request again after the user opened a page for it. Returns or throws its error. */
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
      // Meanwhile the server may have listed another tool by this name.
      // guard: listed-again
      await this.lists.compare(request, connection);
      result = await this.#send(request, session);
    } catch (error) {
      const isTool = call.method === undefined;
      if (!(error instanceof RpcError)) throw isTool ? afterSent(error) : error;
      if (!isTool) throw errorFor(name, error);
      result = toolError(name, error) as unknown as JsonObject; // plain JSON
    }
    return this.#outcomeOf(request, result);
  }

  #outcomeOf(request: ServerCall, result: Json): Outcome {
    const { server, call, connection, isStateless } = request;
    const { name } = server;
    const { method = "tools/call", arguments: args } = call;
    this.lists.renewOld(request);
    const task = taskIn(result, call);
    if (task !== undefined) this.#tasks.note(name, task, connection);
    const uri = method === "resources/read" ? textOf(args.uri) : undefined;
    const extensions = () => Object.keys(objectOf(call.client.able?.extensions));
    const checked = resultOf(result, name, { method, uri, isStateless, extensions });
    const isFirst = task === undefined && method === "tools/call" && this.#restarted.delete(name);
    const all = isFirst ? withRestart(name, checked) : checked;
    // `RpcPeer` noted the members of the message around the result.
    const others = besideResult(result, this.host);
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
    await this.#use(this.#serverOf(server), (connection) => connection.tellOf(following));
  }

  /** Keeps a server running until a promise resolves. */
  async #holdFor(name: string, until: Promise<void>): Promise<void> {
    const server = this.#serverOf(name);
    await Promise.all([this.#sessions.hold(server, until), this.#use(server, () => until)]);
  }

  /** Uses a server: without waiting, if it runs. Its start is reported to the client of a call. */
  async #use<T>(
    server: UpstreamServer,
    use: (connection: ServerConnection) => Promise<T>,
    client: CallClient = NO_CLIENT,
  ): Promise<T> {
    const { name } = server;
    this.#declared.begin(name);
    let isRunning = false;
    try {
      const isOut = !this.#outages.isEmpty && this.#outages.of(keyOf(server)) !== undefined;
      const lease = isOut ? undefined : this.#pool.hold(name, server.version());
      isRunning = lease !== undefined;
      if (lease !== undefined) {
        // `using` takes ten times as long as `finally`.
        try {
          return await use(lease.living);
        } finally {
          lease[Symbol.dispose]();
        }
      }
      const work = () => this.#useNew(server, use);
      return await this.host.starts.during(name, { onProgress: client.onProgress, work });
    } catch (error) {
      // The session did not handle the request, so it is sent again in another one.
      if (isRunning && error instanceof SessionLost) return await this.#useNew(server, use);
      throw this.#noteOutage(server, error);
    } finally {
      this.#declared.end(name);
    }
  }

  /** Records that a remote server cannot be reached, if an error means that. Returns the error. */
  #noteOutage(server: UpstreamServer, error: unknown, isStart = false): unknown {
    const isOutage = error instanceof PmlError && !(error instanceof SessionLost) &&
      (isStart || isUnsent(error));
    if (server.isRemote && isOutage) this.#outages.note(keyOf(server), error);
    return error;
  }

  /** Uses a server that may have to be started, or cannot be reached now. */
  async #useNew<T>(
    server: UpstreamServer,
    use: (connection: ServerConnection) => Promise<T>,
  ): Promise<T> {
    const { name } = server;
    const version = server.version();
    // Noted here, because after a few failures the pool only reports that it always fails.
    const start = () =>
      this.#start(server).catch((error) => {
        throw this.#noteOutage(server, error, true);
      });
    const run = <R>(use: (connection: ServerConnection) => Promise<R>) =>
      againIfLost(() => this.#pool.use(name, { name, version, start, use }));
    const outage = this.#outages.of(keyOf(server));
    // A server that answers, such as with a wrong key, answers soon.
    const waits = outage && !UNREACHED.includes(outage.code);
    const probe = () => run(() => Promise.resolve());
    const waitMs = waits ? this.host.limits.startMs : undefined;
    await this.#outages.pass(keyOf(server), probe, waitMs);
    try {
      return await run(use);
    } catch (error) {
      throw this.#noteOutage(server, error);
    }
  }

  async #start(server: UpstreamServer): Promise<ServerConnection> {
    const { name } = server;
    // A process that does not answer takes longer to end than the next one to start.
    for (const one of this.#running) {
      if (one.name === name && one.hung) this.#onEnd(one, server, true);
    }
    const connection = await this.#connect(server, this.#declared);
    this.#declared.connected(name, connection);
    this.#declared.keep(server, connection.capabilities, this.host);
    this.lists.cache.outdate(this.lists.ownerOf(server));
    return connection;
  }

  /** Prepares a connection, which takes long if the server is installed first. */
  async #prepare(server: UpstreamServer): Promise<OpenWire> {
    const open = await server.prepare(this.closing);
    // Meanwhile the user may have removed the server, or made it another one.
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
    if (connection.alive) this.#running.add(connection);
    const { level } = this.host.clients;
    if (level !== undefined) connection.setLevel(level);
    return connection;
  }

  /** Passes on a notification of a server. */
  notified(server: string, notification: PartialNotification, client?: CallClient): void {
    const { method, params } = notification;
    if (method === "notifications/elicitation/complete") this.#elicitations.note(server, params);
    this.#notices.take(server, { ...notification, client });
  }

  /** Returns the definition of a tool, if it is known. */
  toolOf(server: UpstreamServer, tool: string): ListItem | undefined {
    return this.lists.tool(this.lists.ownerOf(server), tool);
  }

  /** Notes that a server stopped answering, or that it answers again or has ended. */
  responds(server: string, isResponsive: boolean): void {
    this.#unresponsive.set(server, !isResponsive);
  }

  /** Notes that a connection has ended. `isHung`: PML ended it, and nothing else did. */
  ended(connection: ServerConnection, server: UpstreamServer, isHung: boolean): void {
    this.#onEnd(connection, server, isHung || connection.hung);
    this.#tasks.end(connection);
    if (isHung && server.isRemote !== true) this.#restart(server.name);
  }

  /** Notes once that a connection has ended, and whether its next result names that. */
  #onEnd(connection: ServerConnection, { name, isRemote }: UpstreamServer, isHung: boolean): void {
    const isFirst = this.#running.delete(connection);
    if (isFirst && isHung && isRemote !== true) this.#restarted.add(name);
  }

  /** Starts a server again that was ended, so that the next call need not wait for that. */
  #restart(name: string): void {
    const ready = async () => await this.#use(this.#serverOf(name), () => Promise.resolve());
    // If it fails, the next call starts it and reports why.
    ready().catch(() => {});
  }
}

/** Returns the key of the outages of a server: with another definition, it may be reachable. */
function keyOf(server: UpstreamServer): string {
  return `${server.name} ${server.version()}`;
}
