/**
 * Copies all of a store on PostgreSQL into the file of an embedded store, and back: the backup of
 * one is the backup of the other.
 *
 * @module
 */

import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { JsonObject } from "@casys/pml/registry";
import { backupError } from "./backup.ts";
import { openDatabase } from "./_database.ts";
import type { Pg, PgRow, PgValue, Queries } from "./_pg.ts";
import { shownOf } from "./_pg_versions.ts";

/** A table, its columns, and the order in which its rows are copied. */
interface Table {
  readonly name: string;
  readonly columns: readonly string[];
  readonly order: string;
  /** How many rows are in memory at once. */
  readonly batch?: number;
}

const VERSION = ["fqdn", "version", "type", "routing", "manifest", "code", "created", "owner"];
const OF_VIEW = ["description", "install_command", "install_args"]
  .concat("proxy_to", "env_required", "warnings");
const BATCH = 500;

/** The tables in an order in which referenced rows come first. */
const TABLES: readonly Table[] = [
  { name: "blobs", columns: ["integrity", "bytes"], order: "integrity", batch: 10 },
  // In the file the order of rows is that of their adding.
  ...["servers", "capabilities"].map((name) => ({
    name,
    columns: [...VERSION, "yanked"],
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

/** Writes all of a store into a file that is empty yet. */
export async function copyFromPg(pg: Pg, file: string): Promise<void> {
  {
    using db = openDatabase(file);
    db.exec("BEGIN");
    await pg.long("reading", async (queries) => {
      for (const table of TABLES) await copyOut(queries, { table, db });
    });
    db.exec("COMMIT");
    // All of it is in the one file then.
    db.exec("PRAGMA journal_mode = DELETE");
  }
}

async function copyOut(
  queries: Queries,
  { table, db }: { readonly table: Table; readonly db: DatabaseSync },
): Promise<void> {
  const { name, columns, order, batch = BATCH } = table;
  const places = columns.map(() => "?").join(", ");
  const insert = db.prepare(`INSERT INTO ${name} (${columns.join(", ")}) VALUES (${places})`);
  await queries.run(
    `DECLARE copied NO SCROLL CURSOR FOR SELECT ${
      columns.join(", ")
    } FROM ${name} ORDER BY ${order}`,
  );
  for (;;) {
    const rows = await queries.all(`FETCH ${batch} FROM copied`);
    if (rows.length === 0) break;
    for (const row of rows) insert.run(...columns.map((column) => ofFile(row[column])));
  }
  await queries.run("CLOSE copied");
}

/** Takes all of a file into a database that has nothing yet: all of it, or nothing. */
export async function copyToPg(pg: Pg, db: DatabaseSync): Promise<void> {
  await pg.long("changing", async (queries) => {
    for (const { name } of TABLES) {
      if (await queries.get(`SELECT 1 AS there FROM ${name} LIMIT 1`) !== undefined) {
        throw backupError("restore to", "the database of DATABASE_URL", {
          why: "there is a hub already",
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
  const hasView = columns.includes("routing");
  const all = [...columns, ...hasView ? OF_VIEW : []];
  // The file has no truth values.
  const places = all.map((column, at) =>
    column === "given" ? `$${at + 1}::integer = 1` : `$${at + 1}`
  );
  const insert = `INSERT INTO ${name} (${all.join(", ")}) VALUES (${places.join(", ")})`;
  const rows = db.prepare(`SELECT ${columns.join(", ")} FROM ${name} ORDER BY ${order}`).iterate();
  for (const row of rows as Iterable<PgRow>) {
    // The query selects these columns.
    const values = columns.map((column) => row[column] as PgValue);
    // It was a manifest when it was added.
    const facts = hasView ? shownOf(JSON.parse(String(row.manifest)) as JsonObject) : [];
    await queries.run(insert, [...values, ...facts]);
  }
}

function ofFile(value: unknown): SQLInputValue {
  // The tables have no other types.
  return typeof value === "boolean" ? Number(value) : value as SQLInputValue;
}
