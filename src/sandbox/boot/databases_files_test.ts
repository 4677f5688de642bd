import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { DatabaseYard } from "../../../tests/fixtures/modules/database_yard.ts";
import { waitUntil, within } from "../../../tests/kit/wait.ts";

const TABLE = "CREATE TABLE t(id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1,'a'),(2,'b')";
const COUNT = "SELECT count(*) FROM t";

function refused(work: Promise<unknown>, message: RegExp, code?: string): Promise<void> {
  return assert.rejects(work, (error: Error & { code?: string }) => {
    assert.match(error.message, message);
    if (code !== undefined) assert.equal(error.code, code);
    return true;
  });
}

Deno.test("Databases opens a database for reading unless writing is requested and granted", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", TABLE);
  await using db = await yard.sqlite("a.db");
  await refused(db.execute("DELETE FROM t"), /open for reading only/);
  await refused(db.query("DELETE FROM t RETURNING id"), /open for reading only/);
  await refused(yard.sqlite("nix.db"), /No such file/, "ENOENT");
  const reader = yard.child({ write: [] });
  await refused(reader.sqlite("a.db", { write: true }), /no write grant/, "SANDBOX_DENIED");
  await refused(reader.sqlite("b.db", { write: true }), /no write grant/, "SANDBOX_DENIED");
  assert.deepEqual((await (await reader.sqlite("a.db")).query(COUNT)).rows, [[2]]);
  const blind = yard.child({ read: [yard.outside] });
  await refused(blind.sqlite("a.db", { write: true }), /no read grant/, "SANDBOX_DENIED");
  assert.deepEqual(yard.names(), ["a.db"]);
});

Deno.test("Databases opens only regular database files of the workspace", async () => {
  await using yard = new DatabaseYard();
  const { ws, outside } = yard;
  yard.make("real.db", TABLE);
  Deno.renameSync(`${ws}/real.db`, `${outside}/real.db`);
  const before = yard.fingerprint();
  Deno.symlinkSync(`${outside}/real.db`, `${ws}/link.db`);
  Deno.symlinkSync(`${outside}/no.db`, `${ws}/dangling.db`);
  Deno.mkdirSync(`${ws}/folder.db`);
  Deno.mkdirSync(`${ws}/.git`);
  new Deno.Command("mkfifo", { args: [`${ws}/pipe.db`] }).outputSync();
  Deno.writeTextFileSync(`${ws}/text.db`, "no database, but a long enough text");
  Deno.writeTextFileSync(`${ws}/short.db`, "x");
  const cases: [path: string, message: RegExp][] = [
    ["../outside/real.db", /outside the workspace/],
    [`${outside}/real.db`, /outside the workspace/],
    ["link.db", /outside the workspace/],
    ["dangling.db", /outside|link/],
    ["pipe.db", /neither a regular file/],
    ["folder.db", /Is a directory/],
    ["text.db", /not a SQLite database/],
    ["short.db", /not a SQLite database/],
    ["a\0b", /not a path/],
    [":memory:", /No such file|another file on Windows/],
    ["file:a.db?mode=memory", /No such file|another file on Windows/],
    [`file://${outside}/real.db`, /outside the workspace/],
  ];
  for (const [path, message] of cases) await refused(yard.sqlite(path), message);
  for (const [path, message] of [...cases.slice(0, 9), [".git/x.db", /protected/] as const]) {
    await refused(yard.sqlite(path, { write: true }), message);
  }
  Deno.writeTextFileSync(`${ws}/empty.db`, "");
  assert.deepEqual((await (await yard.sqlite("empty.db")).query("SELECT 1")).rows, [[1]]);
  assert.equal(yard.fingerprint(), before);
});

Deno.test("Databases refuses a hard link to a protected file", async () => {
  await using yard = new DatabaseYard();
  yard.make("x.db", TABLE);
  Deno.renameSync(`${yard.ws}/x.db`, `${yard.ws}/.env`);
  Deno.linkSync(`${yard.ws}/.env`, `${yard.ws}/twin.db`);
  yard.make("a.db", TABLE);
  for (const write of [false, true]) {
    await refused(
      yard.sqlite("twin.db", { write }),
      /protected/,
      "PATH_PROTECTED",
    );
  }
  await using db = await yard.sqlite("a.db", { write: true });
  Deno.linkSync(`${yard.ws}/.env`, `${yard.ws}/a.db-wal`);
  await refused(db.query(COUNT), /protected/, "PATH_PROTECTED");
});

