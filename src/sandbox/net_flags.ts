/**
 * The flags of Deno that open a process to granted paths and hosts, and to no private address behind
 * those.
 *
 * @module
 */

import { isLiteral, PRIVATE_IPV4 } from "../core/address.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";

/** Opens hosts, `*` standing for all; an address that was granted is itself. */
export function netFlags(hosts: readonly string[]): readonly string[] {
  if (hosts.length === 0) return [];
  const allow = hosts.includes("*") ? "--allow-net" : `--allow-net=${hosts.join(",")}`;
  const closed = [...PRIVATE_IPV4, "[::1]", "[::]"].join(",");
  return [allow, ...(hosts.some(isLiteral) ? [] : [`--deny-net=${closed}`])];
}

/** Gives the flag of Deno that names paths, if there are any; `cannot` begins the error about one. */
export function pathFlag(flag: string, paths: readonly string[], cannot: string): string[] {
  const comma = paths.find((path) => path.includes(","));
  if (comma === undefined) return paths.length > 0 ? [`--${flag}=${paths.join(",")}`] : [];
  throw new PmlError("SANDBOX_DENIED", `${cannot} ${quoted(comma, 300)}: a comma`, {
    hint: "Deno cannot grant a path with a comma in it: rename the folder",
  });
}
