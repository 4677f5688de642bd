/**
 * Opens servers at a URL.
 *
 * @module
 */

import { McpServer } from "../client/mcp_server.ts";
import type { LoadRuntime } from "../host.ts";
import { remoteOf } from "../kinds.ts";

/** Returns the runtime of servers at a URL. */
export const load: LoadRuntime = (host) =>
  Promise.resolve({
    open: (options, { definition }, values) => {
      const remote = definition && remoteOf(definition);
      if (remote === undefined) throw new Error(`no URL leads to ${options.listing.name}`);
      const { addresses, upstreams } = host.machine;
      host.followSignIns();
      const upstream = () => addresses.of(values.http(remote));
      return new McpServer(options, upstreams, upstream);
    },
  });
