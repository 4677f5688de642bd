import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { NETWORK_NAMES } from "../../src/config/network_names.ts";
import { waitUntil } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { call, countOf, evil, ledgerOf, sceneOf, toldCode } from "./evil_servers.ts";
import { assertServes, endWell, textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

Deno.test("a stdio server's results arrive complete", async () => {
  await using scene = await sceneOf(["good", "modern", "pages"], { era: "2026-07-28" });
  const { ws, pml } = scene;
  for (const mode of ["good", "modern"]) {
    const { result } = await call(pml, `${mode}:echo`, { a: [1, { b: "é" }] });
    assert.deepEqual(result?.structuredContent, { a: [1, { b: "é" }] });
    assert.equal(result?._meta?.["x/kept"], 1);
    const question = await call(pml, `${mode}:ask`);
    assert.equal(question.result?.inputRequests, undefined, "it cannot ask as PML does");
  }
  const { result } = await pml.callTool("schema", { tools: ["pages:echo", "pages:ask"] });
  assert.match(textOf({ result }), /"odd"/);
  assert.equal(await countOf(ws, "good", "start"), 1);
  await endWell(ws, pml);
});

Deno.test("a stdio server that fails to start reports the reason, and delays no other (SP1, SP2, SP15)", async () => {
  const modes = ["exit", "hang-init", "hang-list", "bad-list", "refuse", "exit0", "neither"];
  const missing = { command: "no-such-command-here", args: [] };
  const denied = { command: "./good.txt", args: [] };
  const garbage = { command: "./garbage", args: [] };
  const prepare = (ws: Workspace) =>
    writeFile(ws.file("garbage"), "\u007fELF no such machine\n", { mode: 0o755 });
  const tells = { ...evil("tells"), env: { TOKEN: "${TOLD_SECRET}" } };
  const uvx = { command: "uvx", args: ["git+https://127.0.0.1:1/x"] };
  const servers = Object.fromEntries(modes.map((mode) => [mode, evil(mode)]));
  const others = { missing, denied, garbage, tells, uvx };
  const allow = [
    "filesystem:*",
    ...Object.keys(others).map((name) => `${name}:*`),
    ...modes.map((mode) => `${mode}:*`),
  ];
  const pml = { version: 1, permissions: { allow }, mcpServers: { ...servers, ...others } };
  await using scene = await makeScene({
    pml,
    prepare,
    limits: { start_ms: 12_000 },
    env: { TOLD_SECRET: "told-secret-123456" },
  });
  const wanted: Record<string, RegExp> = {
    exit0: /^UPSTREAM_DOWN: .*exit code 0/,
    denied: /^UPSTREAM_DOWN: .*cannot be run/,
    garbage: /^UPSTREAM_DOWN: .*(?:cannot be run|ended with)/,
    tells: /^UPSTREAM_DOWN: .*exit code 1/,
    neither: /^UPSTREAM_PROTOCOL: .*refused the handshake/,
    exit: /^UPSTREAM_DOWN: .*exit code 1/,
    missing: /^UPSTREAM_DOWN: .*is not on PATH/,
    uvx: /^UPSTREAM_DOWN: .*names no package/,
    "hang-init": /^TIMED_OUT: /,
    "hang-list": /^TIMED_OUT: /,
    "bad-list": /^UPSTREAM_PROTOCOL: /,
    refuse: /^UPSTREAM_PROTOCOL: .*refused the handshake/,
  };
  let hasTimedOut = false;
  const asked = Object.entries(wanted).map(async ([server, like]) => {
    const answer = await call(scene.pml, `${server}:echo`);
    if (server === "hang-init") hasTimedOut = true;
    assert.match(textOf(answer), like, server);
    assert.doesNotMatch(JSON.stringify(answer), /\\u001b|told-secret/);
    const text = String(answer.result?.structuredContent?.error?.detail?.stderr ?? "");
    assert.ok(text.length <= 4_096, `${text.length} of stderr`);
    if (server === "tells") assert.match(text, /x token \S+$/);
  });
  const all = Promise.all(asked);
  all.catch(() => {}); // checked below, unless something else fails first
  await assertServes(scene.pml);
  assert.ok(!hasTimedOut, "another server waited");
  await all;
  await endWell(scene.ws, scene.pml);
});

Deno.test("the death of a stdio server in a call is reported, the call is not repeated, and the server restarts (SP3)", async () => {
  await using scene = await sceneOf(["good"]);
  const { ws, pml } = scene;
  for (const half of [false, true]) {
    const waiting = call(pml, "good:slow", { ms: 50 });
    assert.ok(await waitUntil(async () => await countOf(ws, "good", "call slow") > 0));
    const died = await call(pml, "good:die", { half });
    for (const answer of [died, await waiting]) {
      assert.equal(toldCode(answer), "UPSTREAM_DOWN");
      assert.equal(JSON.stringify(answer.result).includes('"may_have_run":true'), true);
    }
    const since = performance.now();
    assert.equal((await call(pml, "good:echo", { half })).result?.isError, undefined);
    assert.ok(performance.now() - since < 8_000, "the next call started it at once");
  }
  assert.equal(await countOf(ws, "good", "call die"), 2, "nothing was sent twice");
  assert.equal(await countOf(ws, "good", "start"), 3);
  await endWell(ws, pml);
});

Deno.test("a stdio server that does not end by itself is gone after the end, with its children (SP4, SP5)", async () => {
  for (const how of ["close", "kill"] as const) {
    // The test kills it.
    await using scene = await sceneOf(["stays"], { ownProcess: true });
    const { ws, pml } = scene;
    assert.equal((await call(pml, "stays:echo")).result?.isError, undefined);
    if (how === "close") {
      await endWell(ws, pml);
      continue;
    }
    await pml.kill("SIGKILL");
    await pml.watch.assertNothingLeft();
  }
});

Deno.test("of the output of a stdio server, only its responses count (SP8, SP9, SP12)", async () => {
  const modes = [
    "noise",
    "split",
    "twice",
    "wrong-ids",
    "requests",
    "stderr",
    "null",
    "stray",
    "partial",
  ];
  await using scene = await sceneOf(modes, { limits: { call_ms: 4_000 } });
  const { ws, pml } = scene;
  for (const mode of modes) {
    const { result } = await call(pml, `${mode}:echo`, { mode });
    if (mode === "partial") assert.match(textOf({ result }), /^TIMED_OUT/);
    else if (mode === "null") assert.match(textOf({ result }), /The tool did run.*not an object/);
    else if (mode === "stray") assert.match(textOf({ result }), /^UPSTREAM_PROTOCOL/);
    else if (mode === "twice") assert.equal(textOf({ result }), "first");
    else assert.deepEqual(result?.structuredContent, { mode }, mode);
  }
  const answers = (await ledgerOf(ws, "requests")).filter((line) => line.startsWith("answer"));
  assert.equal(answers.length, 4);
  const text = answers.join("\n");
  assert.match(text, /"uri":"file:\/\/.*"name":"workspace"/);
  assert.match(text, /with its model/);
  assert.match(text, /tools\/call on: /);
  await endWell(ws, pml);
});

Deno.test("a hundred first calls start one server, and each gets its own answer (SP10)", async () => {
  await using scene = await sceneOf(["good"]);
  const { ws, pml } = scene;
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, at) => call(pml, "good:echo", { at })),
  );
  answers.forEach(({ result }, at) => assert.deepEqual(result?.structuredContent, { at }));
  assert.equal(await countOf(ws, "good", "start"), 1);
  await endWell(ws, pml);
});

