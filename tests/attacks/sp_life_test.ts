/**
 * The life of stdio servers: cancelled, frozen, dying repeatedly, killed, unused, redefined.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { treeOf } from "../kit/procwatch.ts";
import { until, waitUntil } from "../kit/wait.ts";
import { call, countOf, evil, lives, pidsOf, sceneOf, toldCode } from "./evil_servers.ts";
import { assertServes, endWell, textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

Deno.test("a cancelled call frees its slot, and its late result goes nowhere (SP11)", async () => {
  await using scene = await sceneOf(["good"], {
    era: "2025-11-25",
    limits: { concurrent_calls: 1 },
  });
  const { ws, pml } = scene;
  const { id, answer } = pml.begin("tools/call", {
    name: "call",
    // It ends when the test allows it, so no slow machine ends it sooner.
    arguments: { tool: "good:slow", arguments: { ms: 20, until: ws.file("let-end") } },
  });
  answer.catch(() => {}); // a cancelled call is never answered
  assert.ok(await waitUntil(async () => await countOf(ws, "good", "call slow") === 1));
  await pml.notify("notifications/cancelled", { requestId: id });
  const { result } = await call(pml, "good:echo", { after: "cancel" });
  assert.deepEqual(result?.structuredContent, { after: "cancel" });
  assert.equal(await countOf(ws, "good", "done slow"), 0, "it waited for the cancelled call");
  assert.equal(await countOf(ws, "good", "cancelled"), 1);
  await writeFile(ws.file("let-end"), "");
  assert.ok(await waitUntil(async () => await countOf(ws, "good", "done slow") === 1));
  assert.equal((await call(pml, "good:echo")).result?.isError, undefined);
  assert.equal(await countOf(ws, "good", "start"), 1, "one that answers is kept");
  assert.ok(!pml.messages.some((message) => message.id === id), "it was answered");
  assert.equal((await pml.close()).code, 0);
  await pml.watch.assertNothingLeft();
});

Deno.test("a server that no longer answers is replaced, and ended (SP11)", async () => {
  await using scene = await sceneOf(["good"], { limits: { call_ms: 1_200 } });
  const { ws, pml } = scene;
  assert.equal((await call(pml, "good:echo")).result?.isError, undefined);
  assert.equal(toldCode(await call(pml, "good:freeze")), "TIMED_OUT");
  const served = async () => (await call(pml, "good:echo")).result?.isError === undefined;
  assert.ok(await waitUntil(served), "it is served again");
  const [frozen = 0, fresh = 0, ...more] = await pidsOf(ws, "good");
  assert.deepEqual(more, []);
  assert.ok(await waitUntil(async () => !await lives(frozen)), "the frozen one goes on");
  assert.ok(await lives(fresh));
  await endWell(ws, pml);
});

Deno.test("a server that dies repeatedly has to wait, and no other does (SP7)", async () => {
  await using scene = await sceneOf(["good", "other"]);
  const { ws, pml } = scene;
  const die = async () => (await call(pml, "good:die")).result;
  const waits: number[] = [];
  for (const round of [1, 2]) {
    let refused = await die();
    while (!/times in a row/.test(textOf({ result: refused }))) refused = await die();
    assert.match(textOf({ result: refused }), /^UPSTREAM_DOWN: Cannot start "good": it ended \d/);
    const detail = refused?.structuredContent?.error?.detail;
    const ms = Number(detail?.retry_after_ms);
    assert.ok(ms > 0 && ms <= 500 * round, `${ms} ms in round ${round}`);
    waits.push(ms);
    const starts = await countOf(ws, "good", "start");
    const all = await Promise.all(Array.from({ length: 20 }, die));
    assert.ok(all.every((result) => /times in a row/.test(textOf({ result }))));
    assert.equal(await countOf(ws, "good", "start"), starts, "nothing was started meanwhile");
    assert.equal((await call(pml, "other:echo")).result?.isError, undefined);
    // The attempt after the wait.
    assert.ok(await waitUntil(async () => await dies()));
    assert.equal(await countOf(ws, "good", "start"), starts + 1, "one is tried, and no more");
  }
  const good = async () => (await call(pml, "good:echo")).result?.isError === undefined;
  assert.ok(await waitUntil(good), "a good answer ends the waiting");
  assert.equal(toldCode(await call(pml, "good:die")), "UPSTREAM_DOWN");
  assert.ok(await good());
  await endWell(ws, pml);

  async function dies(): Promise<boolean> {
    return /ended with exit code 3/.test(textOf({ result: await die() }));
  }
});

Deno.test("a killed server is started again at once, even if another process keeps its pipes open (SP3, SP5)", async () => {
  // The test measures its time.
  await using scene = await sceneOf(["holds"], { ownProcess: true });
  const { ws, pml } = scene;
  await call(pml, "holds:echo");
  for (const at of [0, 1]) {
    const pid = (await pidsOf(ws, "holds"))[at] ?? 0;
    await pml.watch.remember(pid);
    assert.ok(await waitUntil(async () => (await treeOf(pid)).length >= 3));
    const waiting = call(pml, "holds:slow", {});
    assert.ok(await waitUntil(async () => await countOf(ws, "holds", "call slow") === at + 1));
    const since = performance.now();
    Deno.kill(pid, "SIGKILL");
    assert.equal(toldCode(await waiting), "UPSTREAM_DOWN");
    assert.equal((await call(pml, "holds:echo")).result?.isError, undefined);
    const ms = performance.now() - since;
    assert.ok(ms < 8_000, `served after ${ms} ms`);
  }
  assert.equal(await countOf(ws, "holds", "call slow"), 2, "nothing was sent twice");
  await endWell(ws, pml);
});

/** Deno never closes its output, so this server runs in node: a call closes it. */
const MUTE = `
const { appendFileSync, closeSync } = require("node:fs");
appendFileSync("mute.ledger", "start " + process.pid + "\\n");
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "tools/call" && params.arguments.mute) closeSync(1);
  else if (id !== undefined) {
    const tools = [{ name: "tell", inputSchema: { type: "object" } }];
    const result = { protocolVersion: "2025-11-25", capabilities: {}, tools, content: [] };
    process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
  }
});
setInterval(() => {}, 1_000);`;

