/**
 * Databases that would fill the disk, and statements that never end: they are limited to the bytes
 * that one child may write, and other files do not wait for them.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { until } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { codeOf, endWell, textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

const MB = 1 << 20;
const COUNT = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT ?)";
const ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)";

/** A module that writes several databases in its own transactions. */
const WRITER = `
export const __meta__ = {
  name: "writer", version: "1.0.0", permissions: { read: ["."], write: ["."] },
  tools: { fill: {}, hold: {} },
};
export async function fill({ mode, files, rounds, mb, transaction }, { sqlite }) {
  const open = await Promise.all(files.map((path) => sqlite(path, { write: true })));
  for (const db of open) {
    await db.query("PRAGMA journal_mode = " + mode);
    await db.execute("CREATE TABLE IF NOT EXISTS t(a)");
    if (transaction) await db.execute("BEGIN");
  }
  for (let round = 0; round < rounds; round++) {
    for (const db of open) {
      await db.execute("${COUNT} INSERT INTO t SELECT randomblob(1000) FROM c", [mb * 1000]);
    }
  }
  if (transaction) for (const db of open) await db.execute("COMMIT");
  return "filled";
}
export async function hold({ path, sql }, { sqlite }) {
  await using db = await sqlite(path, { write: true });
  return String((await db.execute(sql)).changes);
}`;

const PML = {
  version: 1,
  permissions: { allow: ["filesystem:*", "sqlite:*", "writer:*"] },
  private_mcps: { writer: { type: "deno", path: "writer.js" } },
} as const;

/** Returns the size of the databases of a workspace and their side files. */
function sizeOf(ws: Workspace): number {
  const names = readdirSync(ws.path).filter((name) => name.includes(".db"));
  return names.map((name) => statSync(ws.file(name), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, size) => sum + size, 0);
}

/** Returns the maximum size of the databases until a promise settled. */
async function mostBytes(ws: Workspace, over: Promise<unknown>): Promise<number> {
  let [most, isOver] = [0, false];
  const ended = over.finally(() => isOver = true);
  await until(() => {
    most = Math.max(most, sizeOf(ws));
    return isOver;
  }, 60_000);
  await ended;
  return most;
}

Deno.test("a database grows at most by the bytes that one child may write (GW6, RX9)", async () => {
  const limits = { write_bytes: 10 * MB };
  await using scene = await makeScene({
    era: "2026-07-28",
    pml: PML,
    limits,
    files: { "writer.js": WRITER },
  });
  const { ws, pml } = scene;
  const execute = (sql: string, count: number) =>
    pml.callTool("sqlite__execute", { path: "a.db", create: true, sql, parameters: [count] });
  await pml.callTool("sqlite__execute", { path: "a.db", create: true, sql: "CREATE TABLE t(a)" });
  const insert = `${COUNT} INSERT INTO t SELECT randomblob(1000) FROM c`;
  const whole = execute(insert, 60_000);
  const most = await mostBytes(ws, whole);
  assertFull(await whole);
  assert.ok(most <= 10 * MB, `${most} bytes`);
  // Failed statements were rolled back; the same in several statements.
  let rounds = 0;
  for (; rounds < 20; rounds++) {
    const answer = await execute(insert, 1_500);
    if (answer.result?.isError === true as unknown) break;
  }
  assert.ok(rounds > 2 && rounds < 8, `${rounds} rounds`);
  assert.ok(sizeOf(ws) <= 10 * MB, `${sizeOf(ws)} bytes`);
  using db = new DatabaseSync(ws.file("a.db"));
  assert.equal(db.prepare("SELECT count(*) AS n FROM t").get()?.n, rounds * 1_500);
  assert.equal(db.prepare("PRAGMA integrity_check").get()?.integrity_check, "ok");
  await endWell(ws, pml);
});

