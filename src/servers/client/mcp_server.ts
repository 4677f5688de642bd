/**
 * An MCP server, over any transport.
 *
 * @module
 */

import type { Outcome } from "../../protocol/call.ts";
import { KnownServer, type KnownServerOptions } from "../known_server.ts";
import type { ListItem, ListName } from "../../protocol/lists.ts";
import type { CheckedCall } from "../server.ts";
import type { Upstreams } from "./upstreams.ts";
import type { UpstreamServer } from "./upstream_server.ts";

/** A server that PML reaches through a connection: a program, or a server at a URL. */
export class McpServer extends KnownServer {
  /** Returns how to reach it, with the present values of variables. Throws if one is missing. */
  readonly upstream: () => UpstreamServer;
  readonly #upstreams: Upstreams;

  /** Takes the connections, and how to reach it; starts nothing. */
  constructor(
    options: KnownServerOptions,
    upstreams: Upstreams,
    upstream: () => UpstreamServer,
  ) {
    super(options);
    this.#upstreams = upstreams;
    this.upstream = upstream;
  }

  /** Returns whether its connections are among these. */
  isReachedBy(upstreams: Upstreams): boolean {
    return this.#upstreams === upstreams;
  }

  /** Returns a list as the server shows it to this client. */
  override async list(list: ListName): Promise<readonly ListItem[]> {
    return await this.#upstreams.listOf(this.upstream(), list);
  }

  /** Returns whether a list is cached. */
  hasList(list: ListName): Promise<boolean> {
    return Promise.try(() => this.#upstreams.lists.has(this.upstream(), list));
  }

  /** Returns a list that was cached for a client with other capabilities. */
  earlierList(list: ListName): Promise<readonly ListItem[] | undefined> {
    return Promise.try(() => this.#upstreams.lists.earlier(this.upstream(), list));
  }

  /** Returns the ids of the extensions that it declared; none before its first start. */
  extensions(): readonly string[] {
    return this.#upstreams.extensionsOf(this.name);
  }

  /** Passes a call or another request on. */
  override call(call: CheckedCall): Promise<Outcome> {
    return this.send(call, true);
  }

  /** Passes a call on. `isCompared`: the server must list the tool that was checked. */
  protected send(call: CheckedCall, isCompared: boolean): Promise<Outcome> {
    return this.#upstreams.call(this.upstream(), call, isCompared && call.method === undefined);
  }

  /** Removes cached lists, so that they are loaded again. */
  override forget(lists?: readonly ListName[]): void {
    try {
      this.#upstreams.lists.forget(this.upstream(), lists);
    } catch {
      // A value is missing, so no list is cached. Listing it reports the error.
    }
  }
}
