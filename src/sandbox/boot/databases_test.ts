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

Deno.test("Databases gives every kind of value as it is, and pages of rows", async () => {
  await using yard = new DatabaseYard();
  await using db = await yard.sqlite("new.db", { write: true });
  await db.execute("CREATE TABLE v(a)");
  const values = [
    null,
    1,
    -1.5,
    2n ** 53n,
    -(2n ** 63n),
    "é€😀",
    new Uint8Array([0, 255]),
    Infinity,
  ];
  for (const value of values) {
    assert.equal((await db.execute("INSERT INTO v VALUES (?) -- one", [value])).changes, 1);
  }
  const { columns, rows, more } = await db.query("SELECT a, a FROM v ORDER BY rowid;");
  assert.deepEqual({ columns, more }, { columns: ["a", "a"], more: false });
  assert.deepEqual(rows, values.map((value) => [value, value]));
  const types = await db.query("SELECT typeof(?1), typeof(?2), typeof(?3)", [1, 1.5, "x"]);
  assert.deepEqual(types.rows, [["integer", "real", "text"]]);
  const named = await db.query("SELECT :a, $b, @c", { a: 1, $b: 2, c: 3 });
  assert.deepEqual(named.rows, [[1, 2, 3]]);
  const page = await db.query("SELECT a FROM v ORDER BY rowid", [], { limit: 2, offset: 1 });
  assert.deepEqual(page, { columns: ["a"], rows: [[1], [-1.5]], more: true });
  assert.equal((await db.query("SELECT a FROM v", [], { limit: 8 })).more, false);
});

Deno.test("Databases counts what a statement changed, and nothing where it changed nothing", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", TABLE);
  await using db = await yard.sqlite("a.db", { write: true });
  assert.deepEqual(await db.execute("UPDATE t SET x = 'c'"), { changes: 2, lastInsertRowid: 0 });
  assert.equal((await db.execute("CREATE TABLE u(a)")).changes, 0);
  const { lastInsertRowid } = await db.execute("INSERT INTO t VALUES (9007199254740993, 1)");
  assert.equal(lastInsertRowid, 9007199254740993n);
  const { rows } = await db.query("INSERT INTO t(id) VALUES (7), (8) RETURNING id", [], {
    limit: 1,
  });
  assert.deepEqual(rows, [[7]]);
  assert.deepEqual((await db.query(COUNT)).rows, [[5]]);
});

Deno.test("Databases runs one statement, with exactly its values", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", TABLE);
  await using db = await yard.sqlite("a.db", { write: true });
  for (const sql of ["", " ;", "-- x", "/* x", "/*/", "\uFEFF", "\n;/* a */;-- b"]) {
    await refused(db.query(sql), /Cannot query "a.db": there is no statement in it/);
  }
  for (const sql of ["SELECT 1; DELETE FROM t", "SELECT 1;/* x */ SELECT 2", "SELECT 1; x"]) {
    await refused(db.query(sql), /several statements; send them one by one/);
    await refused(db.execute(sql), /several statements/);
  }
  await refused(db.query("SELECT 1\0; DELETE FROM t"), /the SQL is no text/);
  await refused(db.query("SELECT ?, ?", [1]), /more parameters than the 1 values/);
  await refused(db.execute("INSERT INTO t(x) VALUES (?)"), /more parameters than the 0 values/);
  await refused(db.query("SELECT ?", [1, 2]), /more values than parameters/);
  await refused(db.query("SELECT ?", [true as never]), /no number, text, bytes or null/);
  await refused(db.query("SELECT :a", { b: 1 }), /Unknown named parameter 'b'/);
  await refused(db.query("SELECT x FROM nix"), /no such table: nix/);
  const lots = `SELECT ${Array(40_000).fill("?").join(",")}`;
  await refused(db.query(lots, Array(40_000).fill(1)), /too many SQL variables/);
  assert.deepEqual((await db.query("SELECT '; -- /*' ; -- end\n/* */")).rows, [["; -- /*"]]);
  assert.deepEqual((await db.query(COUNT)).rows, [[2]]);
});

Deno.test("Databases tells an error in the middle of the rows", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", TABLE);
  await using db = await yard.sqlite("a.db", { write: true });
  const broken = "SELECT 1 UNION ALL SELECT json('[')";
  await refused(db.query(broken), /Cannot query "a.db": malformed JSON/);
  await refused(db.execute(broken), /Cannot change "a.db": malformed JSON/);
  assert.equal((await db.query(broken, [], { limit: 0 })).more, true);
  await refused(db.execute("INSERT INTO t VALUES (3, 1), (1, 1)"), /UNIQUE constraint failed/);
  assert.deepEqual((await db.query(COUNT)).rows, [[2]]);
});