Deno.test("a cancelled call is cancelled at the server, and progress extends a running call (SP11)", async () => {
  await using scene = await sceneOf(["good"], { limits: { call_ms: 2_000 } });
  const { ws, pml } = scene;
  const { id, answer } = pml.begin("tools/call", {
    name: "call",
    arguments: { tool: "good:slow", arguments: {} },
  });
  answer.catch(() => {}); // a cancelled call is never answered
  assert.ok(await waitUntil(async () => await countOf(ws, "good", "call slow") === 1));
  await pml.notify("notifications/cancelled", { requestId: id });
  assert.ok(await waitUntil(async () => await countOf(ws, "good", "cancelled") === 1));
  const { result } = await call(pml, "good:slow", { steps: 30, ms: 100 });
  assert.equal(
    textOf({ result }),
    "slow done",
    "three seconds of progress pass a deadline of two",
  );
  const late = await call(pml, "good:slow", { steps: 1, ms: 20_000 });
  assert.equal(toldCode(late), "TIMED_OUT");
  await assertServes(pml);
  await scene.pml.close();
});

Deno.test("a stdio server gets only the configured part of PML's environment (SX4)", async () => {
  const definition = { ...evil("good"), env: { GIVEN: "x-${FROM_OUTSIDE}", PLAIN: "p" } };
  const pml = {
    version: 1,
    permissions: { allow: ["filesystem:*", "good:*"] },
    mcpServers: { good: definition },
  };
  const env = { FROM_OUTSIDE: "outside-value-1", PML_API_KEY: "key-123456", OTHER_SECRET: "s-1" };
  // In the process of the test, PML's variables are not those of its process.
  await using scene = await makeScene({ ownProcess: true, pml, env });
  const { result } = await call(scene.pml, "good:env");
  const seen = JSON.parse(textOf({ result }));
  assert.equal(seen.GIVEN, "x-outside-value-1");
  assert.equal(seen.PLAIN, "p");
  const base = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "PML_RUN",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    // Every server gets the variables of a company's network.
    ...NETWORK_NAMES,
  ];
  const others = Object.keys(seen).filter((name) => !base.includes(name));
  assert.deepEqual(others.sort(), ["GIVEN", "PLAIN"]);
  await endWell(scene.ws, scene.pml);
});

Deno.test("PML asks again about a server whose tools change, and notifies the client", async () => {
  await using scene = await sceneOf(["changes"]);
  const { ws, pml } = scene;
  await call(pml, "changes:echo");
  const later = async () => (await call(pml, "changes:later")).error === undefined;
  assert.ok(await waitUntil(later), "the new tool can be called");
  await endWell(ws, pml);
});

Deno.test("a result of 20 MB arrives complete, and one beyond the limit is refused", async () => {
  await using scene = await sceneOf(["big"], {
    limits: { line_bytes: 30_000_000, inline_bytes: 0 },
  });
  const { ws, pml } = scene;
  const { result } = await call(pml, "big:echo", { size: 20_000_000 });
  assert.equal(textOf({ result }).length, 20_000_000);
  const text = toldCode(await call(pml, "big:echo", { size: 31_000_000 }));
  assert.equal(text, "UPSTREAM_PROTOCOL");
  await endWell(ws, pml);
});
