/**
 * An MCP server, over any transport.
 *
 * @module
 */

import type { Call, Outcome } from "../core/call.ts";
import { KnownServer, type KnownServerOptions } from "../core/known_server.ts";
import type { ListItem, ListName } from "../core/lists.ts";
import type { QuickTool } from "../core/quick_tool.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { Upstreams, UpstreamServer } from "./upstreams.ts";

/** The options of `McpServer`. */
export interface McpServerOptions extends KnownServerOptions {
  readonly upstreams: Upstreams;
  /** Returns how to reach it, with the present values of variables. Throws if one is missing. */
  readonly way: () => UpstreamServer;
}

/** A server behind a connection: a program or a URL. */
export class McpServer extends KnownServer {
  /** Returns how to reach it, with the present values of variables. Throws if one is missing. */
  readonly way: () => UpstreamServer;
  readonly #upstreams: Upstreams;

  /** Takes the options; starts nothing. */
  constructor(options: McpServerOptions) {
    super(options);
    ({ way: this.way, upstreams: this.#upstreams } = options);
  }

  /** Returns a list as the server shows it to this client. */
  override async list(list: ListName): Promise<readonly ListItem[]> {
    return await this.#upstreams.listOf(this.way(), list);
  }

  /** Returns whether a list is cached. */
  hasList(list: ListName): Promise<boolean> {
    return Promise.try(() => this.#upstreams.hasList(this.way(), list));
  }

  /** Passes a call or another request on. */
  override async call(call: Call): Promise<Outcome> {
    return await this.#upstreams.call(this.way(), call);
  }

  /** Returns a tool that can be called at once, if the server runs. */
  protected override quickTool(definition: ToolDefinition): QuickTool | undefined {
    return this.#upstreams.quick.find(this.way, definition);
  }

  /** Removes cached lists, so that they are loaded again. */
  override forget(lists?: readonly ListName[]): void {
    try {
      this.#upstreams.forget(this.way(), lists);
    } catch {
      // A value is missing, so no list is cached. Listing it reports the error.
    }
  }
}
