/**
 * The connections to MCP servers, over any transport. A connection is opened by the first call,
 * shared, and closed when it is idle.
 *
 * @module
 */

import { type CallClient, NO_CLIENT, type Outcome } from "../../protocol/call.ts";
import { ending, type ErrorCode, messageOf, PmlError } from "../../core/errors.ts";
import { type Json, type JsonObject, objectOf, quoted, textOf } from "../../core/json.ts";
import {
  LIST_NAMES,
  type ListItem,
  type ListName,
  withInstructions,
} from "../../protocol/lists.ts";
import { memoized } from "../../core/memo.ts";
import type { CheckedCall } from "../server.ts";
import type { WaitForMemory } from "../../io/backlog.ts";
import { isUnsent, Outages } from "../../io/outages.ts";
import { Pool, type PoolLimits, type PoolOwner } from "../../io/pool.ts";
import { UnresponsiveServers } from "../../io/unresponsive_servers.ts";
import { unlessAborted } from "../../io/waiting.ts";
import { besideResult, withMembers } from "./_other_members.ts";
import { RpcError } from "../../protocol/errors.ts";
import {
  afterSent,
  errorFor,
  listRefused,
  notFollowed,
  resultOf,
  toolError,
  withRestart,
} from "./_answers.ts";
import { DeclaredCapabilities } from "./_declared.ts";
import { Notices } from "./_notices.ts";
import { OlderSessions } from "./_older_sessions.ts";
import { isListedNow, sameOrNew } from "./_listed_tools.ts";
import { FinishedElicitations } from "./_url_elicitation.ts";
import { openWire } from "./_open_wire.ts";
import { ownName } from "./_readable.ts";
import { FRESH_MS, type ListKey, ServerLists } from "./_server_lists.ts";
import { startTimer } from "./_start_timer.ts";
import {
  type Followed,
  type ResourceSubscription,
  ResourceSubscriptions,
} from "./_subscriptions.ts";
import type { ServerCall } from "./_server_call.ts";
import { RunningTasks, taskIn } from "./_tasks.ts";
import { sendToolCall } from "./_tool_call.ts";
import { type ConnectionOptions, ServerConnection } from "./connection.ts";
import type { StartProgress } from "./start_progress.ts";
import type { UpstreamEvents } from "./upstream_events.ts";
import type { UpstreamServer } from "./upstream_server.ts";
import { passOn, usableItems } from "./_usable_skills.ts";
import { againIfLost, SessionLost } from "./wire.ts";

/** The options of `Upstreams`. Functions are called at each use. */
export interface UpstreamsOptions extends Pick<ConnectionOptions, "clientInfo"> {
  /** Returns the present server of a name, for work in the background. */
  readonly server: (name: string) => UpstreamServer;
  readonly workspace: () => string;
  /** Returns the roots that a server may see. */
  readonly roots: (server: string) => Promise<readonly JsonObject[]>;
  /** Whether the rules allow its resources to be followed. */
  readonly mayFollow: (server: string) => boolean;
  /** Returns the capabilities that servers get for a client with these, or for all clients. */
  readonly capabilities: (able?: JsonObject) => JsonObject;
  /** Returns the log level that clients have set, if any. */
  readonly level: () => string | undefined;
  /** Removes secrets from messages of servers that are not results. */
  readonly withoutSecrets: ConnectionOptions["withoutSecrets"];
  /** The PML home, where lists are cached. */
  readonly home: string;
  readonly limits: () => ConnectionOptions["limits"] & PoolLimits;
  readonly onLog: (server: string, level: "debug" | "info" | "warn", text: string) => void;
  readonly events: UpstreamEvents;
  /** Pauses the readers of servers if too much waits for the client. */
  readonly room?: WaitForMemory | undefined;
  /** Reports installations to the calls that wait for them. */
  readonly starts: StartProgress;
}

/** The errors of a server that cannot be reached. */
const UNREACHED: readonly ErrorCode[] = ["UPSTREAM_DOWN", "TIMED_OUT"];
/** How often a call asks for a list that its server keeps changing. */
const LISTS_MAX = 3;

