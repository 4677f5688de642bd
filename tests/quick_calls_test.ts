/**
 * Calls that run at once obey what the gates do: rules, schemas, approvals, trust, values and tool
 * sets, as they are at the moment of each call.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { textOf } from "./attacks/oracles.ts";
import { ERAS } from "./kit/json_rpc.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";
import {
  bare,
  bothSay,
  codeIn,
  type QuickScene,
  quickScene,
  scriptServer,
  warmUp,
  writeConfig,
} from "./quick_scene.ts";

/** Until when a change is noticed. */
const SOON_MS = 20_000;
/** How long the pins are not looked at again, and a little more. */
const PINS_MS = 250;

/** Asserts that a call says the same however it comes, and never ran at once. */
async function assertSame(
  { call, gated, ways }: QuickScene,
  ...of: Parameters<QuickScene["call"]>
) {
  const before = (await ways()).split("+").length;
  const answer = await call(...of);
  assert.equal((await ways()).split("+").length, before, "it ran at once");
  assert.deepEqual(bare(answer), bare(await gated(...of)));
  return codeIn(answer);
}

for (const era of ERAS) {
  Deno.test(`A rule that comes or goes is obeyed by the very next call, on ${era}`, async () => {
    await using scene = await quickScene(era);
    const { ws, quick, ledger } = scene;
    await writeConfig(ws, { permissions: { deny: ["s:run"] } });
    await bothSay(scene, (answer) => codeIn(answer) === "PERMISSION_DENIED");
    await writeConfig(ws, { permissions: { ask: ["s:run"] } });
    await bothSay(scene, (answer) => codeIn(answer) === "APPROVAL_REQUIRED");
    const before = (await ledger()).length;
    assert.equal(await assertSame(scene), "APPROVAL_REQUIRED");
    assert.equal((await ledger()).length, before, "nothing was sent");
    await writeConfig(ws, {});
    await until(async () => textOf(await scene.call()) === "done");
    await warmUp(scene);
    assert.equal(textOf(await quick()), "done");
    await writeConfig(ws, { limits: 5 });
    await bothSay(scene, (answer) => codeIn(answer) === "CONFIG_INVALID");
  });

  Deno.test(`A rule with a condition is asked about each call, on ${era}`, async () => {
    await using scene = await quickScene(era, {
      rules: { allow: ["s:run(path=a*)"], deny: ["s:run(path=ab)"] },
      warm: [["s__run", { path: "a1" }]],
    });
    await scene.quick({ path: "a2" });
    assert.equal(await assertSame(scene, { path: "b" }), "APPROVAL_REQUIRED");
    assert.equal(await assertSame(scene, {}), "PERMISSION_DENIED");
    assert.equal(await assertSame(scene, { path: "ab" }), "PERMISSION_DENIED");
    assert.equal(await assertSame(scene, { path: ["a1"] }), "PERMISSION_DENIED");
    await scene.quick({ path: "a3" });
    assert.deepEqual((await scene.ledger()).filter((line) => !/"a\d"/.test(line)).length, 1);
  });

  Deno.test(`arguments that do not match the schema reach the server as they came, on ${era}`, async () => {
    await using scene = await quickScene(era, { warm: [["s__strict", { n: 1 }]] });
    for (const args of [{}, { n: "1" }, { n: null }, { n: 1, more: 2 }]) {
      const seen = (await scene.ledger()).length;
      assert.equal(textOf(await scene.quick(args, "s__strict")), "done");
      assert.equal(textOf(await scene.gated(args, "s__strict")), "done");
      const sent = (await scene.ledger()).slice(seen);
      assert.equal(sent.length, 2);
      for (const line of sent) assert.ok(line.includes(JSON.stringify(args)), line);
    }
    const { pml, ways } = scene;
    const seen = await ways();
    for (const odd of [{ arguments: [] }, { arguments: null }, { task: {} }, { more: 1 }]) {
      const params = { name: "s__strict", arguments: { n: "x" }, ...odd };
      const answer = await pml.request("tools/call", params);
      const gates = await pml.request("tools/call", { ...params, _meta: { "x/y": 1 } });
      assert.deepEqual(bare(answer), bare(gates));
    }
    const call = { tool: "s:strict", arguments: { n: 1 } };
    const wrong = { name: "call", arguments: { ...call, more: 1 } };
    const before = (await scene.ledger()).length;
    assert.equal(codeIn(await pml.request("tools/call", wrong)), "BAD_ARGUMENTS");
    const more = (await ways()).slice(seen.length);
    assert.equal((await scene.ledger()).length, before, "nothing was sent");
    await pml.request("tools/call", { name: "call", arguments: call });
    assert.equal(await ways(), `${seen}${more}+`, "the meta-tool calls at once, too");
  });

  Deno.test(`A tool that its server describes otherwise asks again, on ${era}`, async () => {
    await using scene = await quickScene(era);
    await scene.quick({ steps: [{ describe: "in other words" }] });
    await until(async () => codeIn(await scene.call()) === "APPROVAL_STALE", SOON_MS);
    assert.equal(await assertSame(scene), "APPROVAL_STALE");
  });
}