const WAYS_OUT = [
  "ATTACH 'OUT/x.db' AS y",
  "ATTACH ':memory:' AS y",
  "ATTACH '' AS y",
  "DETACH main",
  "VACUUM",
  "VACUUM INTO 'OUT/x.db'",
  "SELECT load_extension('OUT/x.so')",
  "SELECT fts3_tokenizer('simple')",
  "PRAGMA temp_store_directory = 'OUT'",
  "PRAGMA writable_schema = 1",
  "PRAGMA trusted_schema = 1",
  "PRAGMA temp_store = 1",
  "PRAGMA mmap_size = 1000000",
  "PRAGMA journal_mode = OFF",
  "PRAGMA journal_mode = memory",
  "PRAGMA schema_version = 3",
  "PRAGMA hard_heap_limit = 0",
  "PRAGMA query_only = 0",
  "PRAGMA locking_mode = exclusive",
  "PRAGMA busy_timeout = 100000",
];

Deno.test("Databases refuses every statement that reaches out or can spoil the file", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", TABLE);
  const before = yard.fingerprint();
  await using writer = await yard.sqlite("a.db", { write: true });
  await using reader = await yard.sqlite("a.db");
  for (const db of [writer, reader]) {
    for (const sql of WAYS_OUT) {
      const asked = sql.replace("OUT", yard.outside);
      const message = db === reader ? /not available|within a transaction/ : /not available/;
      await refused(db.query(asked), message);
      await refused(db.execute(asked), message);
    }
  }
  const schema = "UPDATE sqlite_schema SET sql = 'x'";
  await refused(writer.execute(schema), /may not be modified/);
  await writer.execute("CREATE VIRTUAL TABLE f USING fts5(a)");
  await refused(writer.execute("DELETE FROM f_data"), /may not be modified/);
  for (
    const sql of ["PRAGMA table_info(t)", "PRAGMA integrity_check", "PRAGMA journal_mode = wal"]
  ) {
    assert.ok((await writer.query(sql)).rows.length > 0, sql);
  }
  assert.equal(yard.fingerprint(), before);
});

Deno.test("Databases bounds what a statement takes and gives", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", TABLE);
  await using db = await yard.sqlite("a.db", { write: true });
  const endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n";
  assert.equal((await db.query(`${endless} FROM c`)).rows.length, 1_000);
  assert.equal((await db.query(`${endless} FROM c`, [], { limit: 1e9 })).rows.length, 10_000);
  const wide = await db.query(`${endless}, zeroblob(100000) FROM c`);
  assert.deepEqual([wide.rows.length, wide.more], [10, true]);
  await refused(db.query("SELECT zeroblob(2000000)"), /one row has more/, "RESULT_TOO_LARGE");
  await refused(db.query("SELECT zeroblob(1000000000)"), /more than 64 MB/);
  await refused(db.query("SELECT length(randomblob(1000000000))"), /more than 64 MB/);
  await refused(
    db.query(`${endless} FROM (SELECT n, hex(zeroblob(300000)) AS x FROM c ORDER BY x)`),
    /more than 256 MB of memory/,
  );
  await refused(db.query(`SELECT ${"1+".repeat(5_000)}1`), /Expression tree is too large/);
  await refused(db.query(`SELECT ${"(".repeat(100_000)}1${")".repeat(100_000)}`), /./);
  await refused(db.query(`SELECT '${"x".repeat(1 << 20)}'`), /statement too long/);
  await refused(db.query("SELECT 'a' LIKE ?", ["%a".repeat(5_000)]), /too complex/);
  assert.deepEqual((await db.query(COUNT)).rows, [[2]]);
});

Deno.test("Databases reads only where nothing else was asked and granted", async () => {
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

Deno.test("Databases opens regular database files of the workspace only", async () => {
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
    ["a\0b", /no path/],
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
      /another name of a protected/,
      "PATH_PROTECTED",
    );
  }
  await using db = await yard.sqlite("a.db", { write: true });
  Deno.linkSync(`${yard.ws}/.env`, `${yard.ws}/a.db-wal`);
  await refused(db.query(COUNT), /another name of a protected/, "PATH_PROTECTED");
});

/** Builds a journal that ends in the name of another file, as SQLite writes it. */
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

