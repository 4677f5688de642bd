/**
 * A server that PML reaches through a connection of MCP, over any transport.
 *
 * @module
 */

import type { PmlError } from "../../core/errors.ts";
import type { Outcome } from "../../protocol/call.ts";
import { KnownServer, type KnownServerOptions } from "../known_server.ts";
import type { ListItem, ListName } from "../../protocol/lists.ts";
import type { CheckedCall } from "../server.ts";
import type { Upstreams } from "./upstreams.ts";
import type { UpstreamServer } from "./wire.ts";

/** A server that PML reaches through a connection: a program, or a server at a URL. */
export class McpServer extends KnownServer {
  /**
   * Returns how to reach the server, with the current values of variables. Throws if one is
   * missing.
   */
  readonly upstream: () => UpstreamServer;
  readonly #upstreams: Upstreams;

  /** Starts nothing. `upstream` returns how to reach the server. */
  constructor(
    options: KnownServerOptions,
    upstreams: Upstreams,
    upstream: () => UpstreamServer,
  ) {
    super(options);
    this.#upstreams = upstreams;
    this.upstream = upstream;
  }

  /** Returns whether PML reaches the server through these connections. */
  isReachedBy(upstreams: Upstreams): boolean {
    return this.#upstreams === upstreams;
  }

  /** Returns a list as the server sends it for the current client. */
  override async list(list: ListName): Promise<readonly ListItem[]> {
    return await this.#upstreams.listOf(this.upstream(), list);
  }

  /** Returns whether a list is cached. */
  hasList(list: ListName): Promise<boolean> {
    return Promise.try(() => this.#upstreams.lists.has(this.upstream(), list));
  }

  /** Returns a list that was cached for a client with other capabilities. */
  readEarlierList(list: ListName): Promise<readonly ListItem[] | undefined> {
    return Promise.try(() => this.#upstreams.lists.earlierList(this.upstream(), list));
  }

  /** Returns the error of a recent start, also in another process, that took too long. */
  lateStartError(): Promise<PmlError | undefined> {
    // If the value of a variable is missing, the next start reports that.
    return Promise.try(() => this.#upstreams.lists.lateStart(this.upstream()))
      .catch(() => undefined);
  }

  /** Forgets that a start took too long. */
  forgetLateStart(): void {
    try {
      this.#upstreams.lists.forgetLateStart(this.upstream());
    } catch {
      // The value of a variable is missing. The next start reports the error.
    }
  }

  /** Returns the error of a server that could not be reached a short time ago. */
  unreachedError(): Promise<PmlError | undefined> {
    return Promise.try(() => this.#upstreams.lists.unreachedError(this.upstream()))
      .catch(() => undefined);
  }

  /** Returns the ids of the extensions that the server declared; none before its first start. */
  extensions(): readonly string[] {
    return this.#upstreams.extensionsOf(this.name);
  }

  /** Passes a call or another request on. */
  override call(call: CheckedCall): Promise<Outcome> {
    return this.send(call, true);
  }

  /**
   * Passes a call on. With `hasToBeListed`, it fails if the server no longer lists the checked tool.
   */
  protected send(call: CheckedCall, hasToBeListed: boolean): Promise<Outcome> {
    return this.#upstreams.call(this.upstream(), call, hasToBeListed && call.method === undefined);
  }

  /** Removes lists from the cache, so that they are loaded again. */
  override forget(lists?: readonly ListName[]): void {
    try {
      this.#upstreams.lists.forget(this.upstream(), lists);
    } catch {
      // The value of a variable is missing, so no list is cached. The next request of a list
      // reports it.
    }
  }
}
