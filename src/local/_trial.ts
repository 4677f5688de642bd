/**
 * A server that is tried out: confined to certain grants, with a record of what it asks for.
 *
 * @module
 */

import type { Grants } from "./grants.ts";

/** What a server is tried out with. */
export interface Trial {
  readonly grants: Grants;
  /** Where Deno writes what the server asks for. */
  readonly file: string;
}
