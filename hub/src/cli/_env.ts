/**
 * The environment variables of the hub's command line.
 *
 * @module
 */

/** Returns the key with which a publisher changes a hub. */
export function hubKey(): string | undefined {
  return Deno.env.get("PML_HUB_KEY") || undefined;
}

/** Returns the URL of the PostgreSQL server, with its password. */
export function databaseUrl(): string | undefined {
  return Deno.env.get("DATABASE_URL") || undefined;
}