/** Returns a journal that ends with the name of another file, as SQLite writes it. */
function superJournal(name: string): Uint8Array<ArrayBuffer> {
  const text = new TextEncoder().encode(name);
  const page = 512;
  const bytes = new Uint8Array(page + 4 + text.length + 16);
  const view = new DataView(bytes.buffer);
  bytes.set(Uint8Array.fromHex("d9d505f920a163d7"));
  view.setUint32(16, 2);
  view.setUint32(20, page);
  view.setUint32(24, 4_096);
  bytes.set(text, page + 4);
  view.setUint32(page + 4 + text.length, text.length);
  view.setUint32(page + 8 + text.length, text.reduce((sum, one) => sum + one, 0));
  bytes.set(Uint8Array.fromHex("d9d505f920a163d7"), page + 12 + text.length);
  return bytes;
}

Deno.test("Databases refuses a planted journal that makes SQLite delete a file outside", async () => {
  await using yard = new DatabaseYard();
  const path = yard.make("a.db", TABLE);
  const canary = `${yard.outside}/canary`;
  const journal = superJournal(canary);
  Deno.writeFileSync(`${path}-journal`, journal);
  const before = yard.fingerprint();
  for (const write of [false, true]) {
    await refused(yard.sqlite("a.db", { write }), /names another file/, "SANDBOX_DENIED");
  }
  Deno.removeSync(`${path}-journal`);
  await using reader = await yard.sqlite("a.db");
  await using writer = await yard.sqlite("a.db", { write: true });
  Deno.writeFileSync(`${path}-journal`, journal);
  await refused(reader.query(COUNT), /names another file/, "SANDBOX_DENIED");
  await refused(writer.query(COUNT), /names another file/, "SANDBOX_DENIED");
  await refused(writer.execute("DELETE FROM t"), /names another file/, "SANDBOX_DENIED");
  assert.equal(yard.fingerprint(), before);
  // Proves the attack: SQLite without PML deletes the other file when it reads the database.
  using real = new DatabaseSync(path);
  real.prepare(COUNT).get();
  assert.notEqual(yard.fingerprint(), before);
});

Deno.test("Databases refuses links, pipes and folders in place of side files", async () => {
  await using yard = new DatabaseYard();
  const { ws, outside } = yard;
  const path = yard.make("a.db", "PRAGMA journal_mode = wal", TABLE);
  const before = yard.fingerprint();
  const plants: ((at: string) => void)[] = [
    (at) => Deno.symlinkSync(`${outside}/canary`, at),
    (at) => Deno.symlinkSync(`${outside}/new`, at),
    (at) => Deno.symlinkSync(`${ws}/a.db`, at),
    (at) => void new Deno.Command("mkfifo", { args: [at] }).outputSync(),
    (at) => Deno.mkdirSync(at),
  ];
  for (const end of ["-journal", "-wal", "-shm"]) {
    for (const plant of plants) {
      await using opened = await yard.sqlite("a.db", { write: true });
      plant(`${path}${end}`);
      const message = /neither a regular file|Is a directory/;
      await refused(yard.sqlite("a.db"), message);
      await refused(yard.sqlite("a.db", { write: true }), message);
      await refused(opened.query(COUNT), message);
      await refused(opened.execute("DELETE FROM t"), message);
      Deno.removeSync(`${path}${end}`);
    }
  }
  assert.equal(yard.fingerprint(), before);
  assert.deepEqual((await (await yard.sqlite("a.db")).query(COUNT)).rows, [[2]]);
});

Deno.test("Databases refuses a database that was replaced after it was opened", async () => {
  await using yard = new DatabaseYard();
  const path = yard.make("a.db", TABLE);
  yard.make("b.db", TABLE);
  await using db = await yard.sqlite("a.db");
  Deno.renameSync(`${yard.ws}/b.db`, path);
  await refused(db.query(COUNT), /replaced after/);
});

Deno.test("Databases reads a closed WAL database without creating a file", async () => {
  await using yard = new DatabaseYard({ write: [] });
  const path = yard.make("a.db", "PRAGMA journal_mode = wal", TABLE);
  assert.deepEqual(yard.names(), ["a.db"]);
  await using db = await yard.sqlite("a.db");
  assert.deepEqual((await db.query(COUNT)).rows, [[2]]);
  await refused(db.execute("DELETE FROM t"), /open for reading only/);
  assert.deepEqual(yard.names(), ["a.db"]);
  using other = new DatabaseSync(path);
  other.exec("INSERT INTO t(x) VALUES (3)");
  await using now = await yard.sqlite("a.db");
  assert.deepEqual((await now.query(COUNT)).rows, [[3]], "what only the log has");
  other.exec("INSERT INTO t(x) VALUES (4)");
  assert.deepEqual((await now.query(COUNT)).rows, [[4]]);
});

