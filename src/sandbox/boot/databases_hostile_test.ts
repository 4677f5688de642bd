import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { DatabaseYard } from "../../../tests/fixtures/modules/database_yard.ts";

const RICH = [
  "CREATE TABLE t(id INTEGER PRIMARY KEY, x TEXT, y AS (upper(x)))",
  "CREATE TABLE u(a UNIQUE, t REFERENCES t(id))",
  "CREATE INDEX ix ON t(lower(x)) WHERE id > 1",
  "CREATE VIEW v AS SELECT t.x, u.a FROM t JOIN u ON u.t = t.id",
  "CREATE TRIGGER tr AFTER INSERT ON t BEGIN INSERT INTO u VALUES (new.id, new.id); END",
  "CREATE VIRTUAL TABLE f USING fts5(words)",
  "CREATE VIRTUAL TABLE r USING rtree(id, x0, x1)",
  "INSERT INTO t(x) SELECT hex(randomblob(50)) FROM pragma_function_list LIMIT 300",
  "INSERT INTO f SELECT x FROM t",
  "INSERT INTO r SELECT id, id, id + 1 FROM t",
];

const LOOKS = [
  "SELECT * FROM sqlite_schema",
  "SELECT * FROM t ORDER BY y",
  "SELECT * FROM v",
  "SELECT * FROM u WHERE a = 7",
  "SELECT * FROM f WHERE f MATCH 'a*'",
  "SELECT * FROM r WHERE x0 > 5",
  "SELECT * FROM dbstat",
  "PRAGMA integrity_check",
];

const CHANGES = [
  "INSERT INTO t(x) VALUES ('n')",
  "DELETE FROM t WHERE id % 2",
  "UPDATE r SET x1 = 900",
];

/** Uses a database in each way that a module can. Only regular errors are allowed. */
async function useAll(yard: DatabaseYard, write: boolean): Promise<void> {
  const failed = (error: Error & { code?: string }) => {
    assert.match(error.message, /^Cannot (open|query|change) |os error/);
  };
  const db = await yard.sqlite("a.db", { write }).catch(failed);
  if (!db) return;
  for (const sql of LOOKS) await db.query(sql, [], { limit: 500 }).catch(failed);
  for (const sql of CHANGES) await db.execute(sql).catch(failed);
  await db.close();
}

const flips = fc.array(
  fc.record({ at: fc.noBias(fc.nat(9_999)).map((part) => part / 10_000), to: fc.nat(255) }),
  { minLength: 1, maxLength: 40 },
);

