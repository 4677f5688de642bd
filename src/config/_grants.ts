/**
 * Puts the grants of the user's file and of the workspace file together.
 *
 * @module
 */

import type { Grants } from "./server_grants.ts";
import type { PersonConfig } from "./person.ts";
import type { ServerDefinition } from "../servers/kind.ts";

// Without a prototype, like the grants of a file, so that a server's name cannot match a built-in
// property.
const NO_GRANTS: Grants = Object.freeze(Object.create(null));

/**
 * Returns the grants of a trusted file, and those of the user for servers that the user defined:
 * a file that defines a server of the same name gets none of them.
 */
export function grantsThatHold(
  shared: Grants = NO_GRANTS,
  { person, servers }: {
    readonly person: PersonConfig;
    readonly servers: readonly ServerDefinition[];
  },
): Grants {
  const own = Object.entries(person.grants).filter(([name]) =>
    person.servers.some((one) => one.name === name && servers.includes(one))
  );
  if (own.length === 0) return shared;
  return Object.assign(Object.create(null), Object.fromEntries(own), shared);
}