Deno.test("Databases reports how to open a large closed WAL database", async () => {
  await using yard = new DatabaseYard();
  const path = yard.make("a.db", "PRAGMA journal_mode = wal", TABLE);
  Deno.truncateSync(path, (64 << 20) + 4_096);
  await refused(yard.sqlite("a.db"), /\bWAL\b/);
  await using db = await yard.sqlite("a.db", { write: true });
  await db.execute("PRAGMA journal_mode = delete");
  await using reader = await yard.sqlite("a.db");
  assert.deepEqual((await reader.query(COUNT)).rows, [[2]]);
});

Deno.test("Databases reports how to repair a log without its index", async () => {
  await using yard = new DatabaseYard();
  const path = yard.make("a.db", "PRAGMA journal_mode = wal", TABLE);
  {
    using other = new DatabaseSync(path);
    other.exec("INSERT INTO t(x) VALUES (3)");
    Deno.copyFileSync(path, `${yard.ws}/b.db`);
    Deno.copyFileSync(`${path}-wal`, `${yard.ws}/b.db-wal`);
  }
  await refused(yard.sqlite("b.db"), /without its index/);
  await using db = await yard.sqlite("b.db", { write: true });
  assert.deepEqual((await db.query(COUNT)).rows, [[3]]);
});

/** Leaves a database in the middle of a change, like a program that was killed. */
function killedInside(yard: DatabaseYard): void {
  const path = yard.make("h.db", TABLE, "CREATE TABLE big AS SELECT zeroblob(100000) AS z");
  using db = new DatabaseSync(path);
  db.exec("PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN");
  db.exec("INSERT INTO t(x) SELECT randomblob(20000) FROM big, big b, t, t u, t v, t w");
  Deno.copyFileSync(`${path}-journal`, `${yard.ws}/a.db-journal`);
  Deno.copyFileSync(path, `${yard.ws}/a.db`);
}

Deno.test("Databases undoes an interrupted change, but only for a writer", async () => {
  await using yard = new DatabaseYard();
  killedInside(yard);
  await using reader = await yard.sqlite("a.db");
  await refused(reader.query(COUNT), /middle of a change/);
  await using writer = await yard.sqlite("a.db", { write: true });
  assert.deepEqual((await writer.query(COUNT)).rows, [[2]]);
  assert.deepEqual((await reader.query(COUNT)).rows, [[2]]);
});

Deno.test("Databases reports that a folder is not writable", async () => {
  if (Deno.uid() !== 0) return; // only root can run a child as another user
  await using yard = new DatabaseYard();
  yard.make("wal.db", "PRAGMA journal_mode = wal", TABLE);
  yard.make("plain.db", TABLE);
  killedInside(yard);
  const other = yard.child({ uid: 65_534 });
  for (const name of ["wal.db", "plain.db"]) {
    assert.deepEqual((await (await other.sqlite(name)).query(COUNT)).rows, [[2]], name);
    await refused(
      other.sqlite(name, { write: true }).then((db) => db.execute("DELETE FROM t")),
      /for reading only|may not be writable|is not writable/,
    );
  }
  const hot = await other.sqlite("a.db");
  await refused(hot.query(COUNT), /middle of a change/);
  await refused(other.sqlite("new.db", { write: true }), /denied/i);
});

Deno.test("Databases undoes an unfinished transaction when a database is closed", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", TABLE);
  const db = await yard.sqlite("a.db", { write: true });
  await db.execute("BEGIN");
  await db.execute("DELETE FROM t");
  const other = yard.child();
  await using beside = await other.sqlite("a.db", { write: true });
  await refused(beside.execute("DELETE FROM t"), /locked/);
  await yard.sqlite[Symbol.asyncDispose]();
  await refused(db.query(COUNT), /The database is closed/);
  assert.deepEqual((await beside.query(COUNT)).rows, [[2]]);
});

Deno.test("Databases keeps the lock of a transaction while the same file is opened again", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", TABLE);
  await using db = await yard.sqlite("a.db", { write: true });
  await db.execute("BEGIN IMMEDIATE");
  await using _again = await yard.sqlite("a.db");
  const other = yard.child();
  await using beside = await other.sqlite("a.db", { write: true });
  await refused(beside.execute("DELETE FROM t"), /locked/);
});

Deno.test("Databases lets others change the workspace while a long statement reads", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", TABLE);
  const slow = yard.child();
  const db = await slow.sqlite("a.db");
  const ended = db.query(
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c",
  );
  const gone = assert.rejects(ended, /the child ended/);
  const locks = () => Deno.readTextFileSync("/proc/locks");
  const reads = () => new RegExp(`POSIX .* READ +${slow.pid} `).test(locks());
  assert.ok(await waitUntil(reads), "it reads");
  const change = async () => {
    await using made = await yard.sqlite("new.db", { write: true });
    await made.execute("CREATE TABLE t(a)");
  };
  await within(change(), { what: () => "the lock is held" });
  slow.kill();
  await gone;
});
