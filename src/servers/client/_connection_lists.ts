/**
 * Reads the lists of servers on their connections, and compares called tools with them before a call
 * is sent: the program behind a new connection may be another one than before.
 *
 * @module
 */

import { messageOf } from "../../core/errors.ts";
import { memoized } from "../../core/memo.ts";
import { unlessAborted } from "../../io/waiting.ts";
import { RpcError } from "../../protocol/errors.ts";
import {
  LIST_NAMES,
  type ListItem,
  type ListName,
  withInstructions,
} from "../../protocol/lists.ts";
import { listRefused } from "./_answers.ts";
import type { DeclaredCapabilities } from "./_declared.ts";
import { ownName } from "./_readable.ts";
import { FRESH_MS, type ListedTools, type ListKey, ServerLists } from "./_server_lists.ts";
import { startTimer } from "./_start_timer.ts";
import type { ServerCall } from "./_tool_call.ts";
import { usableItems } from "./_usable_skills.ts";
import type { ServerConnection } from "./connection.ts";
import type { UpstreamServer } from "./upstream_server.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";

/** How often a call asks for a list that its server keeps changing. */
const LISTS_MAX = 3;
/** The longest time that a list from a server over HTTP counts as current, in milliseconds. */
const OLDEST_MS = 300_000;

