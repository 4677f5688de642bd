/**
 * Merges the grants of the user's file and of the workspace file.
 *
 * @module
 */

import type { Grants } from "./server_grants.ts";
import type { UserConfig } from "./user_config.ts";
import type { ServerDefinition } from "../servers/kind.ts";

// Without a prototype, like the grants of a file, so that a server's name cannot match a built-in
// property.
const NO_GRANTS: Grants = Object.freeze(Object.create(null));

/**
 * Returns the grants of a trusted workspace file, and the grants in the user's file for servers
 * that the user's file defines. A server that the workspace file defines under the same name gets
 * no grant of the user's file.
 */
export function effectiveGrants(
  shared: Grants = NO_GRANTS,
  { userConfig, servers }: {
    readonly userConfig: UserConfig;
    readonly servers: readonly ServerDefinition[];
  },
): Grants {
  const own = Object.entries(userConfig.grants).filter(([name]) =>
    userConfig.servers.some((server) => server.name === name && servers.includes(server))
  );
  if (own.length === 0) return shared;
  return Object.assign(Object.create(null), Object.fromEntries(own), shared);
}
