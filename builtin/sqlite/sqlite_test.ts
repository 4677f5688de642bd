/**
 * Tests the tools of `sqlite` with the real databases of a sandbox's host thread.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Host } from "../../src/sandbox/host.ts";
import { DatabaseYard } from "../../tests/fixtures/modules/database_yard.ts";
import { __meta__ } from "./meta.ts";
import * as tools from "./sqlite.ts";
import { assertGolden, assertGoldenError } from "../../tests/kit/golden.ts";

interface Result {
  readonly content: readonly { readonly type: string; readonly text: string }[];
  // deno-lint-ignore no-explicit-any -- each tool has its own
  readonly structuredContent: any;
}

/** Runs a tool on a path of the yard. */
function run(yard: DatabaseYard, name: keyof typeof tools, args: { readonly path: string }) {
  const { sqlite, ws: workspace } = yard;
  const host = { sqlite, workspace } as Partial<Host> as Host; // all that the tools use
  const placed = { ...args, path: `${yard.ws}/${args.path}` };
  return tools[name](placed as never, host) as Promise<Result>; // JSON that the schema has let in
}

function text(result: Result): string {
  return result.content.map(({ text }) => text).join("\n");
}

const SHOP = `
  CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT NOT NULL DEFAULT 'Ann', loud AS (upper(name)));
  CREATE TABLE "order"(no, person REFERENCES person(id) ON DELETE CASCADE, PRIMARY KEY(no, person));
  CREATE UNIQUE INDEX by_name ON person(name, id);
  CREATE VIEW names AS SELECT name FROM person;
  CREATE TRIGGER tidy AFTER DELETE ON person BEGIN DELETE FROM "order" WHERE person = old.id; END;
  CREATE VIRTUAL TABLE words USING fts5(word);
  INSERT INTO person(name) VALUES ('Ada'), ('Bob'), ('Cyd');
`;

Deno.test("__meta__ describes every exported tool, closed, with the rights that it needs", () => {
  assert.deepEqual(Object.keys(__meta__.tools).sort(), Object.keys(tools).sort());
  for (const [name, tool] of Object.entries(__meta__.tools)) {
    const { annotations, inputSchema, outputSchema, permissions } = tool;
    assert.equal(inputSchema.additionalProperties, false, name);
    assert.equal(annotations.readOnlyHint, permissions.write === undefined, name);
    assert.equal(annotations.readOnlyHint, name !== "execute");
    assert.equal(annotations.openWorldHint, false, name);
    assert.equal(outputSchema.type, "object", name);
  }
  assert.ok(JSON.stringify(__meta__).length < 4_000);
});

Deno.test("query() returns rows by line, and as data", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", SHOP);
  const sql =
    "SELECT id, name, NULL AS n, 9007199254740993 AS big, x'00ff' AS b, 9e999 FROM person";
  const all = await run(yard, "query", { path: "a.db", sql } as never);
  const row = (
    id: number,
    name: string,
  ) => [id, name, null, "9007199254740993", { base64: "AP8=" }, "Infinity"];
  const rows = [row(1, "Ada"), row(2, "Bob"), row(3, "Cyd")];
  const columns = ["id", "name", "n", "big", "b", "9e999"];
  assert.deepEqual(all.structuredContent, { columns, rows, more: false });
  const lines = [columns, ...rows].map((one) => JSON.stringify(one));
  assert.equal(text(all), [...lines, "3 rows"].join("\n"));
});

Deno.test("query() pages, and says how to go on", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", SHOP);
  const sql = "SELECT name FROM person ORDER BY id";
  const first = await run(yard, "query", { path: "a.db", sql, limit: 2 } as never);
  assert.deepEqual(first.structuredContent.rows, [["Ada"], ["Bob"]]);
  assert.match(text(first), /\n2 rows;.* offset 2 on$/);
  const rest = await run(yard, "query", { path: "a.db", sql, limit: 2, offset: 2 } as never);
  assert.deepEqual(rest.structuredContent, { columns: ["name"], rows: [["Cyd"]], more: false });
  const lots = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c";
  const most = await run(yard, "query", { path: "a.db", sql: lots } as never);
  assert.equal(most.structuredContent.rows.length, 100);
  const wide = lots.replace("SELECT n FROM", "SELECT n, hex(zeroblob(25000)) FROM");
  const few = await run(yard, "query", { path: "a.db", sql: wide } as never);
  assert.equal(few.structuredContent.rows.length, 3);
  assert.match(text(few), /\n3 rows;.* offset 3 on$/);
  await assert.rejects(
    run(yard, "query", { path: "a.db", sql: "SELECT hex(zeroblob(200000))" } as never),
    /^Error: Cannot use ".*a\.db": .* 200000 /,
  );
});

Deno.test("query() binds values in order and by name", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", SHOP);
  const ask = async (sql: string, parameters: unknown) =>
    (await run(yard, "query", { path: "a.db", sql, parameters } as never)).structuredContent.rows;
  const values = [1, "x", null, true, { base64: "AP8=" }, 1.5];
  assert.deepEqual(await ask("SELECT ?, ?, ?, ?, ?, ?", values), [[1, "x", null, 1, {
    base64: "AP8=",
  }, 1.5]]);
  assert.deepEqual(await ask("SELECT :a, $b", { a: 1, $b: "x' OR 1" }), [[1, "x' OR 1"]]);
  await assert.rejects(ask("SELECT ?", [{ base64: "*" }]), /base64|Base64|character/i);
  await assert.rejects(ask("SELECT ?", []), /more parameters than the 0 values/);
});

