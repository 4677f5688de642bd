/**
 * The flags of Deno that open a process to granted hosts, and to no private address behind them.
 *
 * @module
 */

import { isLiteral, PRIVATE_IPV4 } from "../core/address.ts";

/** Opens hosts, `*` standing for all; an address that was granted is itself. */
export function netFlags(hosts: readonly string[]): readonly string[] {
  if (hosts.length === 0) return [];
  const allow = hosts.includes("*") ? "--allow-net" : `--allow-net=${hosts.join(",")}`;
  const closed = [...PRIVATE_IPV4, "[::1]", "[::]"].join(",");
  return [allow, ...(hosts.some(isLiteral) ? [] : [`--deny-net=${closed}`])];
}