Deno.test("a server that closes its output is down, though its process runs (SP3)", async () => {
  const pml = {
    version: 1,
    permissions: { allow: ["filesystem:*", "mute:*"] },
    mcpServers: { mute: { command: "node", args: ["mute.cjs"] } },
  };
  await using scene = await makeScene({ pml, files: { "mute.cjs": MUTE } });
  assert.equal(toldCode(await call(scene.pml, "mute:tell", { mute: true })), "UPSTREAM_DOWN");
  assert.equal((await call(scene.pml, "mute:tell")).result?.isError, undefined);
  const [mute = 0, ...more] = await pidsOf(scene.ws, "mute");
  assert.equal(more.length, 1);
  assert.ok(!await lives(mute), "it goes on");
  await endWell(scene.ws, scene.pml);
});

Deno.test("a server that no longer reads delays neither calls nor the end (SP4)", async () => {
  await using scene = await sceneOf(["deaf", "good"], { limits: { call_ms: 600 } });
  const { ws, pml } = scene;
  // On a busy machine, starting the servers below may take longer than this deadline.
  for (
    const [id, args] of [["good:echo", {}], ["filesystem:read_file", { path: "good.txt" }]] as const
  ) {
    await until(async () => (await call(pml, id, { ...args })).result?.isError === undefined);
  }
  const text = "x".repeat(2_000_000);
  const asked = call(pml, "deaf:echo", { text });
  assert.equal((await call(pml, "good:echo")).result?.isError, undefined);
  assert.equal(toldCode(await asked), "TIMED_OUT");
  await endWell(ws, pml);
});

Deno.test("an unused server ends after its idle time, with any number of others (SP6)", async () => {
  const modes = ["good", "pages", "noise", "twice"];
  await using scene = await sceneOf(modes, { limits: { idle_children: 0, idle_ms: 3_000 } });
  const { ws, pml } = scene;
  for (const mode of [...modes, ...modes]) await call(pml, `${mode}:echo`);
  for (const mode of modes) assert.equal(await countOf(ws, mode, "start"), 1, mode);
  const [first = 0] = await pidsOf(ws, "good");
  assert.ok(await waitUntil(async () => !await lives(first)), "it was never ended");
  assert.equal(await countOf(ws, "good", "eof"), 1, "it was let end by itself");
  assert.equal((await call(pml, "good:echo")).result?.isError, undefined);
  assert.equal(await countOf(ws, "good", "start"), 2);
  await endWell(ws, pml);
});

Deno.test("a server with a new definition replaces the old one", async () => {
  const definition = (word: string) => ({
    version: 1,
    permissions: { allow: ["filesystem:*", "good:*"] },
    mcpServers: { good: evil("good", word) },
  });
  await using scene = await sceneOf(["good"], { pml: definition("old") });
  const { ws, pml } = scene;
  const given = async () => textOf(await call(pml, "good:args"));
  assert.equal(await given(), '["old"]');
  const [old = 0] = await pidsOf(ws, "good");
  await writeFile(ws.file(".pml.json"), JSON.stringify(definition("new")));
  assert.ok(await waitUntil(async () => await given() === '["new"]'), "the change never came");
  assert.ok(await waitUntil(async () => !await lives(old)), "the old one goes on");
  await assertServes(pml);
  await endWell(ws, pml);
});
