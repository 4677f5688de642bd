/**
 * Opens a database for one call, and adds advice to SQLite's errors.
 *
 * @module
 */

import type { Database, Host } from "../../src/sandbox/host.ts";

/** How a database is opened. */
export interface Opening {
  readonly host: Host;
  readonly write?: boolean;
  readonly create?: boolean;
}

/** Opens a database, runs `work` and closes the database, which undoes unfinished transactions. */
export async function opened<T>(
  path: string,
  { host, write = false, create = false }: Opening,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  await requireThere(path, { write, create });
  await using db = await host.sqlite(path, { write });
  try {
    return await work(db);
  } catch (error) {
    throw await withAdvice(error, { db, path });
  }
}

async function requireThere(path: string, { write, create }: Partial<Opening>) {
  try {
    await Deno.stat(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    if (create) return;
    const advice = write ? "set create to make it" : "search_files finds files";
    throw new Error(`Cannot open ${JSON.stringify(path)}: there is no such file; ${advice}`);
  }
}

const TABLES = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type <> 'shadow' " +
  "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";

async function withAdvice(error: unknown, { db, path }: { db: Database; path: string }) {
  if (!(error instanceof Error) || "code" in error) return error;
  const { message } = error;
  const reason = message.startsWith("Cannot ")
    ? message
    : `Cannot use ${JSON.stringify(path)}: ${message}`;
  return new Error(`${reason}${await advice(message, db)}`, { cause: error });
}

async function advice(message: string, db: Database): Promise<string> {
  if (/for reading only$/.test(message)) return "; execute can change it";
  if (/no such column/.test(message)) return "; schema shows the columns, and text needs 'quotes'";
  if (!/no such table/.test(message)) return "";
  const { rows, more } = await db.query(TABLES, [], { limit: 50 });
  const names = rows.map(([name]) => name).join(", ") + (more ? ", …" : "");
  return names === "" ? "; it has no tables yet" : `; there are: ${names}`;
}
