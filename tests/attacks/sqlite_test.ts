/**
 * The built-in `sqlite` through a spawned PML: hostile statements, paths and files, and statements
 * that use all time or space.
 *
 * @module
 */

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { execFileSync } from "node:child_process";
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Message } from "../kit/json_rpc.ts";
import { rssOf } from "../kit/procwatch.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { assertNoLeak } from "../kit/sinks.ts";
import type { Workspace } from "../kit/workspace.ts";
import { codeOf, endWell, textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

const ALLOWED = { version: 1, permissions: { allow: ["filesystem:*", "sqlite:*"] } } as const;
const SECRET = "secret-27bd0c41e96f4a55";
const ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)";

type Arguments = Readonly<Record<string, unknown>>;

Deno.test("query, execute and schema work on a database of the workspace", async () => {
  await using scene = await makeScene({ era: "2026-07-28", pml: ALLOWED, prepare: furnish });
  const { ws, pml } = scene;
  const message = await sqlite(pml, "query", {
    sql: "SELECT id, name FROM person WHERE id > ? ORDER BY id",
    parameters: [0],
  });
  assert.deepEqual(message.result?.structuredContent?.rows as unknown, [[1, "Ada"], [2, "Bob"]]);
  const added = await sqlite(pml, "execute", {
    sql: "INSERT INTO person(name) VALUES (:name)",
    parameters: { name: "'); DROP TABLE person; --" },
  });
  assert.equal(added.result?.structuredContent?.changes as unknown, 1, textOf(added));
  assert.match(textOf(await sqlite(pml, "schema", {})), /CREATE TABLE person[^]* -- 3 rows/);
  await sqlite(pml, "execute", { path: "new.db", create: true, sql: "CREATE TABLE t(a)" });
  assert.deepEqual(tablesOf(ws, "new.db"), ["t"]);
  assertFailed(await sqlite(pml, "query", { sql: "DELETE FROM person" }), /reading only/);
  assertFailed(
    await sqlite(pml, "execute", { sql: "DELETE FROM person; DELETE FROM person" }),
    /several statements/,
  );
  assert.equal(count(ws), 3);
  await endWell(ws, pml);
});

Deno.test("by default sqlite:execute asks, and tools that read run", async () => {
  await using scene = await makeScene({ pml: { version: 1 }, capabilities: {}, prepare: furnish });
  const { ws, pml } = scene;
  assert.ok(!isError(await sqlite(pml, "query", { sql: "SELECT 1" })));
  assert.ok(!isError(await sqlite(pml, "schema", {})));
  for (const path of ["a.db", "made.db"]) {
    const args = { path, create: true, sql: "CREATE TABLE made(a)" };
    assert.equal(codeOf(await sqlite(pml, "execute", args)), "APPROVAL_REQUIRED");
  }
  assert.deepEqual(tablesOf(ws, "a.db"), ["person"]);
  assert.ok(!(await readdir(ws.path)).includes("made.db"));
  await endWell(ws, pml);
});

/** Returns statements that would access a database outside. */
function reaching(other: string): readonly string[] {
  return [
    `ATTACH '${other}' AS o`,
    `/* x */ aTTach DATABASE 'file:${other}?mode=rwc' AS o`,
    "DETACH main",
    `VACUUM INTO '${other}.made'`,
    "VACUUM",
    "SELECT load_extension('libc.so.6')",
    "SELECT fts3_tokenizer('simple', x'4141414141414141')",
    `SELECT readfile('${other}')`,
    `SELECT writefile('${other}', 'x')`,
    `SELECT * FROM fsdir('${other}')`,
    `SELECT * FROM dbstat`,
    `PRAGMA temp_store_directory = '${other}.folder'`,
    `PRAGMA data_store_directory = '${other}.folder'`,
    "PRAGMA writable_schema = 1",
    "PRAGMA trusted_schema = 1",
    "PRAGMA query_only = 0",
    "PRAGMA journal_mode = off",
    "PRAGMA hard_heap_limit = 0",
    "PRAGMA mmap_size = 1000000000",
    "CREATE VIRTUAL TABLE v USING csv(filename='/etc/passwd')",
    `SELECT edit('x', 'touch ${other}.made')`,
  ];
}

Deno.test("no statement accesses another database", async () => {
  await using scene = await makeScene({ pml: ALLOWED, prepare: furnish });
  const { ws, pml } = scene;
  const before = await outerState(ws);
  for (const sql of reaching(join(ws.root, "other.db"))) {
    for (const tool of ["query", "execute"]) {
      const answer = await sqlite(pml, tool, { sql });
      if (/VACUUM$|dbstat|temp_store_dir|data_store_dir|fts3/.test(sql) && !isError(answer)) {
        continue;
      }
      // Deno and SQLite would refuse some of these too, with their own errors.
      const isOurs = /^(\/\*.*\*\/ )?(ATTACH|DETACH|PRAGMA)/i.test(sql) || sql.includes("load_ext");
      assertFailed(answer, isOurs ? /is not available|are not available/ : /Cannot /, sql);
    }
  }
  assert.deepEqual(await outerState(ws), before);
  assert.equal(count(ws), 2);
  assertNoLeak(SECRET, { stdout: pml.stdout, stderr: pml.stderr });
  await endWell(ws, pml);
});

