/**
 * A server that speaks MCP, whatever carries it.
 *
 * @module
 */

import type { Call, Outcome } from "../core/call.ts";
import { KnownServer, type KnownServerOptions } from "../core/known_server.ts";
import type { ListItem, ListName } from "../core/lists.ts";
import type { Upstreams, UpstreamServer } from "./upstreams.ts";

/** What such a server is made with. */
export interface McpServerOptions extends KnownServerOptions {
  readonly upstreams: Upstreams;
  /** Returns the way to it, with the values of this moment; throws what is missing. */
  readonly way: () => UpstreamServer;
}

/** A server behind a connection: a program on pipes, or an address. */
export class McpServer extends KnownServer {
  /** Returns the way to it, with the values of this moment; throws what is missing. */
  readonly way: () => UpstreamServer;
  readonly #upstreams: Upstreams;

  /** Takes the connections; starts nothing. */
  constructor(options: McpServerOptions) {
    super(options);
    ({ way: this.way, upstreams: this.#upstreams } = options);
  }

  /** Returns a list, as the server has it for this client. */
  override async list(list: ListName): Promise<readonly ListItem[]> {
    return await this.#upstreams.listOf(this.way(), list);
  }

  /** Passes a call or another request on. */
  override async call(call: Call): Promise<Outcome> {
    return await this.#upstreams.call(this.way(), call);
  }

  /** Forgets lists, so that the server is asked again. */
  override forget(lists?: readonly ListName[]): void {
    try {
      this.#upstreams.forget(this.way(), lists);
    } catch {
      // A value is missing, and nothing is kept of it: who asks for its list is told.
    }
  }
}
