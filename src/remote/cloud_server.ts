/**
 * A server of kind cloud: its calls go to the hub, or where its registry says.
 *
 * @module
 */

import type { Call, Outcome } from "../core/call.ts";
import { toolsOnly } from "../core/known_server.ts";
import type { ListItem, ListName } from "../core/lists.ts";
import { methodDefinition } from "../core/server.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { splitToolId } from "../core/tool_id.ts";
import { McpServer, type McpServerOptions } from "../mcp_client/mcp_server.ts";
import type { HubRouting } from "./hub_routing.ts";
import type { Cloud, CloudEntry } from "./rpc.ts";

/** What such a server is made with. */
export interface CloudServerOptions extends Omit<McpServerOptions, "way"> {
  readonly cloud: Cloud;
  readonly hub: HubRouting;
  readonly entry: CloudEntry;
}

const NO_ITEMS: readonly ListItem[] = [];

/** A server in the cloud. */
export class CloudServer extends McpServer {
  readonly #options: CloudServerOptions;

  /** Takes the way to the cloud; sends nothing. */
  constructor(options: CloudServerOptions) {
    super({ ...options, way: () => options.cloud.of(options.entry) });
    this.#options = options;
  }

  /** Returns what is known of a tool; throws what a call lacks, before anybody is asked about it. */
  override definitionFor({ id, method }: Call): Promise<ToolDefinition> {
    const { cloud, entry } = this.#options;
    return Promise.try(() => {
      cloud.assertReached(entry);
      if (method !== undefined) return methodDefinition(method);
      return cloud.definition(entry, splitToolId(id).tool);
    });
  }

  /** Says where a call goes and what goes with it. */
  override consentLines(): Promise<readonly string[]> {
    return Promise.resolve(this.#options.cloud.facts(this.#options.entry));
  }

  /** Returns the tools that its registry tells of. */
  override list(list: ListName): Promise<readonly ListItem[]> {
    const { cloud, entry } = this.#options;
    return Promise.try(() => {
      if (entry.manifest === undefined) throw toolsOnly(this.name);
      return list === "tools" ? cloud.definitions(entry) : NO_ITEMS;
    });
  }

  /** Sends a call there, and asks for the list of the hub behind it. */
  override async call(call: Call): Promise<Outcome> {
    const { cloud, entry, hub } = this.#options;
    if (call.method !== undefined && entry.manifest === undefined) throw toolsOnly(this.name);
    try {
      const outcome = await super.call(call);
      // Only now: what stays on this machine asks the hub for nothing.
      void hub.refresh();
      return outcome;
    } catch (error) {
      throw cloud.failure(error, entry, call.id);
    }
  }
}
