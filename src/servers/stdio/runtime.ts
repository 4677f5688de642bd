/**
 * Opens servers that are programs.
 *
 * @module
 */

import { McpServer } from "../client/mcp_server.ts";
import type { LoadRuntime } from "../host.ts";
import { programOf } from "../kinds.ts";

/** Returns the runtime of programs. */
export const load: LoadRuntime = ({ machine }) =>
  Promise.resolve({
    open: (options, { definition }, values) => {
      const program = definition && programOf(definition);
      if (program === undefined) throw new Error(`no command starts ${options.listing.name}`);
      const upstream = () => machine.programs.of(machine.withTrial(values.stdio(program)));
      return new McpServer(options, machine.upstreams, upstream);
    },
  });
