/**
 * The MCP servers that are spoken to, whatever carries it: reached by the first call, shared, given
 * up when idle.
 *
 * @module
 */

import { pathToFileURL } from "node:url";
import type { Call, Outcome } from "../core/call.ts";
import { textResult } from "../core/call.ts";
import { type ErrorCode, PmlError } from "../core/errors.ts";
import { defined, type Json, type JsonObject, objectOf, quoted, textOf } from "../core/json.ts";
import { LIST_NAMES, type ListItem, type ListName } from "../core/lists.ts";
import { memoized } from "../core/memo.ts";
import { splitToolId } from "../core/tool_id.ts";
import type { Room } from "../io/backlog.ts";
import { isUnsent, Outages } from "../io/outages.ts";
import { Pool, type PoolLimits } from "../io/pool.ts";
import { answeredBy, listRefused, notFollowed, refused, resultOf } from "./_answers.ts";
import { Greetings } from "./_greetings.ts";
import { Notices } from "./_notices.ts";
import { Answered } from "./_peer.ts";
import { ownName } from "./_readable.ts";
import { type ListOwner, ServerLists } from "./_server_lists.ts";
import { StartTimer } from "./_start_timer.ts";
import { type Followed, type Following, Subscriptions } from "./_subscriptions.ts";
import { callTool, RunningTasks, taskIn } from "./_tasks.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import type { StartProgress } from "./start_progress.ts";
import type { UpstreamEvents } from "./upstream_events.ts";
import { type OpenWire, SessionLost } from "./wire.ts";

/** A server, and the way to it. */
export interface UpstreamServer {
  readonly name: string;
  /** The only tools of it that count, where they are named. */
  readonly tools: readonly string[] | undefined;
  /** Its definition as it was written: without the values of variables. */
  readonly definition: unknown;
  /** Whether another process may be told what it lists. */
  readonly isKept: boolean;
  /** Whether it may take long to find that it is not there, so that this is found once for all. */
  readonly isRemote?: boolean;
  /** Gives the name that a tool has there, where that is another one. */
  readonly toolName?: (tool: string) => string;
  /** All that a connection depends on: with another, it is another one. */
  readonly version: () => string;
  /** Prepares the way; `closing` gives that up. */
  readonly way: (closing: AbortSignal) => Promise<OpenWire>;
}

/** What speaking to servers needs from outside; functions are asked at each call. */
export interface UpstreamsOptions {
  /** Finds a server for what goes on behind the calls, by what its name stands for then. */
  readonly server: (name: string) => UpstreamServer;
  readonly workspace: () => string;
  /** Whether a server may know the workspace. */
  readonly seesRoots: (server: string) => boolean;
  /** Whether the rules let its resources be followed. */
  readonly mayFollow: (server: string) => boolean;
  /** What the client can do for a server: the capabilities that it declared. */
  readonly capabilities: () => JsonObject;
  /** From which level on clients want log messages, where they said so. */
  readonly level: () => string | undefined;
  /** Takes secrets out of all that a server says but its results, which pass as they are. */
  readonly withoutSecrets: ConnectionOptions["withoutSecrets"];
  /** The PML home, where lists are kept. */
  readonly home: string;
  readonly limits: () => ConnectionOptions["limits"] & PoolLimits;
  readonly onLog: (server: string, level: "debug" | "info" | "warn", text: string) => void;
  readonly told: UpstreamEvents;
  /** Makes the readers of servers wait where too much waits for the client. */
  readonly room?: Room | undefined;
  /** Tells the calls that wait what is installed for them. */
  readonly starts: StartProgress;
}

/** What is said of a server that does not answer. */
const UNREACHED: readonly ErrorCode[] = ["UPSTREAM_DOWN", "TIMED_OUT"];
/** How long a list holds of a server that tells of no change. */
const FRESH_MS = 60_000;

