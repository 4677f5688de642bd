/**
 * Opens the store: on the PostgreSQL server that `DATABASE_URL` names, else in the folder of the hub.
 *
 * @module
 */

import * as file from "../store/backup.ts";
import { openEmbedded } from "../store/embedded.ts";
import type { HubStore } from "../store/store.ts";
import { databaseUrl } from "./_env.ts";
import { typedPath } from "./hub_process.ts";
import type { Typed } from "./_typed.ts";

/** Opens the store of a hub. */
export async function openStore(data: string): Promise<HubStore> {
  const url = databaseUrl();
  if (url === undefined) return await openEmbedded(typedPath(data));
  const { openPostgres } = await import("../store/postgres.ts");
  return await openPostgres(url);
}

/** Returns the name of the store for messages, without a password. */
export function placeOf(data: string): string {
  return databaseUrl() === undefined ? data : "the database of DATABASE_URL";
}

/**
 * Writes a backup of a hub, which may run meanwhile. Its form is the same for both stores. Returns
 * its checkpoint.
 */
export async function backup(data: string, path: string): Promise<string> {
  const url = databaseUrl();
  if (url === undefined) await file.backup(data, path);
  else {
    file.assertNew(path);
    const { openPostgres } = await import("../store/postgres.ts");
    await using store = await openPostgres(url);
    await file.placed(path, (part) => store.copyTo(part));
  }
  return await file.checkpointOf(path);
}

/** Fills a new folder, or an empty database, from a backup, which must have a checkpoint if given. */
export async function restore(
  { data, file: path, checkpoint }: Pick<Typed, "data" | "file" | "checkpoint">,
): Promise<void> {
  const url = databaseUrl();
  if (url === undefined) return await file.restore(data, path, checkpoint);
  await using from = await file.opened(path, checkpoint);
  const { openPostgres } = await import("../store/postgres.ts");
  await using store = await openPostgres(url);
  await store.copyFrom(from.db);
}
