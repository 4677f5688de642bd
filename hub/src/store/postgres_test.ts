import assert from "node:assert/strict";
import { PmlError } from "@casys/pml/registry";
import { PG_MIGRATIONS } from "./_pg_migrations.ts";
import { parsePgUrl } from "./_pg_url.ts";
import { running, server } from "./_stores_test.ts";
import { openPostgres } from "./postgres.ts";

const ALL = { after: "", words: [] as readonly string[], limit: 100 };

async function refused(work: () => unknown, says: RegExp): Promise<void> {
  await assert.rejects(async () => await work(), (error) => {
    assert.ok(error instanceof PmlError, `${error}`);
    assert.match(error.message, says);
    assert.doesNotMatch(Deno.inspect(error, { depth: 9 }), /geheim/);
    return true;
  });
}

Deno.test("parsePgUrl() requires TLS for remote servers, and never shows the password", async () => {
  const of = (text: string) => parsePgUrl(text);
  assert.equal(of("postgres://u:geheim@127.0.0.1/d").ssl, false);
  assert.equal(of("postgres://u@localhost/d?host=/run/postgresql").ssl, false);
  assert.equal(of("postgres://u@[::1]:5433/d").host, "::1");
  assert.equal(of("postgresql://u:geheim@db.example.com/d").ssl, "verify-full");
  assert.equal(of("postgres://u:geheim@db/d?sslmode=disable").ssl, false);
  assert.equal(of("postgres://u:geheim@db/d?sslmode=require").ssl, "require");
  assert.deepEqual(
    [of("postgres://u:p%40%2F@db/d").password, of("postgres://u:geheim@db/d").label],
    ["p@/", "u@db:5432/d"],
  );
  const cases: readonly (readonly [string, RegExp])[] = [
    ["geheim", /not a URL/],
    ["mysql://u:geheim@db/d", /does not begin/],
    ["postgres://u:geheim@db/", /host, .*user .*database/],
    ["postgres://:geheim@db/d", /needs a host/],
    ["postgres://u:geheim@db/d?sslmode=prefer", /sslmode is none of/],
    ["postgres://u:geheim@db/d?options=geheim", /parameter "options"/],
    ["postgres://u:geheim%zz@db/d", /an invalid % sequence/],
    ["postgres://u:geheim@db/d?host=geheim", /not the path/],
  ];
  for (const [text, says] of cases) await refused(() => of(text), says);
});

Deno.test("openPostgres() reports an error without the password", async () => {
  const { port, database, psql } = await running();
  const url = await database();
  const at = url.replace(/hub_\d+$/, "");
  await refused(() => openPostgres(`${at}missing`), /database "missing" does not exist/);
  await refused(() => openPostgres(url.replace("geheim", "x")), /password authentication failed/);
  const other = url.replace(`${port}`, "1");
  await refused(() => openPostgres(other), /Cannot open "pml@127.0.0.1:1\/hub_\d+": /);
  await refused(() => openPostgres(`${url}?sslmode=require`), /TLS/);
  await psql(`${at}postgres`, "CREATE DATABASE odd ENCODING 'LATIN1' TEMPLATE template0");
  await refused(() => openPostgres(`${at}odd`), /its encoding is LATIN1/);
  await (await openPostgres(url))[Symbol.asyncDispose]();
  await psql(url, "INSERT INTO pml_hub.schema_versions VALUES (99, '')");
  await refused(
    () => openPostgres(url),
    /its tables have version 99, and .*supports only \d+/,
  );
});

Deno.test("openPostgres() runs each migration in one transaction and keeps the data", async () => {
  const { database, psql } = await running();
  const url = await database();
  {
    await using store = await openPostgres(url);
    await store.add([server("weather", "1.0.0")]);
  }
  const half = "CREATE TABLE more (a text); INSERT INTO absent VALUES (1)";
  await refused(() => openPostgres(url, [...PG_MIGRATIONS, half]), /"absent" does not exist/);
  const left = "SELECT count(*) FROM pg_tables WHERE tablename = 'more'";
  assert.equal(await psql(url, left), "0");
  const steps = [...PG_MIGRATIONS, "ALTER TABLE servers ADD COLUMN stars text"];
  const stores = await Promise.all([1, 2, 3].map(() => openPostgres(url, steps)));
  for (const store of stores) {
    assert.equal(await store.size(), 1);
    await store[Symbol.asyncDispose]();
  }
  await refused(() => openPostgres(url), /its tables have version/);
});

Deno.test("a store on PostgreSQL replaces NUL, and searches with its index", async () => {
  const { database, psql } = await running();
  const url = await database();
  await using store = await openPostgres(url);
  const description = "a\0b \ud800 \\u0000 'x'";
  await store.add([server("odd", "1.0.0", { description })]);
  const entry = await store.entry("odd", undefined);
  assert.equal(entry?.manifest.description, description);
  assert.equal((await store.rows("odd"))[0]?.description, "a\ufffdb \ufffd \\u0000 'x'");
  assert.equal((await store.page({ ...ALL, words: ["a\0b"] })).length, 1);
  assert.equal(await store.entry("odd", "\0"), undefined);
  const row = "SELECT record_type || '|' || version_tag FROM pml_hub.pml_registry";
  assert.equal(await psql(url, row), "mcp-server|[]");
  const plan = `SET enable_seqscan = off; EXPLAIN SELECT fqdn FROM pml_hub.newest
    WHERE words LIKE '%weather%'`;
  assert.match(await psql(url, plan), /newest_words/);
});

Deno.test("A server that lost its connections answers again", async () => {
  const { database, psql } = await running();
  const url = await database();
  await using store = await openPostgres(url);
  await store.add([server("weather", "1.0.0")]);
  await psql(
    url,
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'pml' " +
      "AND application_name = 'pml-hub' AND datname = current_database()",
  );
  // What was just sent may fail; what comes then does not.
  await store.size().catch(() => {});
  assert.equal(await store.size(), 1);
  assert.deepEqual(await store.add([server("fs:read", "1.0.0")]), ["added"]);
});