/** The lists of all servers, which are cached. */
export class ConnectionLists {
  readonly cache: ServerLists;
  readonly #host: UpstreamsHost;
  readonly #declared: DeclaredCapabilities;
  readonly #closing: AbortSignal;
  readonly #toolsOf = memoized((tools: readonly ListItem[]) =>
    new Map(tools.flatMap((tool) => [[String(tool.name), tool], [ownName(tool), tool]] as const))
  );
  /** Of two tools with one name the first counts, as in the catalog. */
  readonly #byName = memoized((tools: readonly ListItem[]) =>
    new Map(tools.toReversed().map((tool) => [tool.name, tool]))
  );

  /** Takes the collaborators. `closing` ends the reading. */
  constructor(host: UpstreamsHost, declared: DeclaredCapabilities, closing: AbortSignal) {
    this.#host = host;
    this.#declared = declared;
    this.#closing = closing;
    this.cache = new ServerLists(
      host.home,
      (error) =>
        host.logServer("lists", "warn", `Cannot write the lists of a server: ${messageOf(error)}`),
    );
  }

  /** Returns the owner of the lists that a server has for the present client. */
  ownerOf(server: UpstreamServer): ListKey {
    const able = this.#declared.capabilitiesFor(server.name);
    return this.cache.ownerOf(server, { workspace: this.#host.workspace, able });
  }

  /**
   * Returns a list of a server: the same array until the server reports a change. `use` runs a
   * function with a connection.
   */
  async get(
    server: UpstreamServer,
    list: ListName,
    use: (
      read: (connection: ServerConnection) => Promise<readonly ListItem[]>,
    ) => Promise<readonly ListItem[]>,
  ): Promise<readonly ListItem[]> {
    const owner = this.ownerOf(server);
    const ask = () =>
      use(async (connection) => {
        const items = await this.#read(server, { connection, owner, list });
        // Meanwhile it may have been started or asked for another client.
        if (this.ownerOf(server) !== owner) this.cache.forget(owner, list);
        return items;
      });
    return await this.cache.get(owner, list, ask);
  }

  /** Returns whether a list of a server is cached. */
  has(server: UpstreamServer, list: ListName): boolean {
    return this.cache.has(this.ownerOf(server), list);
  }

  /** Returns a list that was cached for a client with other capabilities. Starts nothing. */
  earlier(server: UpstreamServer, list: ListName): readonly ListItem[] | undefined {
    return this.cache.earlier(this.ownerOf(server), list);
  }

  /** Removes cached lists of a server, by default all, so that they are loaded again. */
  forget(server: UpstreamServer, lists: readonly ListName[] = LIST_NAMES): void {
    // Adds the present owner, so that its lists on disk are not used, either.
    this.ownerOf(server);
    this.cache.forgetAll(server, lists);
  }

  /** Returns the definition of a tool, by its name here or at the server, if it is known. */
  tool(owner: ListKey, tool: string): ListItem | undefined {
    return this.#toolsOf(this.cache.cached(owner, "tools")).get(tool);
  }

  /** Returns the server's own name of a tool. */
  ownNameOf(server: UpstreamServer, tool: string, owner: ListKey): string {
    const listedTool = this.tool(owner, tool);
    const own = listedTool === undefined ? tool : ownName(listedTool);
    return server.toolName?.(own) ?? own;
  }

  /** Fails if the server no longer lists the checked tool. A promise lists its tools first. */
  compare(request: ServerCall, connection: ServerConnection): Promise<void> | undefined {
    const { server, call, owner, isCompared } = request;
    if (!isCompared) return undefined;
    const tools = this.cache.cached(owner, "tools");
    if (!isListedNow(connection, { isRemote: server.isRemote, owner, tools })) {
      return this.#compareListed(request, connection);
    }
    call.assertListed(this.#byName(tools).get(call.tool));
    return undefined;
  }

  async #compareListed({ server, call }: ServerCall, connection: ServerConnection): Promise<void> {
    const tools = await this.listedOn(connection, server, call.cancellation.signal);
    call.assertListed(this.#byName(tools).get(call.tool));
  }

  /**
   * Returns the tools that a server has listed on this connection, and asks for them if it has not.
   * A call waits for that: the program may be another one than the approved one.
   */
  async listedOn(
    connection: ServerConnection,
    server: UpstreamServer,
    signal: AbortSignal,
  ): Promise<readonly ListItem[]> {
    const [owner, { cache }] = [this.ownerOf(server), this];
    const before = cache.cached(owner, "tools");
    let tools = before;
    // A server that reports changes without end is compared with the last list that came.
    for (let count = 0; count < LISTS_MAX; count++) {
      const { isRemote } = server;
      if (isListedNow(connection, { isRemote, owner, tools: cache.cached(owner, "tools") })) break;
      const read = () => this.#read(server, { connection, owner, list: "tools" });
      tools = await unlessAborted(cache.renew(owner, "tools", read), signal);
    }
    if (tools !== before) this.#host.clients.changed(server.name, "tools");
    return tools;
  }

  /** Loads lists from an earlier process again: the program may have changed. */
  renewOld({ server: { name }, isCompared, owner, connection }: ServerCall): void {
    const maxMs = connection?.tells === true ? Infinity : FRESH_MS;
    for (const list of this.cache.takeOld(owner, maxMs)) {
      // Calls compare the tools themselves.
      if (list === "tools" && isCompared) continue;
      this.cache.forget(owner, list);
      this.#host.clients.changed(name, list);
    }
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
    const host = this.#host;
    using late = startTimer(name, host, this.#closing);
    const at = performance.now();
    const { items, ttlMs } = await connection.list(list, late.signal).catch((error) => {
      throw error instanceof RpcError ? listRefused(name, list, error) : error;
    });
    if (list !== "tools") {
      return usableItems(list, items, { name, host });
    }
    const own = items.filter((tool) => only?.includes(String(tool.name)) ?? true);
    const all = withInstructions(own, connection.instructions);
    const tools = sameOrNew(this.cache.cached(owner, "tools"), all);
    connection.listedTools.set(owner, { tools, at, ttlMs });
    return tools;
  }
}

/** Returns whether the cached tools are those that the server has listed on this connection. */
function isListedNow(
  connection: Pick<ServerConnection, "listedTools" | "tells" | "lostAt">,
  { isRemote = false, owner, tools }: Pick<UpstreamServer, "isRemote"> & {
    readonly owner: ListKey;
    /** The cached tools. */
    readonly tools: readonly ListItem[];
  },
): boolean {
  const last = connection.listedTools.get(owner);
  if (last === undefined || tools !== last.tools) return false;
  // A program on a pipe is the same as long as the pipe is open.
  if (!isRemote) return true;
  // A server that could not be reached may have been started again.
  return last.at > connection.lostAt &&
    performance.now() - last.at <= longestOf(last, connection.tells);
}

/** Returns for how long a list from a server over HTTP counts as current, in milliseconds. */
function longestOf({ ttlMs }: ListedTools, tells: boolean): number {
  if (ttlMs !== undefined && ttlMs > 0) return Math.min(ttlMs, OLDEST_MS);
  if (tells) return OLDEST_MS;
  return ttlMs ?? FRESH_MS;
}

/** Returns the earlier list if a new one is equal: values derived from it stay valid. */
function sameOrNew(
  before: readonly ListItem[],
  now: readonly ListItem[],
): readonly ListItem[] {
  const isSame = before.length === now.length && before.length > 0 &&
    now.every((item, at) => JSON.stringify(item) === JSON.stringify(before[at]));
  return isSame ? before : now;
}