Deno.test("one byte limit covers files, logs and all databases of a child (GW6)", async () => {
  const limits = { write_bytes: 10 * MB };
  const ways = [
    { mode: "wal", files: ["a.db"], rounds: 1, mb: 60 },
    { mode: "wal", files: ["a.db", "b.db", "c.db"], rounds: 30, mb: 1 },
    { mode: "delete", files: ["a.db", "b.db", "c.db"], rounds: 30, mb: 1, transaction: true },
    { mode: "wal", files: ["a.db", "b.db"], rounds: 30, mb: 1, transaction: true },
    { mode: "truncate", files: ["a.db", "a.db"], rounds: 30, mb: 2 },
  ];
  for (const way of ways) {
    await using scene = await makeScene({ pml: PML, limits, files: { "writer.js": WRITER } });
    const { ws, pml } = scene;
    const filled = pml.callTool("writer__fill", way, { ms: 60_000 });
    const most = await mostBytes(ws, filled);
    const answer = await filled;
    assert.ok(isError(answer), JSON.stringify(way));
    assert.match(textOf(answer), /write_bytes/, JSON.stringify(way));
    assert.ok(most <= 10.5 * MB, `${most} bytes: ${JSON.stringify(way)}`);
    await endWell(ws, pml);
  }
});

Deno.test("an endless statement delays no file of another module (GW6)", async () => {
  const limits = { call_ms: 2_000 };
  await using scene = await makeScene({ pml: PML, limits, files: { "writer.js": WRITER } });
  const { ws, pml } = scene;
  const create = "CREATE TABLE t(a INTEGER PRIMARY KEY, b)";
  await pml.callTool("sqlite__execute", { path: "a.db", create: true, sql: create });
  await pml.callTool("writer__hold", { path: "a.db", sql: "INSERT INTO t VALUES (0, 'x')" });
  await others(pml, "before");
  const statements = [
    `${ENDLESS} UPDATE t SET b = (SELECT max(n) FROM c)`,
    `${ENDLESS} INSERT OR REPLACE INTO t SELECT n % 1000, n FROM c`,
    `${ENDLESS} SELECT max(n) FROM c`,
    `CREATE TABLE made AS ${ENDLESS} SELECT max(n) AS n FROM c`,
  ];
  for (const [at, sql] of statements.entries()) {
    let isOver = false;
    const running = pml.callTool("sqlite__execute", { path: "a.db", sql })
      .finally(() => isOver = true);
    // Another call on the same database, in another child: it may wait, and must not delay others
    // either.
    const beside = pml.callTool("writer__hold", {
      path: "a.db",
      sql: "DELETE FROM t WHERE a = -1",
    });
    for (let turn = 0; turn < 2; turn++) {
      await others(pml, `${at}-${turn}`);
      assert.ok(!isOver, `${sql}: others waited for it`);
    }
    await beside;
    assert.equal(codeOf(await running), "TIMED_OUT", sql);
    const message = await pml.callTool("sqlite__execute", { path: "a.db", sql: "DELETE FROM t" });
    assert.ok(!isError(message), textOf(message));
  }
  await endWell(ws, pml);
});

/** Reads, creates, writes, moves and removes files as another module does. */
async function others(pml: RawStdio, name: string): Promise<void> {
  const calls: [string, Record<string, unknown>][] = [
    ["read_file", { path: "good.txt" }],
    ["create_directory", { path: `folder-${name}` }],
    ["write_file", { path: `folder-${name}/file.txt`, content: "x" }],
    ["move_file", { source: `folder-${name}`, destination: `moved-${name}` }],
  ];
  for (const [tool, args] of calls) {
    const answer = await pml.callTool(`filesystem__${tool}`, args);
    assert.ok(!isError(answer), textOf(answer));
  }
}

function isError({ result }: { readonly result?: unknown }): boolean {
  return (result as { isError?: boolean } | undefined)?.isError === true;
}

function assertFull(answer: Awaited<ReturnType<RawStdio["callTool"]>>): void {
  assert.equal(codeOf(answer), "SANDBOX_DENIED", textOf(answer));
  assert.match(textOf(answer), /limits\.write_bytes/);
}
