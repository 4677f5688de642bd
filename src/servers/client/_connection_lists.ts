/**
 * Reads the lists of servers on their connections. Before a call is sent, compares its tool with
 * the list on this connection, because a new connection may lead to another program than before.
 *
 * @module
 */

import { messageOf, type PmlError } from "../../core/errors.ts";
import { memoized } from "../../core/memo.ts";
import { LateStarts } from "../../io/late_starts.ts";
import { unlessAborted } from "../../io/waiting.ts";
import { RpcError } from "../../protocol/errors.ts";
import {
  LIST_NAMES,
  type ListItem,
  type ListName,
  withInstructions,
} from "../../protocol/lists.ts";
import { listError } from "./_error_answers.ts";
import type { DeclaredCapabilities } from "./_declared_capabilities.ts";
import { ownName } from "./_readable.ts";
import { FRESH_MS, type ListedTools, type ListKey, ServerLists } from "./_server_lists.ts";
import { startTimer } from "./_start_timer.ts";
import type { ServerCall } from "./_server_call.ts";
import { usableItems } from "./_usable_skills.ts";
import type { ServerConnection } from "./connection.ts";
import type { UpstreamServer } from "./wire.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";

/** The maximum number of times that a call requests a list that its server keeps changing. */
const LISTS_MAX = 3;
/** The longest time that a list from a server over HTTP counts as current, in milliseconds. */
const MAX_AGE_MS = 300_000;

