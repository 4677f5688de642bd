/**
 * Builds Deno's flags for paths and hosts. A host name does not give access to private addresses.
 *
 * @module
 */

import { isLiteral, PRIVATE_IPV4 } from "../core/address.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";

/** The reason why a path cannot be granted. */
export const NO_COMMA = "Deno cannot grant a path with a comma in it";

/**
 * Returns the flags that allow hosts; `*` means all. A private address is reachable only if it is
 * granted itself.
 */
export function netFlags(hosts: readonly string[]): readonly string[] {
  if (hosts.length === 0) return [];
  const allow = hosts.includes("*") ? "--allow-net" : `--allow-net=${hosts.join(",")}`;
  const privateAddresses = [...PRIVATE_IPV4, "[::1]", "[::]"].join(",");
  return [allow, ...(hosts.some(isLiteral) ? [] : [`--deny-net=${privateAddresses}`])];
}

/**
 * Returns the flag of Deno that names paths; empty if there are none. `action` begins the error
 * about a bad path.
 */
export function pathFlag(flag: string, paths: readonly string[], action: string): string[] {
  const comma = paths.find((path) => path.includes(","));
  if (comma === undefined) return paths.length > 0 ? [`--${flag}=${paths.join(",")}`] : [];
  throw new PmlError("SANDBOX_DENIED", `${action} ${quoted(comma, 300)}: it contains a comma`, {
    hint: `${NO_COMMA}: rename the folder`,
  });
}
