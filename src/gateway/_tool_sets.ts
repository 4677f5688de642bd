/**
 * What a client sees to which only the tools of a set exist.
 *
 * @module
 */

import { missingIn, type Toolset } from "../core/toolset.ts";
import type { GatewayOptions } from "./options.ts";

/** Returns the options for a client with a tool set: its judge denies all other tools. */
export function within(options: GatewayOptions, toolset: Toolset | undefined): GatewayOptions {
  if (toolset === undefined) return options;
  const { judge } = options;
  return { ...options, judge: (id, args) => missingIn([toolset], id) ?? judge(id, args) };
}