/**
 * Returns paths other than databases of the workspace, and the code if the module itself does not
 * refuse.
 */
function badPaths(ws: Workspace): Readonly<Record<string, string | undefined>> {
  const [out, kept] = ["PATH_OUTSIDE_WORKSPACE", "PATH_PROTECTED"];
  return {
    "../other.db": out,
    [join(ws.root, "other.db")]: out,
    "/etc/passwd": out,
    "link.db": out,
    "folder/other.db": out,
    "dangling.db": out,
    ".env": kept,
    ".env.db": kept,
    ".git/config": kept,
    "kept.db": kept,
    [`file:${join(ws.root, "other.db")}`]: undefined,
    "file:a.db?mode=rwc": undefined,
    ":memory:": undefined,
    "": undefined,
    "a.db\0": undefined,
    "pipe": undefined,
    "zero": undefined,
    "sub": undefined,
    ".": undefined,
    "good.txt": undefined,
    "cut.db": undefined,
    "large.db": undefined,
    "side.db": undefined,
    "super.db": undefined,
    "wal.db": undefined,
  };
}

Deno.test("no path other than a database of the workspace is opened, created or waited for (PE1, PE3, PE8, PE11)", async () => {
  await using scene = await makeScene({
    files: { ".env": SECRET, ".git/config": SECRET, ".env.db": "" },
    pml: ALLOWED,
    prepare: async (ws) => {
      await furnish(ws);
      await plantPaths(ws);
    },
  });
  const { ws, pml } = scene;
  const before = await outerState(ws);
  const names = await readdir(ws.path);
  for (const [path, code] of Object.entries(badPaths(ws))) {
    for (const [tool, args] of Object.entries(TOOLS)) {
      const answer = await sqlite(pml, tool, { ...args, path });
      const what = `${tool} ${path}: ${JSON.stringify(answer).slice(0, 400)}`;
      assert.ok(isError(answer), what);
      if (code !== undefined) assert.equal(codeOf(answer), code, what);
    }
  }
  assert.deepEqual(await outerState(ws), before);
  assert.deepEqual(await readdir(ws.path), names);
  assertNoLeak(SECRET, { stdout: pml.stdout, stderr: pml.stderr });
  await endWell(ws, pml);
});

const TOOLS: Readonly<Record<string, Arguments>> = {
  query: { sql: "SELECT * FROM sqlite_schema, person LIMIT 5" },
  execute: { sql: "CREATE TABLE made(a)", create: true },
  schema: {},
};

Deno.test("a database with flipped bits is answered with an error, and affects no other", async () => {
  await using scene = await makeScene({ pml: ALLOWED, prepare: furnish });
  const { ws, pml } = scene;
  const whole = await readFile(ws.file("a.db"));
  const before = await outerState(ws);
  for (let turn = 0; turn < 8; turn++) {
    const bytes = Buffer.from(whole);
    for (let flip = 0; flip < 1 + turn; flip++) {
      const at = 16 + (turn * 7919 + flip * 104_729) % (whole.length - 16);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << (turn + flip) % 8);
    }
    const path = `flipped-${turn}.db`;
    await writeFile(ws.file(path), bytes);
    for (const [tool, args] of Object.entries(TOOLS)) {
      const answer = await sqlite(pml, tool, { ...args, path });
      assert.ok(answer.result !== undefined, `${tool} ${path}`);
    }
  }
  assert.deepEqual(await outerState(ws), before);
  assert.equal(count(ws), 2);
  await endWell(ws, pml);
});

Deno.test("an endless statement is ended by its deadline, and others continue (RX1)", async () => {
  const limits = { call_ms: 1_500 };
  await using scene = await makeScene({ pml: ALLOWED, limits, prepare: furnish });
  const { ws, pml } = scene;
  const endless: readonly (readonly [string, string])[] = [
    ["query", `${ENDLESS} SELECT count(*) FROM c`],
    ["execute", `${ENDLESS} UPDATE person SET name = (SELECT max(n) FROM c)`],
  ];
  for (const [tool, sql] of endless) {
    const since = performance.now();
    const running = sqlite(pml, tool, { sql });
    for (let turn = 0; turn < 10; turn++) {
      const begun = performance.now();
      const read = await pml.callTool("filesystem__read_file", { path: "good.txt" });
      assert.equal(textOf(read), "good\n");
      if (turn > 0) assert.ok(performance.now() - begun < 2_000, "others wait");
    }
    const answer = await running;
    assert.equal(codeOf(answer), "TIMED_OUT", `${sql}: ${textOf(answer)}`);
    assert.ok(performance.now() - since < 12_000);
  }
  assert.ok(!isError(await sqlite(pml, "query", { sql: "PRAGMA integrity_check" })));
  assert.equal(count(ws), 2);
  await endWell(ws, pml);
});

