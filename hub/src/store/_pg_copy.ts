/**
 * Copies a store on PostgreSQL to the file of an embedded store, and back, so that both kinds of
 * store have the same backups.
 *
 * @module
 */

import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { JsonObject } from "@casys/pml/registry";
import { backupError } from "./backup.ts";
import { openDatabase } from "./_database.ts";
import type { Pg, PgRow, PgValue, Queries } from "./_pg.ts";
import { viewValues } from "./_pg_versions.ts";

/** A table, its columns, and the order in which its rows are copied. */
interface Table {
  readonly name: string;
  readonly columns: readonly string[];
  readonly order: string;
  /** The number of rows that are in memory at once. */
  readonly batch?: number;
}

const VERSION_COLUMNS = [
  "fqdn",
  "version",
  "type",
  "routing",
  "manifest",
  "code",
  "created",
  "owner",
];
const VIEW_COLUMNS = ["description", "install_command", "install_args"]
  .concat("proxy_to", "env_required", "warnings");
const BATCH = 500;

/** The tables, ordered so that referenced rows are copied first. */
const TABLES: readonly Table[] = [
  { name: "blobs", columns: ["integrity", "bytes"], order: "integrity", batch: 10 },
  // The embedded store reads rows in the order in which they were added.
  ...["servers", "capabilities"].map((name) => ({
    name,
    columns: [...VERSION_COLUMNS, "yanked"],
    order: "created, fqdn, version",
  })),
  { name: "tags", columns: ["fqdn", "tag", "version"], order: "fqdn, tag" },
  { name: "newest", columns: ["fqdn", "version", "words"], order: "fqdn" },
  {
    name: "keys",
    columns: ["id", "owner", "hash", "created", "revoked", "kind"],
    order: "created, id",
  },
  {
    name: "key_records",
    columns: ["id", "what", "owner", "hash", "at", "kind"],
    order: "id, what",
  },
  { name: "namespaces", columns: ["namespace", "owner", "shape", "given"], order: "namespace" },
  {
    name: "waiting",
    columns: ["fqdn", "version", "manifest", "hash", "code", "created", "owner"],
    order: "created, fqdn",
  },
  { name: "follows", columns: ["fqdn", "version", "before", "after"], order: "fqdn, version" },
];

/** Copies a store to an empty file. */
export async function copyFromPg(pg: Pg, file: string): Promise<void> {
  {
    using db = openDatabase(file);
    db.exec("BEGIN");
    await pg.longTransaction("reading", async (queries) => {
      for (const table of TABLES) await copyOut(queries, { table, db });
    });
    db.exec("COMMIT");
    // Removes the separate WAL file, so that the backup is one file.
    db.exec("PRAGMA journal_mode = DELETE");
  }
}

async function copyOut(
  queries: Queries,
  { table, db }: { readonly table: Table; readonly db: DatabaseSync },
): Promise<void> {
  const { name, columns, order, batch = BATCH } = table;
  const placeholders = columns.map(() => "?").join(", ");
  const insert = db.prepare(`INSERT INTO ${name} (${columns.join(", ")}) VALUES (${placeholders})`);
  await queries.run(
    `DECLARE copied NO SCROLL CURSOR FOR SELECT ${
      columns.join(", ")
    } FROM ${name} ORDER BY ${order}`,
  );
  for (;;) {
    const rows = await queries.all(`FETCH ${batch} FROM copied`);
    if (rows.length === 0) break;
    for (const row of rows) insert.run(...columns.map((column) => toFileValue(row[column])));
  }
  await queries.run("CLOSE copied");
}

/** Copies a file to an empty database in one transaction. */
export async function copyToPg(pg: Pg, db: DatabaseSync): Promise<void> {
  await pg.longTransaction("changing", async (queries) => {
    for (const { name } of TABLES) {
      if (await queries.get(`SELECT 1 AS there FROM ${name} LIMIT 1`) !== undefined) {
        throw backupError("restore to", "the database of DATABASE_URL", {
          why: "it already contains a hub",
          hint: "Stop the hub, and name an empty database",
        });
      }
    }
    for (const table of TABLES) await copyIn(queries, { table, db });
  });
}

async function copyIn(
  queries: Queries,
  { table, db }: { readonly table: Table; readonly db: DatabaseSync },
): Promise<void> {
  const { name, columns, order } = table;
  const hasViewColumns = columns.includes("routing");
  const insertColumns = [...columns, ...hasViewColumns ? VIEW_COLUMNS : []];
  // SQLite has no booleans, only 0 and 1.
  const placeholders = insertColumns.map((column, index) =>
    column === "given" ? `$${index + 1}::integer = 1` : `$${index + 1}`
  );
  const insert = `INSERT INTO ${name} (${insertColumns.join(", ")}) VALUES (${
    placeholders.join(", ")
  })`;
  const rows = db.prepare(`SELECT ${columns.join(", ")} FROM ${name} ORDER BY ${order}`).iterate();
  for (const row of rows as Iterable<PgRow>) {
    // The query selects these columns.
    const values = columns.map((column) => row[column] as PgValue);
    // The manifest was validated when it was added.
    const parts = hasViewColumns ? viewValues(JSON.parse(String(row.manifest)) as JsonObject) : [];
    await queries.run(insert, [...values, ...parts]);
  }
}

function toFileValue(value: unknown): SQLInputValue {
  // The tables have no other types that SQLite lacks.
  return typeof value === "boolean" ? Number(value) : value as SQLInputValue;
}
