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
 * Opens a file, or creates it. Throws `CONFIG_INVALID` if the file is not the store of a hub, or if a
 * newer hub wrote it.
 */
export function openDatabase(file: string, steps = MIGRATIONS): DatabaseSync {
  assertRegularFile(file);
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
    throw error instanceof PmlError ? error : openError(file, error);
  }
}

/** The file of a store, and the migrations that create its tables. */
interface DatabaseFile {
  readonly file: string;
  readonly steps?: readonly string[];
}

/**
 * Returns the number of migrations of a database; 0 if it is empty. Throws `CONFIG_INVALID` if it is
 * not the database of a hub, or if a newer hub wrote it.
 */
export function versionOf(db: DatabaseSync, { file, steps = MIGRATIONS }: DatabaseFile): number {
  const { application_id: id } = db.prepare("PRAGMA application_id").get() ?? {};
  const tables = db.prepare("SELECT count(*) AS count FROM sqlite_schema").get()?.count;
  if (tables === 0) return 0;
  if (id !== APPLICATION_ID) throw wrongFile(file, "it is not the database of a hub");
  const version = Number(
    db.prepare("SELECT max(version) AS version FROM schema_versions").get()?.version ?? 0,
  );
  if (version <= steps.length) return version;
  const why = `its tables have version ${version}, and this hub supports only ${steps.length}`;
  throw wrongFile(file, why, "Install the newer hub that wrote it, or restore an older backup");
}

/**
 * Runs the missing migrations. Two hubs may start on one file at once, so this checks the version again
 * under the lock.
 */
function migrate(db: DatabaseSync, { file, steps = MIGRATIONS }: DatabaseFile): void {
  if (versionOf(db, { file, steps }) === steps.length) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    const appliedCount = versionOf(db, { file, steps });
    if (appliedCount === 0) {
      db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
      db.exec(`CREATE TABLE schema_versions (
        version INTEGER PRIMARY KEY, applied TEXT NOT NULL
      ) STRICT`);
    }
    const record = db.prepare("INSERT INTO schema_versions (version, applied) VALUES (?, ?)");
    for (const [at, step] of steps.slice(appliedCount).entries()) {
      db.exec(step);
      record.run(appliedCount + at + 1, new Date().toISOString());
    }
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

/** Throws if a file is a link or not a regular file. */
export function assertRegularFile(file: string): void {
  try {
    if (Deno.lstatSync(file).isFile) return;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw openError(file, error);
  }
  throw wrongFile(file, "it is not a regular file");
}

function wrongFile(
  file: string,
  why: string,
  hint = "Give the folder of a hub, or an empty folder, with --data",
): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot open ${quoted(file, 300)}: ${why}`, { hint });
}

function openError(file: string, cause: unknown): PmlError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new PmlError("CONFIG_INVALID", `Cannot open ${quoted(file, 300)}: ${why}`, {
    hint: "Check the folder and its permissions, or restore a backup with `pml-hub restore FILE`",
    cause,
  });
}
