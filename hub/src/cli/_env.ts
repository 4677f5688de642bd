/**
 * The environment variables of the hub's command line.
 *
 * @module
 */

import { hubProcess } from "./hub_process.ts";

/** Returns the key with which a publisher changes a hub. */
export function hubKey(): string | undefined {
  return hubProcess().variable("PML_HUB_KEY") || undefined;
}

/** Returns the URL of the PostgreSQL server, with its password. */
export function databaseUrl(): string | undefined {
  return hubProcess().variable("DATABASE_URL") || undefined;
}
