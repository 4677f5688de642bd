/**
 * The server for a name that no source lists, or that a file disables.
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

/** A server whose calls fail. Before, its approval may look the name up in registries. */
export class UnknownServer extends KnownServer {
  readonly #servers: Pick<Servers, "unknownToolFacts" | "lists">;

  /** Errors suggest similar names from `servers`. */
  constructor(options: KnownServerOptions, servers: Pick<Servers, "unknownToolFacts" | "lists">) {
    super(options);
    this.#servers = servers;
  }

  /** Looks the name up if that is allowed. Returns an approval request if one is needed. */
  override async findUnapproved(call: ResolvedCall): Promise<Unapproved | undefined> {
    const near = nearServer(call.id, this.#servers);
    try {
      const unapproved = await super.findUnapproved(call);
      if (unapproved === undefined || near === undefined) return unapproved;
      const suggestion = `Did you mean ${quoted(near)}?`;
      return { ...unapproved, facts: [suggestion, ...unapproved.facts] };
    } catch (error) {
      // A client with an identity gets the same error for an unknown name as for a denied name, so
      // that it cannot find out which names exist.
      const { identity } = this.#servers.unknownToolFacts.host.policy?.now.config.restrictions ??
        {};
      const isUnknown = near !== undefined || identity !== undefined;
      throw error instanceof UnreachedName && isUnknown ? await this.#unknownError(call.id) : error;
    }
  }

  /** Throws UNKNOWN_TOOL. */
  override async definitionFor({ id }: Call): Promise<ToolDefinition> {
    throw await this.#unknownError(id);
  }

  /** Throws UNKNOWN_TOOL. */
  override async list(): Promise<readonly ListItem[]> {
    throw await this.#unknownError();
  }

  /** Throws UNKNOWN_TOOL. */
  override async call(): Promise<Outcome> {
    throw await this.#unknownError();
  }

  async #unknownError(id = toolId(this.name, WHOLE_SERVER)): Promise<PmlError> {
    // The error suggests only tools that PML has listed, and may be the first use of all lists.
    await this.#servers.lists.prepareCached();
    return unknownTool(id, this.#servers);
  }
}
