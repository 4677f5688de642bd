/**
 * Opens a database for one call, and adds advice to SQLite's errors.
 *
 * @module
 */

import type { Database, Host } from "../../src/sandbox/host.ts";

/** The options for opening a database. */
export interface OpenOptions {
  readonly host: Host;
  readonly write?: boolean;
  readonly create?: boolean;
}

/** Opens a database, runs `work` and closes the database, which undoes unfinished transactions. */
export async function withDatabase<T>(
  path: string,
  { host, write = false, create = false }: OpenOptions,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  await assertExists(path, { write, create });
  await using db = await host.sqlite(path, { write });
  try {
    return await work(db);
  } catch (error) {
    throw await addAdvice(error, { db, path });
  }
}

async function assertExists(path: string, { write, create }: Partial<OpenOptions>) {
  try {
    await Deno.stat(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    if (create) return;
    // The sandbox allows looking at a protected name, but refuses to open it, whether or not the file
    // exists. So the error does not show whether a protected file exists.
    await Deno.open(path).then((file) => file.close(), (refusal) => {
      if (!(refusal instanceof Deno.errors.NotFound)) throw refusal;
    });
    const advice = write ? "set create to make it" : "search_files finds files";
    throw new Error(`Cannot open ${JSON.stringify(path)}: there is no such file; ${advice}`);
  }
}

const TABLES = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type <> 'shadow' " +
  "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";

async function addAdvice(error: unknown, { db, path }: { db: Database; path: string }) {
  if (!(error instanceof Error) || "code" in error) return error;
  const { message } = error;
  const reason = message.startsWith("Cannot ")
    ? message
    : `Cannot use ${JSON.stringify(path)}: ${message}`;
  return new Error(`${reason}${await findAdvice(message, db)}`, { cause: error });
}

async function findAdvice(message: string, db: Database): Promise<string> {
  if (/for reading only$/.test(message)) return "; execute can change it";
  if (/no such column/.test(message)) return "; schema shows the columns, and text needs 'quotes'";
  if (!/no such table/.test(message)) return "";
  const { rows, more } = await db.query(TABLES, [], { limit: 50 });
  const names = rows.map(([name]) => name).join(", ") + (more ? ", …" : "");
  return names === "" ? "; it has no tables yet" : `; there are: ${names}`;
}
