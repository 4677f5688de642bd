/**
 * PML is killed while each built-in and a module are in the middle of a call: no process or file is
 * left.
 *
 * @module
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdir, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { waitUntil } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { assertNoTempFiles, assertServes, journalOf, ofKind } from "./oracles.ts";
import { makeScene, SLOW } from "./stage.ts";

const ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) ";

/** Calls that run until they are ended. */
const UNDER_WAY: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  shell__exec: {
    command: "sh",
    args: ["-c", "echo > begun; (setsid sh -c 'sleep 300; sleep 301' &); sleep 302 & sleep 303"],
  },
  git__add: { paths: ["large"] },
  sqlite__execute: {
    path: "a.db",
    sql: `${ENDLESS} INSERT INTO t SELECT count(*) FROM c`,
  },
  slow__spin: {},
  slow__wait: { path: "never" },
};

Deno.test("no process is left when PML is killed while every built-in runs a call (P6)", async () => {
  await using scene = await makeScene({
    // The test kills it.
    ownProcess: true,
    era: "2026-07-28",
    ...SLOW,
    pml: PML,
    prepare: furnish,
  });
  const { ws, pml } = scene;
  await assertServes(pml);
  for (const [name, args] of Object.entries(UNDER_WAY)) {
    pml.begin("tools/call", { name, arguments: args }).answer.catch(() => {}); // it never arrives
  }
  await atWork(ws, pml);
  const stopped = await childrenOf(pml);
  assert.ok(stopped.length >= 5, `${stopped.length} children`);
  // A stopped process cannot react, not even to its closed input.
  for (const { pid } of stopped.slice(0, 2)) Deno.kill(pid, "SIGSTOP");
  await pml.kill("SIGKILL");
  await pml.watch.assertNothingLeft();
  const swept = async () => (await readdir(join(ws.home, "sandbox"))).length === 0;
  assert.ok(await waitUntil(swept), "private folders are left");
  await assertNoTempFiles(ws);
  await ws.assertCanaries();
  const lines = await journalOf(ws);
  assert.equal(ofKind(lines, "start").length, 1 + Object.keys(UNDER_WAY).length);
  using db = new DatabaseSync(ws.file("a.db"));
  assert.equal(db.prepare("SELECT count(*) AS n FROM t").get()?.n, 0);
});

const PML = {
  ...SLOW.pml,
  permissions: { allow: [...SLOW.pml.permissions.allow, "shell:*", "git:*", "sqlite:*"] },
};

async function furnish(ws: Workspace): Promise<void> {
  execFileSync("git", ["init", "-q", ws.path]);
  await writeFile(ws.file("large"), "");
  await truncate(ws.file("large"), 20 * 1024 ** 3);
  using db = new DatabaseSync(ws.file("a.db"));
  db.exec("CREATE TABLE t(a)");
}

/** Waits until each of the calls is in its waiting state. */
async function atWork(ws: Workspace, pml: RawStdio): Promise<void> {
  const there = async () => {
    const commands = (await pml.watch.living()).map(({ command }) => command);
    return (await readdir(ws.path)).includes("begun") &&
      ["sleep 300", "sleep 302", "sleep 303"].every((one) => commands.includes(one)) &&
      commands.some((command) => /update-index/.test(command)) &&
      ofKind(await journalOf(ws), "start").length > Object.keys(UNDER_WAY).length &&
      (await childrenOf(pml)).length >= 5;
  };
  assert.ok(
    await waitUntil(there),
    (await pml.watch.living()).map(({ command }) => command.slice(-200)).join("\n"),
  );
}

async function childrenOf(pml: RawStdio) {
  const tree = await pml.watch.remember(pml.pid);
  return tree.filter(({ command }) => command.includes("--unstable-worker-options"));
}
