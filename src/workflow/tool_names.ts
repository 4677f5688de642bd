/**
 * Finds tools by the names that plans and code use.
 *
 * @module
 */

import type { ToolId } from "../core/tool_id.ts";
import type { Servers } from "../servers/lists/servers.ts";
import { unknownTool } from "../servers/lists/unknown_tool.ts";

/** Finds tools by their names. */
export interface ToolNames {
  /** Returns the id of a tool by its listed name. Throws UNKNOWN_TOOL. */
  idOf(name: string): ToolId;
}

/** Finds the tools of all servers. */
export class ListedToolNames implements ToolNames {
  readonly #servers: Servers;

  /** Creates an instance. Lists nothing. */
  constructor(servers: Servers) {
    this.#servers = servers;
  }

  /** Returns the id of a tool. Throws UNKNOWN_TOOL. */
  idOf(name: string): ToolId {
    const id = this.#servers.idOf(name);
    if (id === undefined) throw unknownTool(name, this.#servers);
    return id;
  }
}