Deno.test("What a client says of itself in a request holds for that request", async () => {
  await using scene = await quickScene("2026-07-28", {
    config: { toolsets: { chosen: ["s:other"] }, client_toolsets: { small: "chosen" } },
  });
  const { pml, ways, ledger, quick } = scene;
  const call = (said: string, value: object) => {
    const _meta = { [`io.modelcontextprotocol/${said}`]: value };
    return pml.request("tools/call", { name: "s__run", arguments: {}, _meta });
  };
  await quick();
  const small = await call("clientInfo", { name: "small", version: "1" });
  assert.equal(codeIn(small), "PERMISSION_DENIED");
  const before = await ways();
  assert.equal(textOf(await call("clientInfo", { name: "large", version: "1" })), "done");
  assert.equal((await ways()).slice(before.length), "+");
  // A server is told what the client can do when it is greeted, so it is started again.
  assert.equal(textOf(await call("clientCapabilities", { elicitation: { form: {} } })), "done");
  assert.equal((await ledger()).filter((line) => line.startsWith("start")).length, 2);
});

Deno.test("A tool that is described otherwise while a call passes the gates asks again", async () => {
  await using scene = await quickScene();
  // PML lists the tools again before the call is over.
  await scene.gated({ steps: [{ describe: "in other words" }, { wait: 700 }] });
  assert.equal(await assertSame(scene), "APPROVAL_STALE");
});

Deno.test("Pins that another process changed are asked about within 200 ms", async () => {
  for (const folder of ["workspace", "home"]) {
    await using scene = await quickScene();
    const { ws } = scene;
    const pins = join(ws.home, "pins");
    const pathOf = async () => {
      const [name = ""] = (await readdir(pins).catch(() => [])).filter((one) =>
        one.endsWith(".json")
      );
      return folder === "home" ? join(pins, name) : ws.file("pml.lock");
    };
    // A new pin is written while its call runs.
    await until(async () => /"run"/.test(await readFile(await pathOf(), "utf8").catch(() => "")));
    const path = await pathOf();
    const text = await readFile(path, "utf8");
    const changed = text.replace(/("run":[^}]*?sha256-)(\w)/, (_, head, one) => {
      return `${head}${one === "0" ? 1 : 0}`;
    });
    assert.notEqual(changed, text);
    // PML wrote it just now, and the time of a file has some milliseconds.
    await delay(50);
    await writeFile(path, changed);
    await delay(PINS_MS);
    assert.equal(codeIn(await scene.call()), "APPROVAL_STALE", folder);
    assert.equal(await assertSame(scene), "APPROVAL_STALE", folder);
  }
});

Deno.test("A server whose definition changes, or that is switched off, is not called at once", async () => {
  await using scene = await quickScene();
  const { ws, call } = scene;
  const write = (mcpServers: object) =>
    writeFile(
      ws.file(".pml.json"),
      JSON.stringify({ version: 1, permissions: { allow: ["s:*"] }, mcpServers }),
    );
  await write({ s: scriptServer({ env: { WORD: "two" } }) });
  await until(async () => {
    await call();
    return (await scene.ledger()).some((line) => /^start \d+ two$/.test(line));
  });
  await warmUp(scene);
  await write({ s: scriptServer({ tools: { run: { disabled: true } } }) });
  await until(async () => codeIn(await call()) === "UNKNOWN_TOOL");
  assert.equal(await assertSame(scene), "UNKNOWN_TOOL");
  const fixed = { run: { rename: "go", arguments: { owner: "acme" } } };
  await write({ s: scriptServer({ tools: fixed }) });
  await until(async () => codeIn(await call({}, "s__go")) === undefined);
  const before = await scene.ways();
  for (let at = 0; at < 3; at++) await call({ x: at }, "s__go");
  assert.doesNotMatch((await scene.ways()).slice(before.length), /\+/);
  assert.equal((await scene.ledger()).at(-1), 'call run {"x":2,"owner":"acme"}');
  await write({ s: { ...scriptServer(), command: "/nowhere/deno" } });
  await until(async () => codeIn(await call()) !== undefined);
  assert.equal(await assertSame(scene), "UPSTREAM_DOWN");
  await write({});
  await until(async () => codeIn(await call()) === "UNKNOWN_TOOL");
  assert.equal(await assertSame(scene), "UNKNOWN_TOOL");
});

Deno.test("A key that changes has the next call reach another process", async () => {
  await using scene = await quickScene("2025-11-25", {
    server: { env: { WORD: "${SOME_WORD}" } },
    prepare: async (ws) => {
      await runPml(ws, ["key", "set", "SOME_WORD", "--stdin"], { stdin: "one" });
    },
  });
  const { ws, ledger, quick, call } = scene;
  await quick();
  await runPml(ws, ["key", "set", "SOME_WORD", "--stdin"], { stdin: "two" });
  await until(async () => {
    await call();
    return (await ledger()).some((line) => /^start \d+ two$/.test(line));
  });
  await warmUp(scene);
  await runPml(ws, ["key", "remove", "SOME_WORD"]);
  await until(async () => codeIn(await call()) !== undefined);
  await assertSame(scene);
});

Deno.test("A workspace file that nobody trusts any more runs nothing at once", async () => {
  const prepare = async (ws: Workspace) => {
    const typed = [[/Trust exactly this\?.*\[N\] no/s, "y"]] as const;
    const ran = await runPmlOnTerminal(ws, ["trust"], { typed });
    assert.equal(ran.code, 0, ran.stdout);
  };
  await using scene = await quickScene("2025-11-25", { trusted: false, prepare });
  const { ws, call, quick, ledger } = scene;
  await quick();
  const text = await readFile(ws.file(".pml.json"), "utf8");
  await writeFile(ws.file(".pml.json"), text.replace('"s:*"', '"s:*", "other:*"'));
  await until(async () => codeIn(await call()) === "WORKSPACE_UNTRUSTED");
  const before = (await ledger()).length;
  assert.equal(await assertSame(scene), "WORKSPACE_UNTRUSTED");
  assert.equal((await ledger()).length, before, "nothing was sent");
});