/** The connections of this process. */
export class Upstreams implements PoolOwner, AsyncDisposable {
  readonly deathCode = "UPSTREAM_DOWN";
  readonly #options: UpstreamsOptions;
  readonly #pool: Pool<ServerConnection>;
  readonly #closing = new AbortController();
  readonly #lists: ServerLists;
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
  readonly #toolsOf = memoized((tools: readonly ListItem[]) =>
    new Map(tools.flatMap((tool) => [[String(tool.name), tool], [ownName(tool), tool]] as const))
  );
  /** Of two tools with one name the first counts, as in the catalog. */
  readonly #byName = memoized((tools: readonly ListItem[]) =>
    new Map(tools.toReversed().map((tool) => [tool.name, tool]))
  );
  readonly #subscriptions: ResourceSubscriptions;
  readonly #notices: Notices;

  /** Takes the options; starts nothing. */
  constructor(options: UpstreamsOptions) {
    this.#options = options;
    this.#pool = new Pool(this);
    this.#lists = new ServerLists(
      options.home,
      (error) =>
        options.onLog("lists", "warn", `Cannot write the lists of a server: ${messageOf(error)}`),
    );
    this.#unresponsive = new UnresponsiveServers(options.home);
    this.#declared = new DeclaredCapabilities(options.capabilities, (name) => {
      for (const list of LIST_NAMES) options.events.changed(name, list);
    });
    this.#sessions = new OlderSessions({
      ...options,
      open: (server, capabilities) => this.#connect(server, { capabilities, isSession: true }),
    });
    this.#notices = new Notices({
      ...options,
      tasks: this.#tasks,
      forget: (name, lists) => this.forget(options.server(name), lists),
    });
    this.#subscriptions = new ResourceSubscriptions(
      (following) => this.#follow(following),
      {
        lost: (server, error) => options.onLog(server, "warn", notFollowed(server, error)),
        again: options.events.updated,
      },
    );
  }

  /** Returns a list of a server: the same array until the server reports a change. */
  async listOf(server: UpstreamServer, list: ListName): Promise<readonly ListItem[]> {
    const owner = this.#ownerOf(server);
    return await this.#lists.get(owner, list, async () => {
      return await this.#use(server, async (connection) => {
        const items = await this.#read(server, { connection, owner, list });
        // Meanwhile it may have been started or asked for another client.
        if (this.#ownerOf(server) !== owner) this.#lists.forget(owner, list);
        return items;
      });
    });
  }

  /** Returns whether a list of a server is cached. */
  hasList(server: UpstreamServer, list: ListName): boolean {
    return this.#lists.has(this.#ownerOf(server), list);
  }

  /** Returns a list that was cached for a client with other capabilities. Starts nothing. */
  earlierList(server: UpstreamServer, list: ListName): readonly ListItem[] | undefined {
    return this.#lists.earlier(this.#ownerOf(server), list);
  }

  /** Reads a list on a connection, in the time for a start. */
  async #read(
    { name, tools: only }: UpstreamServer,
    { connection, owner, list }: {
      readonly connection: ServerConnection;
      readonly owner: ListKey;
      readonly list: ListName;
    },
  ): Promise<readonly ListItem[]> {
    const { limits, home } = this.#options;
    const { signal: closing } = this.#closing;
    using late = startTimer(name, { ms: limits().startMs, home, closing });
    const at = performance.now();
    const { items, ttlMs } = await connection.list(list, late.signal).catch((error) => {
      throw error instanceof RpcError ? listRefused(name, list, error) : error;
    });
    if (list !== "tools") return usableItems(list, items, { name, ...this.#options });
    const own = items.filter((tool) => only?.includes(String(tool.name)) ?? true);
    const all = withInstructions(own, connection.instructions);
    const tools = sameOrNew(this.#lists.cached(owner, "tools"), all);
    connection.listedTools.set(owner, { tools, at, ttlMs });
    return tools;
  }

  /**
   * Returns the tools that a server has listed on this connection, and asks for them if it has not.
   * A call waits for that: the program may be another one than the approved one.
   */
  async #listedTools(
    server: UpstreamServer,
    connection: ServerConnection,
    signal: AbortSignal,
  ): Promise<readonly ListItem[]> {
    const [owner, lists] = [this.#ownerOf(server), this.#lists];
    const before = lists.cached(owner, "tools");
    let tools = before;
    // A server that reports changes without end is compared with the last list that came.
    for (let count = 0; count < LISTS_MAX; count++) {
      const { isRemote } = server;
      if (isListedNow(connection, { isRemote, owner, tools: lists.cached(owner, "tools") })) break;
      const read = () => this.#read(server, { connection, owner, list: "tools" });
      tools = await unlessAborted(lists.renew(owner, "tools", read), signal);
    }
    if (tools !== before) this.#options.events.changed(server.name, "tools");
    return tools;
  }

  /** Starts a server and asks for its tools, so that a first call waits for neither. */
  async warm(name: string): Promise<void> {
    const server = this.#options.server(name);
    const { signal } = this.#closing;
    await this.#use(server, (connection) => this.#listedTools(server, connection, signal));
  }

  /** Returns the ids of the extensions that a server declared at its last start. */
  extensionsOf(name: string): readonly string[] {
    return this.#declared.extensionsOf(name);
  }

  /** Removes cached lists of a server, by default all, so that they are loaded again. */
  forget(server: UpstreamServer, lists: readonly ListName[] = LIST_NAMES): void {
    // Adds the present owner, so that its lists on disk are not used, either.
    this.#ownerOf(server);
    this.#lists.forgetAll(server, lists);
  }

  /** The limits of servers: all may be in use at once, so that only idle time closes one. */
  get poolLimits(): PoolLimits {
    return { ...this.#options.limits(), idleChildren: Infinity };
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
    const owner = this.#ownerOf(server);
    const params = this.#paramsOf(server, call, owner);
    const last = { connection: undefined, isStateless: false };
    const request: ServerCall = { server, call, owner, params, isCompared, ...last };
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
    return withMembers({ name: this.#ownNameOf(server, tool, owner), arguments: args }, call);
  }

  #ownNameOf(server: UpstreamServer, tool: string, owner: ListKey): string {
    const listedTool = this.#tool(owner, tool);
    const own = listedTool === undefined ? tool : ownName(listedTool);
    return server.toolName?.(own) ?? own;
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
    return this.#sessions.use(server, {
      stateless: connection,
      use: (session) => this.#compareAndSend(request, connection, session),
      signal: () => cancellation.signal,
    });
  }

  /** Compares the tool that was checked with the list of the connection, and sends the request. */
  #compareAndSend(
    request: ServerCall,
    connection: ServerConnection,
    session = connection,
  ): Promise<Outcome> {
    request.connection = connection;
    request.isStateless = session.isStateless;
    const comparing = this.#compare(request, connection);
    if (comparing === undefined) return this.#sendAndRecover(request, connection, session);
    return comparing.then(() => this.#sendAndRecover(request, connection, session));
  }

  /** Fails if the server no longer lists the checked tool. A promise lists its tools first. */
  #compare(request: ServerCall, connection: ServerConnection): Promise<void> | undefined {
    const { server, call, owner, isCompared } = request;
    if (!isCompared) return undefined;
    const tools = this.#lists.cached(owner, "tools");
    if (!isListedNow(connection, { isRemote: server.isRemote, owner, tools })) {
      return this.#compareListed(request, connection);
    }
    call.assertListed(this.#byName(tools).get(call.tool));
    return undefined;
  }

  async #compareListed({ server, call }: ServerCall, connection: ServerConnection): Promise<void> {
    const tools = await this.#listedTools(server, connection, call.cancellation.signal);
    call.assertListed(this.#byName(tools).get(call.tool));
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
    if (call.method !== undefined) return passOn({ call, params, owner }, connection, this.#lists);
    const support = () => objectOf(this.#tool(owner, String(params.name))?.execution).taskSupport;
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
      await this.#compare(request, connection);
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
    this.#renewLists(request);
    const task = taskIn(result, call);
    if (task !== undefined) this.#tasks.note(name, task, connection);
    const uri = method === "resources/read" ? textOf(args.uri) : undefined;
    const extensions = () => Object.keys(objectOf(call.client.able?.extensions));
    const checked = resultOf(result, { name, method, uri, isStateless, extensions });
    const isFirst = task === undefined && method === "tools/call" && this.#restarted.delete(name);
    const all = isFirst ? withRestart(name, checked) : checked;
    const others = besideResult(result, this.#options);
    return { kind: "result", result: all, ...(task && { task: task.status }), ...others };
  }

  /** Loads lists from an earlier process again: the program may have changed. */
  #renewLists({ server: { name }, isCompared, owner, connection }: ServerCall): void {
    const maxMs = connection?.tells === true ? Infinity : FRESH_MS;
    for (const list of this.#lists.takeOld(owner, maxMs)) {
      // Calls compare the tools themselves.
      if (list === "tools" && isCompared) continue;
      this.#lists.forget(owner, list);
      this.#options.events.changed(name, list);
    }
  }

  async #follow({ server, ...following }: ResourceSubscription): Promise<void> {
    // guard: following
    if (!following.isTask && !this.#options.mayFollow(server)) {
      throw new PmlError(
        "PERMISSION_DENIED",
        `Cannot continue to follow resources of ${quoted(server)}`,
      );
    }
    await this.#use(this.#options.server(server), (connection) => connection.tellOf(following));
  }

  /** Keeps a server running until a promise resolves. */
  async #holdFor(name: string, until: Promise<void>): Promise<void> {
    const server = this.#options.server(name);
    await Promise.all([this.#sessions.hold(server, until), this.#use(server, () => until)]);
  }

  #ownerOf(server: UpstreamServer): ListKey {
    const able = this.#declared.capabilitiesFor(server.name);
    return this.#lists.ownerOf(server, { workspace: this.#options.workspace(), able });
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
      return await this.#options.starts.during(name, { onProgress: client.onProgress, work });
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
    const waitMs = waits ? this.#options.limits().startMs : undefined;
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
    const connection = await this.#connect(server, {
      capabilities: (able) => this.#declared.capabilitiesFor(name, able),
    });
    this.#declared.connected(name, connection);
    this.#declared.keep(server, connection.capabilities, this.#options);
    this.#lists.outdate(this.#ownerOf(server));
    return connection;
  }

  async #connect(
    server: UpstreamServer,
    own: Pick<ConnectionOptions, "capabilities" | "isSession">,
  ): Promise<ServerConnection> {
    const { limits, onLog, roots, withoutSecrets, home } = this.#options;
    const [{ name }, { signal: closing }] = [server, this.#closing];
    const connection = await ServerConnection.start({
      name,
      open: await openWire(server, { closing, now: this.#options.server }),
      roots: () => roots(name),
      onAsk: this.#options.events.asked,
      clientInfo: (info) => this.#options.clientInfo(info),
      ...own,
      withoutSecrets,
      limits: limits(),
      home,
      closing,
      onLog: (level, text) => onLog(name, level, text),
      onNotification: (notification, client) => {
        const { method, params } = notification;
        if (method === "notifications/elicitation/complete") this.#elicitations.note(name, params);
        this.#notices.take(name, { ...notification, client });
      },
      tool: (tool) => this.#tool(this.#ownerOf(server), tool),
      onResponsive: (isResponsive) => this.#unresponsive.set(name, !isResponsive),
      onEnd: (ended, isHung) => {
        this.#onEnd(ended, server, isHung || ended.hung);
        this.#tasks.end(ended);
        if (isHung && server.isRemote !== true) this.#restart(name);
      },
    });
    if (connection.alive) this.#running.add(connection);
    const level = this.#options.level();
    if (level !== undefined) connection.setLevel(level);
    return connection;
  }

  /** Notes once that a connection has ended, and whether its next result names that. */
  #onEnd(connection: ServerConnection, { name, isRemote }: UpstreamServer, isHung: boolean): void {
    const isFirst = this.#running.delete(connection);
    if (isFirst && isHung && isRemote !== true) this.#restarted.add(name);
  }

  /** Starts a server again that was ended, so that the next call need not wait for that. */
  #restart(name: string): void {
    const ready = async () => await this.#use(this.#options.server(name), () => Promise.resolve());
    // If it fails, the next call starts it and reports why.
    ready().catch(() => {});
  }

  /** Returns the definition of a tool, by its name here or at the server, if it is known. */
  #tool(owner: ListKey, tool: string): ListItem | undefined {
    return this.#toolsOf(this.#lists.cached(owner, "tools")).get(tool);
  }
}

/** Returns the key of the outages of a server: with another definition, it may be reachable. */
function keyOf(server: UpstreamServer): string {
  return `${server.name} ${server.version()}`;
}
