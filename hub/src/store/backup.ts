/**
 * Writes and restores backups of the embedded store. Existing files are never overwritten.
 *
 * @module
 */

import { join } from "node:path";
import { createHash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { PmlError, quoted } from "@casys/pml/registry";
import { assertRegularFile, openDatabase, versionOf } from "./_database.ts";
import { DATABASE, openEmbedded } from "./embedded.ts";
import { KEY_RECORDS_STEP, KEYS_STEP } from "./_migrations.ts";
import { hasOnlyHubRows } from "./_content_check.ts";

/** Writes a backup of the store in a folder, which a running hub may use. */
export async function backup(folder: string, file: string): Promise<void> {
  if (!exists(join(folder, DATABASE))) {
    throw backupError("back up", folder, {
      why: "it contains no database of a hub",
      hint: "Give the folder of the hub with --data",
    });
  }
  assertNew(file);
  await using store = await openEmbedded(folder);
  await writeNewFile(file, (part) => store.copyTo(part));
}

/** Restores a backup to a folder, which must not contain a store. */
export async function restore(folder: string, file: string, checkpoint?: string): Promise<void> {
  const target = join(folder, DATABASE);
  if (!exists(file)) throw missingBackup(file);
  await assertCheckpoint(file, checkpoint);
  if ([target, `${target}-wal`].some(exists)) {
    throw backupError("restore to", folder, {
      why: "it already contains a database",
      hint: "Stop the hub and move its folder away, or give a new folder with --data",
    });
  }
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  await writeNewFile(target, async (part) => {
    await Deno.copyFile(file, part);
    assertComplete(part, file);
  });
}

/** Returns the hash of a backup. `pml-hub restore --checkpoint` compares it. */
export async function checkpointOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  using source = await Deno.open(file);
  for await (const part of source.readable) hash.update(part);
  return `sha256-${hash.digest("base64")}`;
}

async function assertCheckpoint(file: string, expected: string | undefined): Promise<void> {
  if (expected === undefined || await checkpointOf(file) === expected) return;
  throw backupError("restore", file, {
    why: `its hash is not the checkpoint ${quoted(expected)}`,
    hint: "Give the backup whose checkpoint `pml-hub backup` printed",
  });
}

/** Checks a backup, and opens a copy of it with tables that are up to date. */
export async function openBackup(
  file: string,
  checkpoint?: string,
): Promise<AsyncDisposable & { readonly db: DatabaseSync }> {
  if (!exists(file)) throw missingBackup(file);
  await assertCheckpoint(file, checkpoint);
  const folder = await Deno.makeTempDir({ prefix: "pml-hub-restore-" });
  const remove = () => Deno.remove(folder, { recursive: true });
  try {
    const part = join(folder, DATABASE);
    await Deno.copyFile(file, part);
    assertComplete(part, file);
    const db = openDatabase(part);
    return {
      db,
      [Symbol.asyncDispose]: async () => {
        db.close();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Throws if a file already exists. */
export function assertNew(file: string): void {
  if (!exists(file)) return;
  throw backupError("back up to", file, {
    why: "the file already exists",
    hint: "Give the name of a new file",
  });
}

/** Writes a file under a temporary name first, so that other programs never see a part of it. */
export async function writeNewFile(
  file: string,
  make: (part: string) => Promise<void>,
): Promise<void> {
  const part = `${file}.${crypto.randomUUID()}.part`;
  try {
    await Deno.writeFile(part, new Uint8Array(), { createNew: true, mode: 0o600 });
    await make(part);
    if (Deno.build.os !== "windows") await Deno.chmod(part, 0o600);
    {
      using written = await Deno.open(part, { read: true, write: true });
      await written.sync();
    }
    // Unlike a rename, a link fails if the file exists by now.
    await Deno.link(part, file);
  } finally {
    await Deno.remove(part).catch(() => {}); // it may not exist
  }
}

/** Throws if a file is not a complete database of a hub of this version or an earlier one. */
function assertComplete(part: string, file: string): void {
  assertRegularFile(part);
  try {
    using db = new DatabaseSync(part, { allowExtension: false });
    db.exec("PRAGMA query_only = 1");
    const version = versionOf(db, { file });
    const [{ integrity_check: integrity } = {}] = db.prepare("PRAGMA integrity_check(1)").all();
    if (version > 0 && integrity === "ok" && hasOnlyHubRows(db, version)) {
      db.exec("PRAGMA query_only = 0");
      return revokeUnrecordedKeys(db, version);
    }
  } catch (cause) {
    if (cause instanceof PmlError) throw cause;
    // The message of SQLite would not help the user, who gets the error below.
  }
  throw backupError("restore", file, {
    why: "it is not a complete backup",
    hint: "Use another backup: this one is incomplete or was changed",
  });
}

/**
 * Revokes the keys of a backup that is older than the records of keys, because no record shows that a
 * hub issued them.
 */
function revokeUnrecordedKeys(db: DatabaseSync, version: number): void {
  if (version >= KEY_RECORDS_STEP || version < KEYS_STEP) return;
  const now = new Date().toISOString();
  db.prepare("UPDATE keys SET revoked = coalesce(revoked, ?)").run(now);
}

function missingBackup(file: string): PmlError {
  return backupError("restore", file, {
    why: "there is no such file",
    hint: "Give a file that `pml-hub backup` wrote",
  });
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Returns the error for a failed backup or restore. */
export function backupError(
  what: string,
  path: string,
  { why, hint }: { readonly why: string; readonly hint: string },
): PmlError {
  return new PmlError("USAGE", `Cannot ${what} ${quoted(path, 300)}: ${why}`, { hint });
}
