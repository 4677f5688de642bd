/**
 * The grants of servers.
 *
 * @module
 */

import type { Permissions } from "../protocol/tool.ts";

/** The grants of the user to servers beyond the defaults, by the name of the server. */
export type Grants = Readonly<Record<string, Partial<Permissions>>>;
