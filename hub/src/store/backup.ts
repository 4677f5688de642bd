/**
 * Copies the embedded store to a file, and back. Nothing that is there is overwritten.
 *
 * @module
 */

import { join } from "node:path";
import { createHash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { PmlError, quoted } from "@casys/pml/registry";
import { assertPlain, openDatabase, versionOf } from "./_database.ts";
import { DATABASE, openEmbedded } from "./embedded.ts";
import { FIRST_KEYS, RECORDED_KEYS } from "./_migrations.ts";
import { isSound } from "./_sound.ts";

/** Writes a backup of the store of a folder. A hub may use the store meanwhile. */
export async function backup(folder: string, file: string): Promise<void> {
  if (!exists(join(folder, DATABASE))) {
    throw backupError("back up", folder, {
      why: "there is no database of a hub",
      hint: "Give the folder of the hub with --data",
    });
  }
  assertNew(file);
  await using store = await openEmbedded(folder);
  await placed(file, (part) => store.copyTo(part));
}

/** Makes the store of a folder from a backup. The folder may have none yet. */
export async function restore(folder: string, file: string, checkpoint?: string): Promise<void> {
  const target = join(folder, DATABASE);
  if (!exists(file)) throw missing(file);
  await assertCheckpoint(file, checkpoint);
  if ([target, `${target}-wal`].some(exists)) {
    throw backupError("restore to", folder, {
      why: "there is a database already",
      hint: "Stop the hub and move its folder away, or give a new folder with --data",
    });
  }
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  await placed(target, async (part) => {
    await Deno.copyFile(file, part);
    assertWhole(part, file);
  });
}

/** Returns the hash of a backup: a restore can compare it. */
export async function checkpointOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  using opened = await Deno.open(file);
  for await (const part of opened.readable) hash.update(part);
  return `sha256-${hash.digest("base64")}`;
}

async function assertCheckpoint(file: string, expected: string | undefined): Promise<void> {
  if (expected === undefined || await checkpointOf(file) === expected) return;
  throw backupError("restore", file, {
    why: `its hash is not the checkpoint ${quoted(expected)}`,
    hint: "Give the backup whose checkpoint `pml-hub backup` printed",
  });
}

/** Checks a backup, and opens a copy of it that has the tables of this program. */
export async function opened(
  file: string,
  checkpoint?: string,
): Promise<AsyncDisposable & { readonly db: DatabaseSync }> {
  if (!exists(file)) throw missing(file);
  await assertCheckpoint(file, checkpoint);
  const folder = await Deno.makeTempDir({ prefix: "pml-hub-restore-" });
  const remove = () => Deno.remove(folder, { recursive: true });
  try {
    const part = join(folder, DATABASE);
    await Deno.copyFile(file, part);
    assertWhole(part, file);
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

/** Throws if there is a file already. */
export function assertNew(file: string): void {
  if (!exists(file)) return;
  throw backupError("back up to", file, {
    why: "there is a file already",
    hint: "Give the name of a new file",
  });
}

/** Makes a file under another name, so that it is never there in part. */
export async function placed(file: string, make: (part: string) => Promise<void>): Promise<void> {
  const part = `${file}.${crypto.randomUUID()}.part`;
  try {
    await Deno.writeFile(part, new Uint8Array(), { createNew: true, mode: 0o600 });
    await make(part);
    if (Deno.build.os !== "windows") await Deno.chmod(part, 0o600);
    {
      using written = await Deno.open(part, { read: true, write: true });
      await written.sync();
    }
    // Unlike a rename, a link fails where a file appeared meanwhile.
    await Deno.link(part, file);
  } finally {
    await Deno.remove(part).catch(() => {}); // it was not made
  }
}

/** Throws if a file is not a complete database of a hub of this version or an earlier one. */
function assertWhole(part: string, file: string): void {
  assertPlain(part);
  try {
    using db = new DatabaseSync(part, { allowExtension: false });
    db.exec("PRAGMA query_only = 1");
    const version = versionOf(db, { file });
    const [{ integrity_check: verdict } = {}] = db.prepare("PRAGMA integrity_check(1)").all();
    if (version > 0 && verdict === "ok" && isSound(db, version)) {
      db.exec("PRAGMA query_only = 0");
      return revokeUnrecordedKeys(db, version);
    }
  } catch (cause) {
    if (cause instanceof PmlError) throw cause;
    // the message of SQLite would not help the user
  }
  throw backupError("restore", file, {
    why: "it is not a complete backup",
    hint: "Use another backup: this one was cut or changed",
  });
}

/**
 * Revokes the keys of a backup from before keys had records, because no record shows who issued
 * them.
 */
function revokeUnrecordedKeys(db: DatabaseSync, version: number): void {
  if (version >= RECORDED_KEYS || version < FIRST_KEYS) return;
  const now = new Date().toISOString();
  db.prepare("UPDATE keys SET revoked = coalesce(revoked, ?)").run(now);
}

function missing(file: string): PmlError {
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

/** Returns the error of a copy that was not made. */
export function backupError(
  what: string,
  path: string,
  { why, hint }: { readonly why: string; readonly hint: string },
): PmlError {
  return new PmlError("USAGE", `Cannot ${what} ${quoted(path, 300)}: ${why}`, { hint });
}