/** The servers of this PML. */
export class Upstreams implements AsyncDisposable {
  readonly #options: UpstreamsOptions;
  readonly #pool: Pool<Connection>;
  readonly #closing = new AbortController();
  readonly #lists: ServerLists;
  readonly #running = new Set<Connection>();
  readonly #greetings: Greetings;
  readonly #tasks = new RunningTasks((name, until) => {
    // One that is gone ends its tasks.
    this.#use(this.#options.server(name), () => until).catch(() => {});
  });
  readonly #outages = new Outages();
  readonly #toolsOf = memoized((tools: readonly ListItem[]) =>
    new Map(tools.flatMap((tool) => [[String(tool.name), tool], [ownName(tool), tool]] as const))
  );
  readonly #subscriptions: Subscriptions;
  readonly #notices: Notices;

  /** Takes the definitions; nothing is started before the first request. */
  constructor(options: UpstreamsOptions) {
    this.#options = options;
    this.#pool = new Pool({
      // All of a person's servers may be in use: only the time without a call ends one.
      limits: () => ({ ...options.limits(), idleChildren: Infinity }),
      code: "UPSTREAM_DOWN",
    });
    this.#lists = new ServerLists(
      options.home,
      (error) => options.onLog("lists", "warn", `Cannot keep the lists of a server: ${error}`),
    );
    this.#greetings = new Greetings(options.capabilities, (name) => {
      for (const list of LIST_NAMES) options.told.changed(name, list);
    });
    this.#notices = new Notices({
      ...options,
      tasks: this.#tasks,
      forget: (name, lists) => this.forget(options.server(name), lists),
    });
    this.#subscriptions = new Subscriptions(
      (following) => this.#follow(following),
      (server, error) => options.onLog(server, "warn", notFollowed(server, error)),
    );
  }

  /** Gives a list of a server: the same array as long as it says nothing of a change. */
  async listOf(server: UpstreamServer, list: ListName): Promise<readonly ListItem[]> {
    const { name } = server;
    const owner = this.#ownerOf(server);
    return await this.#lists.get(owner, list, async () => {
      const all = await this.#use(server, async (connection) => {
        const { limits, home } = this.#options;
        const { signal: closing } = this.#closing;
        using late = new StartTimer(name, { ms: limits().startMs, home, closing });
        const items = await connection.list(list, late.signal).catch((error) => {
          throw error instanceof Answered ? listRefused(name, list, error) : error;
        });
        // Meanwhile it may have been started, or asked, for another client.
        if (this.#ownerOf(server) !== owner) this.#lists.forget(owner, list);
        return items;
      });
      if (list !== "tools") return all;
      return all.filter((tool) => server.tools?.includes(String(tool.name)) ?? true);
    });
  }

  /** Forgets lists of a server, all of them unless told, so that it is asked for them again. */
  forget(server: UpstreamServer, lists: readonly ListName[] = LIST_NAMES): void {
    this.#ownerOf(server);
    // A change is one for every client.
    this.#lists.forgetAll(server, lists);
  }

  /** Tells the running servers which log messages clients want. */
  setLevel(level: string): void {
    for (const connection of this.#running) connection.setLevel(level);
  }

  /** Runs a call, or another request, that passed the gates. */
  async call(server: UpstreamServer, call: Call): Promise<Outcome> {
    const { server: name, tool } = splitToolId(call.id);
    const { method = "tools/call", arguments: args } = call;
    const isTask = method === "tasks/listen";
    if (isTask || method === "resources/subscribe") {
      const uri = textOf(isTask ? args.taskId : args.uri);
      await this.#subscriptions.add({ server: name, uri, isTask }, call.signal)
        .catch((error) => {
          throw error instanceof Answered ? refused(name, error) : error;
        });
      return { kind: "result", result: { content: [] } };
    }
    const owner = this.#ownerOf(server);
    const there = () => {
      const known = this.#tool(owner, tool);
      const own = known === undefined ? tool : ownName(known);
      return server.toolName?.(own) ?? own;
    };
    const params = method === "tools/call" ? { name: there(), arguments: args } : args;
    const meta = call.meta && { _meta: call.meta };
    const request = { method, params: { ...params, ...meta } };
    const result = await this.#request(server, { ...request, call, owner });
    const task = taskIn(result, call);
    if (task !== undefined) this.#tasks.note(name, task);
    const told = resultOf(result, { name, method });
    return { kind: "result", result: told, ...(task && { task: task.status }) };
  }

  /** Follows a resource for one less. */
  unfollow(followed: Followed): void {
    this.#subscriptions.remove(followed);
  }

  /** Follows anew, as far as what holds now lets it. */
  refollow(): void {
    this.#subscriptions.again();
  }

  /** Ends every server. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#subscriptions[Symbol.dispose]();
    this.#greetings[Symbol.dispose]();
    // A server that does not answer yet is not waited for.
    this.#closing.abort(new PmlError("CANCELLED", "Cannot start the server: PML is ending"));
    await this.#pool[Symbol.asyncDispose]();
  }

  async #request(
    server: UpstreamServer,
    { method, params, call, owner }: {
      readonly method: string;
      readonly params: JsonObject;
      readonly call: Call;
      /** The owner of the lists when the call began: computing it takes a hash. */
      readonly owner: ListOwner;
    },
  ): Promise<Json> {
    const { name } = server;
    let tells = true;
    const ask = async (connection: Connection) => {
      ({ tells } = connection);
      try {
        if (method !== "tools/call") return await connection.request(method, params, call);
        const { execution } = this.#tool(owner, String(params.name)) ?? {};
        const { taskSupport: support } = objectOf(execution);
        return await callTool(connection, params, { call, support });
      } catch (error) {
        if (!(error instanceof Answered)) throw error;
        if (method !== "tools/call") throw refused(name, error);
        const { code, data } = error;
        const _meta = { "pml/error": defined({ code, data }) };
        const result = { ...textResult(answeredBy(quoted(name), error)), isError: true, _meta };
        return result as unknown as JsonObject; // plain JSON
      }
    };
    const work = () => this.#use(server, ask);
    const result = await this.#options.starts.during(name, { onProgress: call.onProgress, work });
    // What an earlier process of it told is looked at again: it may have been another program.
    for (const list of this.#lists.takeOld(owner, tells ? Infinity : FRESH_MS)) {
      this.#lists.forget(owner, list);
      this.#options.told.changed(name, list);
    }
    return result;
  }

  async #follow({ server, ...following }: Following): Promise<void> {
    if (!following.isTask && !this.#options.mayFollow(server)) {
      throw new PmlError(
        "PERMISSION_DENIED",
        `Cannot follow resources of ${quoted(server)} any more`,
      );
    }
    await this.#use(this.#options.server(server), (connection) => connection.tellOf(following));
  }

  /** What its lists depend on; the same object each time, because every call asks for it. */
  #ownerOf(server: UpstreamServer): ListOwner {
    const facts = [this.#options.workspace(), this.#greetings.ableOf(server.name)];
    return this.#lists.ownerOf(server, facts);
  }

  async #use<T>(server: UpstreamServer, use: (connection: Connection) => Promise<T>): Promise<T> {
    const { name } = server;
    const version = server.version();
    // By another way it may be there.
    const key = `${name} ${version}`;
    const note = (error: unknown) => {
      if (server.isRemote && error instanceof PmlError) {
        this.#outages.note(key, error);
      }
      throw error;
    };
    // Whatever it was, the pool would soon say only that it always fails.
    const what = { name, version, start: () => this.#started(server).catch(note) };
    using _ = this.#greetings.use(name);
    const away = this.#outages.of(key);
    // One that answers, such as that a key is wrong, does so soon.
    const waits = away && !UNREACHED.includes(away.code);
    await this.#outages.pass(key, {
      look: () => this.#pool.use(name, { ...what, use: () => Promise.resolve() }),
      ...(waits && { waitMs: this.#options.limits().startMs }),
    });
    const used = () => this.#pool.use(name, { ...what, use });
    try {
      return await used().catch((error) => {
        if (error instanceof SessionLost) return used();
        throw error;
      });
    } catch (error) {
      throw isUnsent(error) ? note(error) : error;
    }
  }

  async #started(server: UpstreamServer): Promise<Connection> {
    const { limits, onLog, workspace, seesRoots, withoutSecrets, home } = this.#options;
    const { name } = server;
    const { signal: closing } = this.#closing;
    const uri = pathToFileURL(workspace()).href;
    const connection = await Connection.start({
      name,
      open: await server.way(closing),
      roots: () => seesRoots(name) ? [{ uri, name: "workspace" }] : [],
      capabilities: () => this.#greetings.ableOf(name),
      withoutSecrets,
      limits: limits(),
      home,
      closing,
      onLog: (level, text) => onLog(name, level, text),
      onNotification: (method, params) => this.#notices.take(name, { method, params }),
      tool: (tool) => this.#tool(this.#ownerOf(server), tool),
      onEnd: (ended) => {
        this.#running.delete(ended);
        this.#tasks.end(name);
      },
    });
    if (connection.alive) this.#running.add(connection);
    this.#greetings.met(name, connection);
    this.#lists.outdate(this.#ownerOf(server));
    const level = this.#options.level();
    if (level !== undefined) connection.setLevel(level);
    return connection;
  }

  /** Gives what is known of a tool, by its name here or there. */
  #tool(owner: ListOwner, tool: string): ListItem | undefined {
    return this.#toolsOf(this.#lists.known(owner, "tools")).get(tool);
  }
}
