/**
 * A name without a server: no source defines it, or a file disables it.
 *
 * @module
 */

import type { Call, Outcome } from "../protocol/call.ts";
import type { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { KnownServer, type KnownServerOptions } from "./known_server.ts";
import type { ListItem } from "../protocol/lists.ts";
import type { ResolvedCall } from "./server.ts";
import type { Unapproved } from "../policy/server_identity.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { toolId } from "../core/tool_id.ts";
import type { Servers } from "./lists/servers.ts";
import { nearServer, unknownTool } from "./lists/unknown_tool.ts";
import { WHOLE_SERVER } from "../search/catalog.ts";
import { UnreachedName } from "./unreached_name.ts";

/** A name whose calls fail, after the registries were asked, if that is allowed. */
export class UnknownServer extends KnownServer {
  readonly #servers: Pick<Servers, "around">;

  /** Takes the lists of servers, for the error that names similar tools. */
  constructor(options: KnownServerOptions, servers: Pick<Servers, "around">) {
    super(options);
    this.#servers = servers;
  }

  /** Returns an approval request for the lookup in registries, if it needs one. */
  override async unapproved(call: ResolvedCall): Promise<Unapproved | undefined> {
    const near = nearServer(call.id, this.#servers);
    try {
      const unapproved = await super.unapproved(call);
      if (unapproved === undefined || near === undefined) return unapproved;
      const suggestion = `Did you mean ${quoted(near)}?`;
      return { ...unapproved, facts: [suggestion, ...unapproved.facts] };
    } catch (error) {
      // To an identity, a name that cannot be looked up is as unknown as a denied one.
      const { identity } = this.#servers.around.host.policy?.now.config.narrowing ?? {};
      const isUnknown = near !== undefined || identity !== undefined;
      throw error instanceof UnreachedName && isUnknown
        ? unknownTool(call.id, this.#servers)
        : error;
    }
  }

  /** Throws UNKNOWN_TOOL. */
  override definitionFor({ id }: Call): Promise<ToolDefinition> {
    return Promise.reject(unknownTool(id, this.#servers));
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
    return unknownTool(toolId(this.name, WHOLE_SERVER), this.#servers);
  }
}
