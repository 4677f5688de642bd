/**
 * Limits of calls, their counts, the end of their servers, and calls without a journal.
 *
 * @module
 */

import assert from "node:assert/strict";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { textOf } from "./attacks/oracles.ts";
import type { Json, Message } from "./kit/json_rpc.ts";
import { runPml } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import {
  answers,
  bare,
  bothSay,
  codeIn,
  scriptScene,
  warmUp,
  writeConfig,
} from "./script_scene.ts";

/** Longer than the interval at which the journal checks that its folder exists. */
const PLACE_MS = 150;
const WHO = {
  ask: { method: "elicitation/create", params: { message: "Who?", requestedSchema: {} } },
} as const;
/** The maximum number of requests that wait for their clients. */
const WAITING_MAX = 32;

for (const journal of ["required", "best_effort"]) {
  Deno.test(`no call reaches its server without a journal, and calls run again when it is back (${journal})`, async () => {
    await using scene = await scriptScene("2025-11-25", { config: { journal } });
    const { ws, callWithMeta, call, ledger } = scene;
    const folder = join(ws.home, "journal");
    assert.equal(textOf(await call()), "done");
    const sent = (await ledger()).length;
    await rename(folder, `${folder}.away`);
    await writeFile(folder, "");
    await delay(PLACE_MS);
    const first = await call();
    assert.equal(codeIn(first), "AUDIT_UNAVAILABLE", textOf(first));
    assert.deepEqual(bare(await callWithMeta()), bare(await call()));
    assert.equal((await ledger()).length, sent, "nothing was sent");
    await rm(folder);
    for (let at = 0; at < 2; at++) assert.equal(textOf(await call()), "done");
    assert.equal(scene.pml.stderr.split("journal is written again").length, 2);
    assert.equal((await scene.pml.close()).code, 0);
    assert.equal((await runPml(ws, ["audit", "verify"])).code, 0);
  });
}

Deno.test("a call may have run if its server dies, and the next call starts the server again", async () => {
  await using scene = await scriptScene();
  const died = await scene.call({ steps: [{ exit: 3 }], silent: true });
  const { detail } = (died.result?.structuredContent as Json | undefined)?.error ?? {};
  assert.deepEqual([codeIn(died), detail?.may_have_run], ["UPSTREAM_DOWN", true]);
  assert.match(textOf(died), /may have run/);
  assert.deepEqual(
    bare(died),
    bare(await scene.callWithMeta({ steps: [{ exit: 3 }], silent: true })),
  );
  assert.equal(textOf(await scene.call()), "done");
  await warmUp(scene);
  // Two calls fail with it.
  const [one, other] = await Promise.all([
    scene.call({ silent: true, a: 1 }),
    scene.call({ silent: true, steps: [{ exit: 0 }] }),
  ]);
  assert.deepEqual([codeIn(one), codeIn(other)], ["UPSTREAM_DOWN", "UPSTREAM_DOWN"]);
  await warmUp(scene);
  const garbage = [
    "",
    "garbage",
    "[]",
    "{}",
    '{"id":$ID}',
    '{"jsonrpc":"2.0","id":"x","result":{}}',
  ];
  const steps = garbage.map((write) => ({ write }));
  const first = await scene.call({ steps });
  assert.equal(codeIn(first), "UPSTREAM_PROTOCOL");
  assert.deepEqual(bare(await scene.callWithMeta({ steps })), bare(first));
});

Deno.test("calls beyond the limit wait for their turn, or are refused", async () => {
  await using scene = await scriptScene("2025-11-25", {
    limits: { concurrent_calls: 1, queued_calls: 1 },
  });
  const { ws, pml } = scene;
  const held = { steps: [{ until: ws.file("go") }] };
  const first = pml.begin("tools/call", { name: "s__run", arguments: held });
  const second = pml.begin("tools/call", { name: "s__run", arguments: { second: true } });
  const third = await scene.call();
  assert.equal(codeIn(third), "OVERLOADED");
  assert.deepEqual(bare(await scene.callWithMeta()), bare(third));
  assert.equal((await scene.ledger()).at(-1), "call run {}", "the second one waits");
  await writeFile(ws.file("go"), "");
  for (const { answer } of [first, second]) assert.equal(textOf(await answer), "done");
  assert.equal(textOf(await scene.call()), "done");
});

