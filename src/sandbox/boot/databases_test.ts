import assert from "node:assert/strict";
import { DatabaseYard } from "../../../tests/fixtures/modules/database_yard.ts";

const TABLE = "CREATE TABLE t(id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1,'a'),(2,'b')";
const COUNT = "SELECT count(*) FROM t";

function refused(work: Promise<unknown>, message: RegExp, code?: string): Promise<void> {
  return assert.rejects(work, (error: Error & { code?: string }) => {
    assert.match(error.message, message);
    if (code !== undefined) assert.equal(error.code, code);
    return true;
  });
}

Deno.test("Databases returns every kind of value unchanged, and pages of rows", async () => {
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

Deno.test("Databases returns the number of changes of a statement, and 0 without changes", async () => {
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

Deno.test("Databases runs exactly one statement with exactly its values", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", TABLE);
  await using db = await yard.sqlite("a.db", { write: true });
  for (const sql of ["", " ;", "-- x", "/* x", "/*/", "\uFEFF", "\n;/* a */;-- b"]) {
    await refused(db.query(sql), /"a.db": .*no statement/);
  }
  for (const sql of ["SELECT 1; DELETE FROM t", "SELECT 1;/* x */ SELECT 2", "SELECT 1; x"]) {
    await refused(db.query(sql), /several statements/);
    await refused(db.execute(sql), /several statements/);
  }
  await refused(db.query("SELECT 1\0; DELETE FROM t"), /the SQL is no text/);
  await refused(db.query("SELECT ?, ?", [1]), /more parameters than the 1 values/);
  await refused(db.execute("INSERT INTO t(x) VALUES (?)"), /more parameters than the 0 values/);
  await refused(db.query("SELECT ?", [1, 2]), /more values than parameters/);
  await refused(db.query("SELECT ?", [true as never]), /number, text, bytes/);
  await refused(db.query("SELECT :a", { b: 1 }), /Unknown named parameter 'b'/);
  await refused(db.query("SELECT x FROM nix"), /no such table: nix/);
  const lots = `SELECT ${Array(40_000).fill("?").join(",")}`;
  await refused(db.query(lots, Array(40_000).fill(1)), /too many SQL variables/);
  assert.deepEqual((await db.query("SELECT '; -- /*' ; -- end\n/* */")).rows, [["; -- /*"]]);
  assert.deepEqual((await db.query(COUNT)).rows, [[2]]);
});

Deno.test("Databases reports an error in the middle of the rows", async () => {
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

Deno.test("Databases refuses every statement that leaves or can damage the database", async () => {
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

Deno.test("Databases limits the input and output of a statement", async () => {
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
  await refused(db.query(`SELECT ${"1+".repeat(5_000)}1`), /tree is too large/);
  await refused(db.query(`SELECT ${"(".repeat(100_000)}1${")".repeat(100_000)}`), /./);
  await refused(db.query(`SELECT '${"x".repeat(1 << 20)}'`), /statement too long/);
  await refused(db.query("SELECT 'a' LIKE ?", ["%a".repeat(5_000)]), /too complex/);
  assert.deepEqual((await db.query(COUNT)).rows, [[2]]);
});

Deno.test("Databases limits the number of open databases, and closes each once", async () => {
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

Deno.test("Databases checks the arguments of a Worker", async () => {
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