Deno.test("an endless result is limited, and the gateway's memory stays small (RX4)", async () => {
  const limits = { call_ms: 2_500, result_bytes: 4 << 20 };
  // The test measures its memory.
  await using scene = await makeScene({ ownProcess: true, pml: ALLOWED, limits, prepare: furnish });
  const { ws, pml } = scene;
  await sqlite(pml, "query", { sql: "SELECT 1" });
  const before = await rssOf(pml.pid);
  const rows = await sqlite(pml, "query", { sql: `${ENDLESS} SELECT n FROM c`, limit: 1_000 });
  const { rows: given, more } = rows.result?.structuredContent ?? {};
  assert.deepEqual([(given as unknown as unknown[]).length, more as unknown], [1_000, true]);
  const wide = await sqlite(pml, "query", {
    sql: `${ENDLESS} SELECT hex(zeroblob(10000)) FROM c`,
    limit: 1_000,
  });
  assert.ok(isError(wide) || textOf(wide).length < 300_000, textOf(wide).slice(0, 200));
  for (
    const sql of [
      "SELECT zeroblob(60000000)",
      "SELECT hex(zeroblob(1000000000))",
      "SELECT printf('%.2000000000c', 'x')",
      `SELECT group_concat(hex(zeroblob(100000))) FROM (${ENDLESS} SELECT n FROM c)`,
    ]
  ) {
    const answer = await sqlite(pml, "query", { sql });
    assert.ok(isError(answer), sql);
    assert.ok(JSON.stringify(answer).length < 10_000, sql);
  }
  const grown = await rssOf(pml.pid) - before;
  assert.ok(grown < 80 << 20, `the gateway grew by ${grown}`);
  await endWell(ws, pml);
});

async function sqlite(pml: RawStdio, tool: string, args: Arguments): Promise<Message> {
  return await pml.callTool(`sqlite__${tool}`, { path: "a.db", ...args });
}

function isError({ result, error }: Message): boolean {
  return error !== undefined || (result?.isError as unknown) === true;
}

function assertFailed(answer: Message, like: RegExp, what = ""): void {
  assert.ok(isError(answer), `${what}: ${textOf(answer)}`);
  assert.match(textOf(answer), like, what);
}

/** Creates a database in the workspace, and one outside. */
async function furnish(ws: Workspace): Promise<void> {
  using own = new DatabaseSync(ws.file("a.db"));
  own.exec("CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT)");
  own.exec("INSERT INTO person(name) VALUES ('Ada'), ('Bob')");
  using other = new DatabaseSync(join(ws.root, "other.db"));
  other.exec(`CREATE TABLE person AS SELECT '${SECRET}' AS name`);
  await mkdir(join(ws.root, "other.db.folder"));
}

/** Plants files that resemble a database, and are none or another one. */
async function plantPaths(ws: Workspace): Promise<void> {
  const other = join(ws.root, "other.db");
  await symlink(other, ws.file("link.db"));
  await symlink(ws.root, ws.file("folder"));
  await symlink(join(ws.root, "made.db"), ws.file("dangling.db"));
  await symlink(".env", ws.file("kept.db"));
  await symlink("/dev/zero", ws.file("zero"));
  execFileSync("mkfifo", [ws.file("pipe")]);
  await mkdir(ws.file("sub"));
  const whole = await readFile(ws.file("a.db"));
  await writeFile(ws.file("cut.db"), whole.subarray(0, 1_000));
  await writeFile(ws.file("large.db"), "");
  await Deno.truncate(ws.file("large.db"), 10 * 1024 ** 3);
  for (const name of ["side.db", "super.db", "wal.db"]) await writeFile(ws.file(name), whole);
  await symlink(other, ws.file("side.db-journal"));
  await symlink(other, ws.file("wal.db-wal"));
  await writeFile(ws.file("super.db-journal"), journalOfSuper(other));
}

/** Returns a hot journal that names a super-journal: SQLite would delete that file. */
function journalOfSuper(name: string): Uint8Array {
  const magic = Buffer.from("d9d505f920a163d7", "hex");
  const header = Buffer.alloc(512);
  magic.copy(header);
  header.writeUInt32BE(1, 16);
  header.writeUInt32BE(512, 20);
  header.writeUInt32BE(4096, 24);
  const text = Buffer.from(name);
  const tail = Buffer.alloc(8);
  tail.writeUInt32BE(text.length, 0);
  tail.writeUInt32BE(text.reduce((sum, byte) => sum + byte, 0), 4);
  const lockPage = Buffer.alloc(4);
  return Buffer.concat([header, lockPage, text, tail, magic]);
}

async function outerState(ws: Workspace): Promise<readonly string[]> {
  const names = (await readdir(ws.root)).sort();
  return [...names, (await readFile(join(ws.root, "other.db"))).toString("base64")];
}

function tablesOf(ws: Workspace, name: string): readonly unknown[] {
  using db = new DatabaseSync(ws.file(name), { readOnly: true });
  return db.prepare("SELECT name FROM sqlite_schema ORDER BY name").all().map((row) => row.name);
}

function count(ws: Workspace): unknown {
  using db = new DatabaseSync(ws.file("a.db"), { readOnly: true });
  return db.prepare("SELECT count(*) AS n FROM person").get()?.n;
}