Deno.test("the number of calls that wait for an answer of their clients is limited", async () => {
  await using scene = await scriptScene("2026-07-28", {
    capabilities: { elicitation: { form: {} } },
  });
  const ask = () => scene.call({ steps: [WHO] });
  const all: Message[] = [];
  // PML assigns a server's question to the server's latest call.
  while (all.length < WAITING_MAX) all.push(await ask());
  assert.ok(all.every(({ result }) => (result?.resultType as unknown) === "input_required"));
  const refused = await scene.call({ steps: [WHO] });
  assert.equal(codeIn(refused), "OVERLOADED");
  assert.deepEqual(bare(await scene.callWithMeta({ steps: [WHO] })), bare(refused));
  const again = (requestState: unknown, more: object) =>
    scene.pml.request("tools/call", { name: "s__run", arguments: { ...more }, requestState });
  const [one, other] = all;
  const wrong = await again(one?.result?.requestState, { other: 1 });
  assert.match(JSON.stringify(wrong), /another request/);
  const nobody = await again("run-of-nobody", { steps: [WHO] });
  assert.match(JSON.stringify(nobody), /answer is over/);
  // If the client sends no answer, the call continues without one.
  assert.match(
    textOf(await again(other?.result?.requestState, { steps: [WHO] })),
    /without an answer/,
  );
  const twice = await again(other?.result?.requestState, { steps: [WHO] });
  assert.match(JSON.stringify(twice), /answer is over/);
});

Deno.test("tool sets and names without server prefix apply to each call", async () => {
  const gateway = { prefix: false, meta_tools: [], tools_exposure: "full_proxy" };
  const sets = (tools: readonly string[]) => ({
    gateway,
    toolsets: { chosen: tools },
    client_toolsets: { "pml-test": "chosen" },
  });
  await using scene = await scriptScene("2025-11-25", {
    config: sets(["s:run", "s:other"]),
    warm: [["run", {}]],
  });
  const { ws } = scene;
  for (const tool of ["run", "s__run"]) assert.equal(textOf(await scene.call({}, tool)), "done");
  assert.equal(codeIn(await scene.call({}, "strict")), "PERMISSION_DENIED");
  await writeConfig(ws, sets(["s:other"]));
  await bothSay(scene, (answer) => codeIn(answer) === "PERMISSION_DENIED");
  assert.equal(codeIn(await scene.call({}, "run")), "PERMISSION_DENIED");
  assert.equal(codeIn(await scene.call({}, "s__run")), "PERMISSION_DENIED");
});

Deno.test("calls with and without a _meta are counted and remembered alike", async () => {
  const counts: string[] = [];
  for (const way of ["call", "callWithMeta"] as const) {
    await using scene = await scriptScene("2026-07-28", {
      warm: [["s__run", {}], ["s__shaped", {}]],
    });
    const metrics = async () => {
      const { result } = await scene.pml.request("resources/read", { uri: "pml://metrics" });
      const [{ text }] = result?.contents as unknown as [{ text: string }];
      const { calls: { count, errors, failed }, tokens } = JSON.parse(text);
      return { count, errors, failed, tokens: tokens["tools/call"] };
    };
    const before = await metrics();
    await scene[way]();
    await scene[way](answers('"error":{"code":1,"message":"m"}'));
    await scene[way](answers('"result":{"content":[{"type":"text","text":"x"}],"isError":true}'));
    await scene[way](answers('"result":5'));
    await scene[way](answers('"result":{"content":[],"structuredContent":{"n":1}}'), "s__shaped");
    await scene[way](answers('"result":{"content":[]}'), "s__shaped");
    const after = await metrics();
    assert.equal((await scene.pml.close()).code, 0);
    const { stdout } = await runPml(scene.ws, ["memory", "show", "--json"]);
    const tools = JSON.parse(stdout).tools as readonly Json[];
    const ended = [...Deno.readDirSync(join(scene.ws.home, "memory"))].length === 1;
    counts.push(JSON.stringify({
      ...{ ended, failed: after.failed },
      count: after.count - before.count,
      errors: after.errors - before.errors,
      tokens: [
        after.tokens.count - before.tokens.count,
        after.tokens.total - before.tokens.total,
      ],
      tools: tools.map(({ id, errors, result }) => ({ id, errors, result })),
    }));
  }
  assert.equal(counts[0], counts[1]);
});

Deno.test("a server is ended when no call uses it any longer, and not before", async () => {
  await using scene = await scriptScene("2025-11-25", { limits: { idle_ms: 1_000 } });
  const { pml, call, ledger } = scene;
  const [, pid = ""] = /^start (\d+)/.exec((await ledger())[0] ?? "") ?? [];
  const isThere = async () => (await pml.watch.living()).some((one) => String(one.pid) === pid);
  await delay(600);
  // The timer of the earlier calls expires during this call.
  await call({ steps: [{ wait: 1_500 }] });
  const since = performance.now();
  assert.ok(await isThere());
  await delay(600);
  await call();
  const last = performance.now();
  await until(async () => !await isThere());
  assert.ok(performance.now() - since > 1_500, "it was ended too soon");
  assert.ok(performance.now() - last < 10_000);
  assert.equal(textOf(await call()), "done");
  assert.equal((await ledger()).filter((line) => line.startsWith("start")).length, 2);
});
