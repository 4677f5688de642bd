/**
 * Opens the file of the embedded store, and brings its tables up to date.
 *
 * @module
 */

import { DatabaseSync } from "node:sqlite";
import { PmlError, quoted } from "@casys/pml/registry";
import { APPLICATION_ID, MIGRATIONS } from "./_migrations.ts";

const WAIT_MS = 10_000;

/**
 * Opens a file, which is made if it is not there. Throws `CONFIG_INVALID` if it is not the store of
 * a hub, or if a newer hub wrote it.
 */
export function openDatabase(file: string, steps = MIGRATIONS): DatabaseSync {
  assertPlain(file);
  const db = new DatabaseSync(file, { timeout: WAIT_MS, allowExtension: false });
  try {
    if (versionOf(db, { file, steps }) === 0) db.exec("PRAGMA journal_mode = WAL");
    db.exec(
      "PRAGMA cache_size = -16000; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF",
    );
    migrate(db, { file, steps });
    return db;
  } catch (error) {
    db.close();
    throw error instanceof PmlError ? error : broken(file, error);
  }
}

/** A file of a store, and the steps that make its tables. */
interface Made {
  readonly file: string;
  readonly steps?: readonly string[];
}

/** Returns the number of migrations of a database; 0 for an empty one. Throws for another file. */
export function versionOf(db: DatabaseSync, { file, steps = MIGRATIONS }: Made): number {
  const { application_id: id } = db.prepare("PRAGMA application_id").get() ?? {};
  const tables = db.prepare("SELECT count(*) AS count FROM sqlite_schema").get()?.count;
  if (tables === 0) return 0;
  if (id !== APPLICATION_ID) throw foreign(file, "it is no database of a hub");
  const version = Number(
    db.prepare("SELECT max(version) AS version FROM schema_versions").get()?.version ?? 0,
  );
  if (version <= steps.length) return version;
  const why = `its tables have version ${version}, and this hub knows ${steps.length}`;
  throw foreign(file, why, "Install the newer hub that wrote it, or restore an older backup");
}

/** Two hubs may start on one file at once, so each step looks again under the lock. */
function migrate(db: DatabaseSync, { file, steps = MIGRATIONS }: Made): void {
  if (versionOf(db, { file, steps }) === steps.length) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    const done = versionOf(db, { file, steps });
    if (done === 0) {
      db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
      db.exec(`CREATE TABLE schema_versions (
        version INTEGER PRIMARY KEY, applied TEXT NOT NULL
      ) STRICT`);
    }
    const note = db.prepare("INSERT INTO schema_versions (version, applied) VALUES (?, ?)");
    for (const [at, step] of steps.slice(done).entries()) {
      db.exec(step);
      note.run(done + at + 1, new Date().toISOString());
    }
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

/** Throws if a file is a link or not a regular file. */
export function assertPlain(file: string): void {
  try {
    if (Deno.lstatSync(file).isFile) return;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw broken(file, error);
  }
  throw foreign(file, "it is no regular file");
}

function foreign(
  file: string,
  why: string,
  hint = "Give the folder of a hub with --data, or an empty one",
): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot open ${quoted(file, 300)}: ${why}`, { hint });
}

function broken(file: string, cause: unknown): PmlError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new PmlError("CONFIG_INVALID", `Cannot open ${quoted(file, 300)}: ${why}`, {
    hint: "Check the folder and its rights; `pml-hub restore FILE` brings a backup back",
    cause,
  });
}
