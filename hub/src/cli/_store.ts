/**
 * Opens the store: on the PostgreSQL server in `DATABASE_URL`, or in the folder of the hub.
 *
 * @module
 */

import * as backups from "../store/backup.ts";
import { openEmbedded } from "../store/embedded.ts";
import type { HubStore } from "../store/store.ts";
import { databaseUrl } from "./_env.ts";
import { typedPath } from "./hub_process.ts";
import type { CommandLine } from "./_command_line.ts";

/** Opens the store of a hub. */
export async function openStore(data: string): Promise<HubStore> {
  const url = databaseUrl();
  if (url === undefined) return await openEmbedded(typedPath(data));
  const { openPostgres } = await import("../store/postgres.ts");
  return await openPostgres(url);
}

/** Returns the name of the store for messages, without a password. */
export function storeLabel(data: string): string {
  return databaseUrl() === undefined ? data : "the database of DATABASE_URL";
}

/**
 * Writes a backup of a hub, which may be running. The format is the same for both stores. Returns the
 * checkpoint of the backup.
 */
export async function backup(data: string, path: string): Promise<string> {
  const url = databaseUrl();
  if (url === undefined) await backups.backup(data, path);
  else {
    backups.assertNew(path);
    const { openPostgres } = await import("../store/postgres.ts");
    await using store = await openPostgres(url);
    await backups.writeNewFile(path, (part) => store.copyTo(part));
  }
  return await backups.checkpointOf(path);
}

/**
 * Fills a new folder or an empty database from a backup. Throws `USAGE` if `checkpoint` is set and
 * the hash of the backup differs from it.
 */
export async function restore(
  { data, operand: path, checkpoint }: Pick<CommandLine, "data" | "operand" | "checkpoint">,
): Promise<void> {
  const url = databaseUrl();
  if (url === undefined) return await backups.restore(data, path, checkpoint);
  await using source = await backups.openBackup(path, checkpoint);
  const { openPostgres } = await import("../store/postgres.ts");
  await using store = await openPostgres(url);
  await store.copyFrom(source.db);
}
