/**
 * Runs a server of kind cloud. Its calls go to the hub, or to the address in the manifest of its
 * registry.
 *
 * @module
 */

import type { Call, Outcome } from "../../protocol/call.ts";
import type { CheckedCall } from "../server.ts";
import { type KnownServerOptions, toolsOnlyError } from "../known_server.ts";
import type { ListItem, ListName } from "../../protocol/lists.ts";
import { methodDefinition } from "../server.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import { McpServer } from "../client/mcp_server.ts";
import type { Upstreams } from "../client/upstreams.ts";
import type { HubRouting } from "./hub_routing.ts";
import type { Cloud, CloudEntry } from "./rpc.ts";

const NO_ITEMS: readonly ListItem[] = [];

/** A server in the cloud. */
export class CloudServer extends McpServer {
  readonly #cloud: Cloud;
  readonly #hub: HubRouting;
  readonly #entry: CloudEntry;

  /** Sends nothing yet. */
  constructor(
    options: KnownServerOptions,
    entry: CloudEntry,
    { cloud, hub, upstreams }: {
      readonly cloud: Cloud;
      readonly hub: HubRouting;
      readonly upstreams: Upstreams;
    },
  ) {
    super(options, upstreams, () => cloud.upstreamOf(entry));
    this.#cloud = cloud;
    this.#hub = hub;
    this.#entry = entry;
  }

  /**
   * Returns the definition of a tool. Throws if a key for the call is missing, so that the error is
   * reported before the user is asked.
   */
  override definitionFor(call: Call): Promise<ToolDefinition> {
    const [cloud, entry] = [this.#cloud, this.#entry];
    return Promise.try(() => {
      cloud.assertKeys(entry);
      if (call.method !== undefined) return methodDefinition(call.method);
      return cloud.definition(entry, call);
    });
  }

  /**
   * Returns lines for the user with the destination of a call and the keys that are sent with it.
   */
  override consentLines(): Promise<readonly string[]> {
    return Promise.resolve(this.#cloud.facts(this.#entry));
  }

  /** Returns the tools that the registry of the server lists. */
  override list(list: ListName): Promise<readonly ListItem[]> {
    const [cloud, entry] = [this.#cloud, this.#entry];
    return Promise.try(() => {
      if (entry.manifest === undefined) throw toolsOnlyError(this.name);
      return list === "tools" ? cloud.definitions(entry) : NO_ITEMS;
    });
  }

  /** Returns true, because the registry lists the tools. */
  override hasList(): Promise<boolean> {
    return Promise.resolve(true);
  }

  /** Sends a call to the server, and then refreshes the list of the hub in the background. */
  override async call(call: CheckedCall): Promise<Outcome> {
    const [cloud, entry] = [this.#cloud, this.#entry];
    if (call.method !== undefined && entry.manifest === undefined) throw toolsOnlyError(this.name);
    try {
      // The registry describes the tools, so the server is not asked for a list.
      const outcome = await this.send(call, false);
      // Only after a call to the cloud: for a user who has only local servers, PML never asks the
      // hub.
      void this.#hub.refresh();
      return outcome;
    } catch (error) {
      throw cloud.failure(error, entry, call.id);
    }
  }
}
