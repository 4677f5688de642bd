/**
 * Opens the store: on the PostgreSQL server that `DATABASE_URL` names, else in the folder of the hub.
 *
 * @module
 */

import { quoted } from "@casys/pml/registry";
import * as file from "../store/backup.ts";
import { openEmbedded } from "../store/embedded.ts";
import type { HubStore } from "../store/store.ts";
import { databaseUrl } from "./_env.ts";
import { usage } from "./_typed.ts";

/** Opens the store of a hub. */
export async function openStore(data: string): Promise<HubStore> {
  const url = databaseUrl();
  if (url === undefined) return await openEmbedded(data);
  const { openPostgres } = await import("../store/postgres.ts");
  return await openPostgres(url);
}

/** Returns what the store may be called. */
export function placeOf(data: string): string {
  return databaseUrl() === undefined ? data : "the database of DATABASE_URL";
}

/** Writes a backup of the file of a hub. */
export async function backup(data: string, path: string): Promise<void> {
  assertFile("back up to", path, 'pg_dump --format=custom --file=FILE --dbname="$DATABASE_URL"');
  await file.backup(data, path);
}

/** Makes the file of a hub from a backup. */
export async function restore(data: string, path: string): Promise<void> {
  const command = 'pg_restore --exit-on-error --no-owner --dbname="$DATABASE_URL" FILE';
  assertFile("restore", path, command);
  await file.restore(data, path);
}

/** PostgreSQL has tools of its own, which know all that is in a database. */
function assertFile(what: string, path: string, command: string): void {
  if (databaseUrl() === undefined) return;
  throw usage(
    `Cannot ${what} ${quoted(path, 300)}: DATABASE_URL is set, so the store is on PostgreSQL`,
    `Run \`${command}\`; or unset DATABASE_URL for the file of a hub`,
  );
}
