import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { PmlError } from "@casys/pml/registry";
import { keyIdOf } from "./key_id.ts";
import { backup, checkpointOf, openBackup, restore } from "./backup.ts";
import { openDatabase } from "./_database.ts";
import { DATABASE, openEmbedded } from "./embedded.ts";
import { KEY_RECORDS_STEP, MIGRATIONS } from "./_migrations.ts";
import { folder } from "./_stores_test.ts";
import type { HubStore } from "./store.ts";

async function refused(work: Promise<unknown>, message: RegExp): Promise<void> {
  await assert.rejects(work, (error) => error instanceof PmlError && message.test(error.message));
}

const HASH = "sha256-aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789abcdefg=";
/** A key that its owner was given, and one that was revoked. */
const KEYS = ["sha256-AAAAAAAAAAAAmNoPqRsTuVwXyZ0123456789abcdefg=", HASH.replace("aB", "BB")];

/** Gives two keys, and revokes the second. */
async function keyed(store: Pick<HubStore, "admin">): Promise<void> {
  for (const hash of KEYS) {
    await store.admin.addKey({ id: keyIdOf(hash), owner: "acme", hash, kind: "client" });
  }
  await store.admin.revokeKey(keyIdOf(KEYS[1] ?? ""));
  await store.admin.revokeKey(keyIdOf(KEYS[1] ?? ""));
}

const ID = keyIdOf(HASH);
/** Changes of the keys in a backup that no hub makes. */
const KEY_CHANGES = {
  "a key": `INSERT INTO keys VALUES ('${ID}', 'evil', '${HASH}', '2026-01-01', NULL, 'client')`,
  "a key of an owner that there is":
    `INSERT INTO keys VALUES ('${ID}', 'acme', '${HASH}', '2026-01-01', NULL, 'client')`,
  "a revoked key that is valid again": "UPDATE keys SET revoked = NULL",
  "a key of another owner": "UPDATE keys SET owner = 'evil'",
  "another key under an id": `UPDATE keys SET hash = '${HASH}' WHERE revoked IS NULL`,
  "no keys": "DELETE FROM keys",
  "no records": "DELETE FROM key_records",
  "no record of a revocation": "DELETE FROM key_records WHERE what = 'revoked'",
  "a record of a key that is not there":
    `INSERT INTO key_records VALUES ('${ID}', 'revoked', 'evil', '${HASH}', '2026-01-01', 'client')`,
  "a key whose id is not of its hash":
    `INSERT INTO keys VALUES ('x', 'a', '${HASH}', 'c', NULL, 'client');
    INSERT INTO key_records VALUES ('x', 'issued', 'a', '${HASH}', 'c', 'client')`,
  "a client's key that publishes": "UPDATE keys SET kind = 'publisher' WHERE revoked IS NULL",
  "a revocation of another kind of key":
    "UPDATE key_records SET kind = 'publisher' WHERE what = 'revoked'",
};

Deno.test("a backup whose keys differ from the records that issued them is refused (GX13)", async () => {
  await using place = await folder();
  const file = join(place.path, "hub.backup");
  {
    await using store = await openEmbedded(place.path);
    await keyed(store);
    await backup(place.path, file);
  }
  const bytes = await Deno.readFile(file);
  await using fresh = await folder();
  for (const [what, sql] of Object.entries(KEY_CHANGES)) {
    const odd = join(place.path, "odd");
    await Deno.writeFile(odd, bytes);
    {
      using db = new DatabaseSync(odd);
      db.exec(sql);
    }
    await refused(restore(fresh.path, odd), /Cannot restore .*not a complete backup/);
    await refused(openBackup(odd), /Cannot restore .*not a complete backup/);
    assert.deepEqual([...Deno.readDirSync(fresh.path)], [], what);
  }
  await restore(fresh.path, file);
  await using back = await openEmbedded(fresh.path);
  const keys = await back.admin.keys();
  assert.deepEqual(keys.map(({ revoked }) => revoked !== undefined), [false, true]);
});

Deno.test("a backup from before keys had records is restored with its keys revoked (GX13)", async () => {
  await using place = await folder();
  const file = join(place.path, DATABASE);
  {
    using db = openDatabase(file, MIGRATIONS.slice(0, KEY_RECORDS_STEP - 1));
    db.exec(`INSERT INTO keys VALUES ('${ID}', 'acme', '${HASH}', '2026-01-01', NULL)`);
  }
  await using fresh = await folder();
  await restore(fresh.path, file);
  await using back = await openEmbedded(fresh.path);
  assert.deepEqual((await back.admin.keys()).map(({ revoked }) => revoked !== undefined), [true]);
  // The hub itself goes on with its keys.
  await using live = await openEmbedded(place.path);
  assert.deepEqual((await live.admin.keys()).map(({ revoked }) => revoked), [undefined]);
});

Deno.test("a backup with another hash than its checkpoint is refused (GX13)", async () => {
  await using place = await folder();
  const file = join(place.path, "hub.backup");
  {
    await using store = await openEmbedded(place.path);
    await keyed(store);
    await backup(place.path, file);
  }
  const checkpoint = await checkpointOf(file);
  {
    using db = new DatabaseSync(file);
    // The records are changed, too: only the checkpoint differs.
    db.exec(`INSERT INTO keys VALUES ('${ID}', 'evil', '${HASH}', 'c', NULL, 'client')`);
    db.exec(`INSERT INTO key_records VALUES ('${ID}', 'issued', 'evil', '${HASH}', 'c', 'client')`);
  }
  await using fresh = await folder();
  await refused(restore(fresh.path, file, checkpoint), /hash .*checkpoint/);
  assert.deepEqual([...Deno.readDirSync(fresh.path)], []);
  await restore(fresh.path, file, await checkpointOf(file));
});