/** Reads the lists of all servers, and caches them. */
export class ConnectionLists {
  readonly cache: ServerLists;
  readonly #host: UpstreamsHost;
  readonly #declared: DeclaredCapabilities;
  readonly #closing: AbortSignal;
  readonly #lateStarts: LateStarts;
  /**
   * The servers that could not be reached a short time ago. Commands that contact no server show
   * these errors.
   */
  readonly #unreached: LateStarts;
  /** Maps each tool by its name in PML and by its name at the server, so that both find it. */
  readonly #byEitherName = memoized((tools: readonly ListItem[]) =>
    new Map(tools.flatMap((tool) => [[String(tool.name), tool], [ownName(tool), tool]] as const))
  );
  /**
   * Maps each tool by its name in PML. If two tools have the same name, the first one is used, as in
   * the catalog, from which the checks of a call take the definition.
   */
  readonly #byPmlName = memoized((tools: readonly ListItem[]) =>
    new Map(tools.toReversed().map((tool) => [tool.name, tool]))
  );

  /** `closing` aborts reads. */
  constructor(host: UpstreamsHost, declared: DeclaredCapabilities, closing: AbortSignal) {
    this.#host = host;
    this.#declared = declared;
    this.#closing = closing;
    this.#lateStarts = new LateStarts(host);
    this.#unreached = new LateStarts(host, "unreached");
    this.cache = new ServerLists(
      host.home,
      (error) =>
        host.logServer("lists", "warn", `Cannot write the lists of a server: ${messageOf(error)}`),
    );
  }

  /** Returns the key of the lists that a server has for the current client. */
  keyOf(server: UpstreamServer): ListKey {
    const capabilities = this.#declared.capabilitiesFor(server.name);
    return this.cache.keyOf(server, { workspace: this.#host.workspace, capabilities });
  }

  /**
   * Returns a list of a server: the same array until the list is forgotten. `use` runs a function
   * with a connection.
   */
  async get(
    server: UpstreamServer,
    list: ListName,
    use: (
      read: (connection: ServerConnection) => Promise<readonly ListItem[]>,
    ) => Promise<readonly ListItem[]>,
  ): Promise<readonly ListItem[]> {
    const listKey = this.keyOf(server);
    const ask = () =>
      use(async (connection) => {
        const items = await this.#read(server, { connection, listKey, list });
        // If another client became the current one during the read, the server may have answered
        // for the capabilities of that client. Then the list must not be cached under this key:
        // `forget()` during a load has this effect.
        if (this.keyOf(server) !== listKey) this.cache.forget(listKey, list);
        return items;
      });
    return await this.cache.get(listKey, list, ask);
  }

  /** Returns whether a list of a server is cached. */
  has(server: UpstreamServer, list: ListName): boolean {
    return this.cache.has(this.keyOf(server), list);
  }

  /**
   * Returns a list that was cached for a client with other capabilities; undefined if there is
   * none, or if the list for the current client is cached. Starts nothing.
   */
  earlierList(server: UpstreamServer, list: ListName): readonly ListItem[] | undefined {
    return this.cache.earlierList(this.keyOf(server), list);
  }

  /** Returns the error of a recent start that took too long; undefined if there was none. */
  lateStart(server: UpstreamServer): PmlError | undefined {
    return this.#lateStarts.errorOf(server);
  }

  /** Forgets that a start took too long, so that the next start has the whole time limit. */
  forgetLateStart(server: UpstreamServer): void {
    this.#lateStarts.forget(server);
  }

  /** Records that a server could not be reached, until it lists something or the record is too old. */
  recordUnreached(server: UpstreamServer, error: PmlError): void {
    this.#unreached.record(server, error);
  }

  /** Returns the error of a server that could not be reached a short time ago, also by another process. */
  unreachedError(server: UpstreamServer): PmlError | undefined {
    return this.#unreached.errorOf(server);
  }

  /** Removes lists of a server from the cache, all by default, so that they are loaded again. */
  forget(server: UpstreamServer, lists: readonly ListName[] = LIST_NAMES): void {
    // Registers the current key, so that its lists on disk are removed, too.
    this.keyOf(server);
    this.cache.forgetAll(server, lists);
  }

  /** Returns the cached definition of a tool, by its name in PML or its name at the server. */
  tool(listKey: ListKey, tool: string): ListItem | undefined {
    return this.#byEitherName(this.cache.cached(listKey, "tools")).get(tool);
  }

  /**
   * Returns the name of a tool that PML sends with a call: its name in the server's list, in the
   * form that the server expects in calls. `tool` is its name in PML.
   */
  ownNameOf(server: UpstreamServer, tool: string, listKey: ListKey): string {
    const listedTool = this.tool(listKey, tool);
    const listedName = listedTool === undefined ? tool : ownName(listedTool);
    return server.toolName?.(listedName) ?? listedName;
  }

  /**
   * Throws if the server no longer lists the tool as it was checked. Returns a promise if the tools
   * have to be listed first.
   */
  compare(request: ServerCall, connection: ServerConnection): Promise<void> | undefined {
    const { server, call, listKey, hasToBeListed } = request;
    if (!hasToBeListed) return undefined;
    const tools = this.cache.cached(listKey, "tools");
    if (!isListedNow(connection, { isRemote: server.isRemote, listKey, tools })) {
      return this.#compareListed(request, connection);
    }
    call.assertListed(this.#byPmlName(tools).get(call.tool));
    return undefined;
  }

  async #compareListed({ server, call }: ServerCall, connection: ServerConnection): Promise<void> {
    const tools = await this.listToolsOn(connection, server, call.cancellation.signal);
    call.assertListed(this.#byPmlName(tools).get(call.tool));
  }

  /**
   * Returns the tools that a server has listed on this connection. Requests them if the last list
   * is not current. Calls wait for the list because the program may differ from the approved one.
   */
  async listToolsOn(
    connection: ServerConnection,
    server: UpstreamServer,
    signal: AbortSignal,
  ): Promise<readonly ListItem[]> {
    const { cache } = this;
    const listKey = this.keyOf(server);
    const before = cache.cached(listKey, "tools");
    let tools = before;
    // A server can report changes without end, so after a few lists the last one is used.
    for (let count = 0; count < LISTS_MAX; count++) {
      const { isRemote } = server;
      if (isListedNow(connection, { isRemote, listKey, tools: cache.cached(listKey, "tools") })) {
        break;
      }
      const read = () => this.#read(server, { connection, listKey, list: "tools" });
      tools = await unlessAborted(cache.renew(listKey, "tools", read), signal);
    }
    if (tools !== before) this.#host.clients.onListChanged(server.name, "tools");
    return tools;
  }

  /**
   * Forgets the lists that may have changed: lists from an earlier process of the server, and lists
   * that are too old if the server does not report changes.
   */
  forgetOld({ server: { name }, hasToBeListed, listKey, connection }: ServerCall): void {
    const maxMs = connection?.reportsChanges === true ? Infinity : FRESH_MS;
    for (const list of this.cache.takeOld(listKey, maxMs)) {
      // `compare()` has already requested the tools again for this call, if that was necessary.
      if (list === "tools" && hasToBeListed) continue;
      this.cache.forget(listKey, list);
      this.#host.clients.onListChanged(name, list);
    }
  }

  /** Reads a list on a connection, with the time limit of a start. */
  async #read(
    server: UpstreamServer,
    { connection, listKey, list }: {
      readonly connection: ServerConnection;
      readonly listKey: ListKey;
      readonly list: ListName;
    },
  ): Promise<readonly ListItem[]> {
    const host = this.#host;
    const { name, tools: only } = server;
    using timer = startTimer(server, host, this.#closing);
    const requestedAt = performance.now();
    const { items, ttlMs } = await connection.list(list, timer.signal).catch((error) => {
      throw error instanceof RpcError ? listError(name, list, error) : error;
    });
    this.#lateStarts.forget(server);
    this.#unreached.forget(server);
    if (list !== "tools") {
      return usableItems(list, items, { name, host });
    }
    const usable = items.filter((tool) => only?.includes(String(tool.name)) ?? true);
    const listed = withInstructions(usable, connection.instructions);
    const tools = sameOrNew(this.cache.cached(listKey, "tools"), listed);
    connection.listedTools.set(listKey, { tools, requestedAt, ttlMs });
    return tools;
  }
}

/** Returns whether the cached tools are the current list of the server on this connection. */
function isListedNow(
  connection: Pick<ServerConnection, "listedTools" | "reportsChanges" | "lostAt">,
  { isRemote = false, listKey, tools }: Pick<UpstreamServer, "isRemote"> & {
    readonly listKey: ListKey;
    /** The cached tools. */
    readonly tools: readonly ListItem[];
  },
): boolean {
  const last = connection.listedTools.get(listKey);
  if (last === undefined || tools !== last.tools) return false;
  // A program cannot be replaced while its pipe is open.
  if (!isRemote) return true;
  // A server that could not be reached since then may have been started again.
  return last.requestedAt > connection.lostAt &&
    performance.now() - last.requestedAt <= maxAgeOf(last, connection.reportsChanges);
}

/** Returns how long a list from a server over HTTP counts as current, in milliseconds. */
function maxAgeOf({ ttlMs }: ListedTools, reportsChanges: boolean): number {
  if (ttlMs !== undefined && ttlMs > 0) return Math.min(ttlMs, MAX_AGE_MS);
  if (reportsChanges) return MAX_AGE_MS;
  return ttlMs ?? FRESH_MS;
}

/** Returns the earlier list if the new one is equal, so that values derived from it stay valid. */
function sameOrNew(
  before: readonly ListItem[],
  now: readonly ListItem[],
): readonly ListItem[] {
  const isSame = before.length === now.length && before.length > 0 &&
    now.every((item, index) => JSON.stringify(item) === JSON.stringify(before[index]));
  return isSame ? before : now;
}