Deno.test("query() changes nothing and says which tool does", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", SHOP);
  await assert.rejects(
    run(yard, "query", { path: "a.db", sql: "DELETE FROM person" } as never),
    /reading only; .*\bexecute\b/,
  );
  await assert.rejects(
    run(yard, "query", { path: "b.db", sql: "SELECT 1" } as never),
    /no such file/,
  );
  assert.deepEqual(yard.names(), ["a.db"]);
});

Deno.test("query() names existing tables and columns in errors", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", SHOP);
  yard.make("empty.db");
  await Deno.writeTextFile(`${yard.ws}/empty.db`, "");
  const ask = (path: string, sql: string) => run(yard, "query", { path, sql } as never);
  await assert.rejects(
    ask("a.db", "SELECT * FROM people"),
    /table: people; .*: names, order, person, words$/,
  );
  await assertGoldenError("sqlite/a database without tables", ask("empty.db", "SELECT * FROM t"));
  await assert.rejects(ask("a.db", "SELECT nam FROM person"), /column: nam; schema/);
  await assert.rejects(
    ask("a.db", 'SELECT "Ada"'),
    /no such column: "?Ada"?.*; schema shows.*quotes/,
  );
  await assert.rejects(ask("a.db", "SELECT 1; SELECT 2"), /send them one by one$/);
});

Deno.test("execute() changes rows, and creates a file only with `create`", async () => {
  await using yard = new DatabaseYard();
  const change = (sql: string, more: object = {}) =>
    run(yard, "execute", { path: "new.db", sql, ...more } as never);
  await assertGoldenError("sqlite/a file that does not exist", change("CREATE TABLE t(a)"));
  assert.deepEqual(yard.names(), []);
  assert.equal(text(await change("CREATE TABLE t(a)", { create: true })), "0 rows changed");
  const made = await change("INSERT INTO t VALUES (?), (?)", { parameters: [1, 2], create: true });
  assert.deepEqual(made.structuredContent, { changes: 2, lastInsertRowid: 2 });
  assertGolden("sqlite/rows that changed", text(made));
  const large = await change("INSERT INTO t(rowid) VALUES (9007199254740993)");
  assert.equal(large.structuredContent.lastInsertRowid, "9007199254740993");
  assert.deepEqual(yard.names(), ["new.db"]);
});

Deno.test("execute() says that a transaction does not span calls", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", SHOP);
  for (const sql of ["BEGIN", " begin immediate", "SAVEPOINT a"]) {
    const work = run(yard, "execute", { path: "a.db", sql } as never);
    await assert.rejects(work, /a transaction ends with/);
  }
});

Deno.test("schema() shows tables with all that belongs to them", async () => {
  await using yard = new DatabaseYard();
  yard.make("a.db", SHOP);
  const shown = await run(yard, "schema", { path: "a.db" } as never);
  const { tables, more } = shown.structuredContent;
  assert.deepEqual(tables.map(({ name, type }: never) => [name, type]), [
    ["names", "view"],
    ["order", "table"],
    ["person", "table"],
    ["words", "virtual"],
  ]);
  assert.equal(more, false);
  const column = { type: "", notNull: false, default: null, primaryKey: 0, generated: false };
  assert.deepEqual(tables[2], {
    name: "person",
    type: "table",
    columns: [
      { ...column, name: "id", type: "INTEGER", primaryKey: 1 },
      { ...column, name: "name", type: "TEXT", notNull: true, default: "'Ann'" },
      { ...column, name: "loud", generated: true },
    ],
    foreignKeys: [],
    indexes: [{ name: "by_name", unique: true, columns: ["name", "id"] }],
    triggers: ["tidy"],
    rows: 3,
    moreRows: false,
  });
  assert.deepEqual(tables[1].foreignKeys, [
    { column: "person", table: "person", to: "id", onDelete: "CASCADE" },
  ]);
  const one = await run(yard, "schema", { path: "a.db", table: "PERSON" } as never);
  assert.match(
    text(one),
    /^CREATE TABLE person\([^]*\); -- 3 rows\nCREATE UNIQUE INDEX by_name [^]*;\nCREATE TRIGGER tidy/,
  );
  await assert.rejects(
    run(yard, "schema", { path: "a.db", table: "nix" } as never),
    /table: nix; .*: names, /,
  );
});

Deno.test("schema() counts up to a bound, and shows a part", async () => {
  await using yard = new DatabaseYard();
  const numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 20000)";
  yard.make(
    "a.db",
    `CREATE TABLE a AS ${numbers} SELECT n FROM c; CREATE VIEW b AS SELECT * FROM nix`,
  );
  const { structuredContent: { tables } } = await run(yard, "schema", { path: "a.db" } as never);
  assert.deepEqual([tables[0].rows, tables[0].moreRows], [10_000, true]);
  assert.match(tables[1].error, /no such table/);
  await Deno.writeTextFile(`${yard.ws}/empty.db`, "");
  assertGolden(
    "sqlite/schema of an empty database",
    text(await run(yard, "schema", { path: "empty.db" } as never)),
  );
});