Deno.test("Databases refuses a planted journal that makes SQLite delete an outside file", async () => {
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
  // The plant works: SQLite itself deletes the file when it reads the database.
  using real = new DatabaseSync(path);
  real.prepare(COUNT).get();
  assert.notEqual(yard.fingerprint(), before);
});

Deno.test("Databases refuses links, pipes and folders in the place of side files", async () => {
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
  await refused(db.query(COUNT), /replaced after it was opened/);
});

Deno.test("Databases reads a closed WAL database without making a file", async () => {
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

Deno.test("Databases tells what to do with a log that lost its index", async () => {
  await using yard = new DatabaseYard();
  const path = yard.make("a.db", "PRAGMA journal_mode = wal", TABLE);
  {
    using other = new DatabaseSync(path);
    other.exec("INSERT INTO t(x) VALUES (3)");
    Deno.copyFileSync(path, `${yard.ws}/b.db`);
    Deno.copyFileSync(`${path}-wal`, `${yard.ws}/b.db-wal`);
  }
  await refused(yard.sqlite("b.db"), /left without its index; open it for writing once/);
  await using db = await yard.sqlite("b.db", { write: true });
  assert.deepEqual((await db.query(COUNT)).rows, [[3]]);
});

/** Leaves a database in the middle of a change, as a program does that is killed. */
function killedInside(yard: DatabaseYard): void {
  const path = yard.make("h.db", TABLE, "CREATE TABLE big AS SELECT zeroblob(100000) AS z");
  using db = new DatabaseSync(path);
  db.exec("PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN");
  db.exec("INSERT INTO t(x) SELECT randomblob(20000) FROM big, big b, t, t u, t v, t w");
  Deno.copyFileSync(`${path}-journal`, `${yard.ws}/a.db-journal`);
  Deno.copyFileSync(path, `${yard.ws}/a.db`);
}

Deno.test("Databases undoes a change that was cut off, for a writer only", async () => {
  await using yard = new DatabaseYard();
  killedInside(yard);
  await using reader = await yard.sqlite("a.db");
  await refused(reader.query(COUNT), /stopped in the middle of a change; open it for writing once/);
  await using writer = await yard.sqlite("a.db", { write: true });
  assert.deepEqual((await writer.query(COUNT)).rows, [[2]]);
  assert.deepEqual((await reader.query(COUNT)).rows, [[2]]);
});

Deno.test("Databases says so when a folder is not writable", async () => {
  if (Deno.uid() !== 0) return; // only root can run a child as somebody else
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
  await refused(hot.query(COUNT), /stopped in the middle of a change/);
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
  await refused(beside.execute("DELETE FROM t"), /another program has it locked; try again/);
  await yard.sqlite[Symbol.asyncDispose]();
  await refused(db.query(COUNT), /The database is closed/);
  assert.deepEqual((await beside.query(COUNT)).rows, [[2]]);
});

Deno.test("Databases keeps a transaction locked while the same file is opened again", async () => {
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

Deno.test("Databases holds a bounded number of databases, and closes each once", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", TABLE);
  for (let count = 0; count < 16; count++) await yard.sqlite("a.db");
  await refused(yard.sqlite("a.db"), /16 databases are open/);
  await yard.sqlite[Symbol.asyncDispose]();
  const db = await yard.sqlite("a.db");
  await db.close();
  await db.close();
  await refused(db.query(COUNT), /The database is closed/);
});

Deno.test("Databases looks at what a Worker sends", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", TABLE);
  for (const path of [null, 7, {}, ["a.db"], ""]) {
    await assert.rejects(yard.ask("sqlite.open", path, "yes"));
  }
  const number = await yard.ask("sqlite.open", "a.db", "yes");
  await refused(yard.ask("sqlite.execute", number, "DELETE FROM t"), /open for reading only/);
  for (const sql of [null, 7, {}, ["SELECT 1"]]) {
    await refused(yard.ask("sqlite.query", number, sql), /the SQL is no text/);
  }
  for (const values of [null, 7, "x", [[]], [{}], { a: {} }, [undefined]]) {
    await yard.ask("sqlite.query", number, "SELECT :a", values, -1, "x").catch(() => {});
  }
  await assert.rejects(yard.ask("sqlite.query", "constructor", "SELECT 1"));
  const { rows } = await yard.ask("sqlite.query", number, COUNT, [], -5, 0.5) as { rows: unknown };
  assert.deepEqual(rows, []);
});
