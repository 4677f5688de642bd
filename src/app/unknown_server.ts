/**
 * A name behind which there is no server here: nothing defines it, or a file switched it off.
 *
 * @module
 */

import type { Call, Outcome } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { KnownServer, type KnownServerOptions } from "../core/known_server.ts";
import type { ListItem } from "../core/lists.ts";
import type { PassCall } from "../core/server.ts";
import type { Unapproved } from "../core/server_identity.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { Servers } from "../gateway/servers.ts";

/** What such a server is made with. */
export interface UnknownServerOptions extends KnownServerOptions {
  readonly servers: Pick<Servers, "unknown">;
}

/** A name that fails each call, after registries were asked where they may be. */
export class UnknownServer extends KnownServer {
  readonly #servers: UnknownServerOptions["servers"];

  /** Takes what names the tools that there are. */
  constructor(options: UnknownServerOptions) {
    super(options);
    this.#servers = options.servers;
  }

  /** Returns what is to be approved before a registry may be asked; throws for a disabled name. */
  override async unapproved(call: PassCall): Promise<Unapproved | undefined> {
    // Its name belongs to a file, so no registry learns it.
    if (this.kind === "disabled") throw this.#servers.unknown(call.id);
    return await super.unapproved(call);
  }

  /** Throws UNKNOWN_TOOL. */
  override definitionFor({ id, method }: Call): Promise<ToolDefinition> {
    return Promise.reject(method === undefined ? this.#servers.unknown(id) : this.#nothing());
  }

  /** Throws UNKNOWN_TOOL. */
  override list(): Promise<readonly ListItem[]> {
    return Promise.reject(this.#nothing());
  }

  /** Throws UNKNOWN_TOOL. */
  override call(): Promise<Outcome> {
    return Promise.reject(this.#nothing());
  }

  #nothing(): PmlError {
    return new PmlError(
      "UNKNOWN_TOOL",
      `Cannot find the server ${quoted(this.name)}: nothing defines it`,
    );
  }
}