Deno.test("Databases survives a damaged file or journal without changes outside", async () => {
  await using yard = new DatabaseYard();
  const path = yard.make("a.db", ...RICH);
  const good = Deno.readFileSync(path);
  const before = yard.fingerprint();
  const damage = fc.record({
    flips,
    cut: fc.option(fc.noBias(fc.nat(good.length)), { freq: 4 }),
    write: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(damage, async ({ flips, cut, write }) => {
      const bytes = good.slice(0, cut ?? good.length);
      // Half of the changes are in the first page, which contains the schema.
      for (const [index, { at, to }] of flips.entries()) {
        bytes[Math.floor(at * (index % 2 ? bytes.length : 4_096))] = to;
      }
      Deno.writeFileSync(path, bytes);
      await useAll(yard, write);
      for (const end of ["-journal", "-wal", "-shm"]) {
        await Deno.remove(`${path}${end}`).catch(() => {}); // most of these files do not exist
      }
      assert.equal(yard.fingerprint(), before);
      assert.deepEqual(yard.names(), ["a.db"]);
    }),
    { numRuns: 60 },
  );
  Deno.writeFileSync(path, good);
  await using db = await yard.sqlite("a.db");
  assert.deepEqual((await db.query("PRAGMA integrity_check")).rows, [["ok"]], "the child lives");
});

Deno.test("Databases survives a damaged log and index", async () => {
  await using yard = new DatabaseYard();
  const path = yard.make("b.db", "PRAGMA journal_mode = wal", ...RICH);
  const sides = new Map<string, Uint8Array>();
  {
    using open = new DatabaseSync(path);
    open.exec("INSERT INTO t(x) SELECT x FROM t");
    for (const end of ["", "-wal", "-shm"]) sides.set(end, Deno.readFileSync(`${path}${end}`));
  }
  Deno.removeSync(path);
  const before = yard.fingerprint();
  const damage = fc.record({ flips, end: fc.constantFrom("-wal", "-shm"), write: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(damage, async ({ flips, end, write }) => {
      for (const [name, good] of sides) {
        const bytes = good.slice();
        const span = name === "-shm" ? 200 : bytes.length;
        if (name === end) { for (const { at, to } of flips) bytes[Math.floor(at * span)] = to; }
        Deno.writeFileSync(`${yard.ws}/a.db${name}`, bytes);
      }
      await useAll(yard, write);
      assert.equal(yard.fingerprint(), before);
    }),
    { numRuns: 40 },
  );
  assert.deepEqual(await yard.ask("sqlite.close", 0), undefined, "the child lives");
});

/** Writes statements to the schema, as an attacker with an editor can. */
function forged(
  yard: DatabaseYard,
  name: string,
  ...schema: [type: string, name: string, sql: string][]
) {
  const path = yard.make(
    name,
    "CREATE TABLE t(id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, 'a')",
  );
  using db = new DatabaseSync(path);
  (db as unknown as { enableDefensive(on: boolean): void }).enableDefensive(false);
  db.exec("PRAGMA writable_schema = 1");
  const insert = db.prepare("INSERT INTO sqlite_schema VALUES (?, ?, ?, 0, ?)");
  for (const [type, own, sql] of schema) insert.run(type, own, type === "trigger" ? "t" : own, sql);
}

Deno.test("Databases refuses dangerous functions that a schema calls", async () => {
  await using yard = new DatabaseYard();
  const { outside } = yard;
  const before = yard.fingerprint();
  forged(
    yard,
    "a.db",
    ["view", "v1", `CREATE VIEW v1 AS SELECT load_extension('${outside}/x.so')`],
    ["view", "v2", "CREATE VIEW v2 AS SELECT fts3_tokenizer('simple')"],
    ["view", "v3", "CREATE VIEW v3 AS SELECT * FROM pragma_query_only"],
    ["view", "v4", "CREATE VIEW v4 AS SELECT writefile('x', 'y'), edit('x')"],
    // One of the functions that a trusted schema may call.
    ["view", "v5", "CREATE VIEW v5 AS SELECT rtreecheck('main', 't')"],
    ["table", "m", "CREATE VIRTUAL TABLE m USING csv(filename='/etc/passwd')"],
    ["table", "z", `CREATE VIRTUAL TABLE z USING zipfile('${outside}/canary')`],
    ["trigger", "tr", `CREATE TRIGGER tr AFTER INSERT ON t BEGIN SELECT load_extension('x'); END`],
    ["trigger", "tu", `CREATE TRIGGER tu AFTER UPDATE ON t BEGIN SELECT sqlite_log(1, 'x'); END`],
  );
  for (const write of [false, true]) {
    await using db = await yard.sqlite("a.db", { write });
    for (const name of ["v1", "v2", "v3", "v4", "v5", "m", "z"]) {
      await assert.rejects(
        db.query(`SELECT * FROM ${name}`),
        /not available|no such (function|module)|unsafe use/,
        name,
      );
    }
    assert.deepEqual((await db.query("SELECT x FROM t")).rows, [["a"]]);
  }
  await using db = await yard.sqlite("a.db", { write: true });
  await assert.rejects(db.execute("INSERT INTO t(x) VALUES (1)"), /not available|unsafe use/);
  await assert.rejects(db.execute("UPDATE t SET x = 1"), /not available|unsafe use/);
  assert.deepEqual((await db.query("SELECT x FROM t")).rows, [["a"]]);
  assert.equal(yard.fingerprint(), before);
});

Deno.test("Databases limits the work that a schema adds to a small statement", async () => {
  await using yard = new DatabaseYard();
  const views: string[] = ["CREATE VIEW v0 AS SELECT 1 AS a"];
  for (let at = 1; at < 40; at++) {
    views.push(`CREATE VIEW v${at} AS SELECT x.a FROM v${at - 1} x, v${at - 1} y`);
  }
  yard.make("a.db", "PRAGMA recursive_triggers = 1", ...views);
  yard.make(
    "b.db",
    "CREATE TABLE t(a); CREATE TRIGGER tr AFTER INSERT ON t BEGIN INSERT INTO t VALUES (new.a + 1); END",
  );
  await using one = await yard.sqlite("a.db");
  await assert.rejects(one.query("SELECT * FROM v39"), /^SqliteError: Cannot query/);
  await using two = await yard.sqlite("b.db", { write: true });
  await two.execute("PRAGMA recursive_triggers = 1");
  await assert.rejects(two.execute("INSERT INTO t VALUES (1)"), /levels of trigger/);
});
