/**
 * Each call obeys the current rules, schemas, approvals, trust, values and tool sets, however many
 * calls of its tool ran before.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { textOf } from "./attacks/oracles.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";
import {
  bare,
  bothSay,
  codeIn,
  type ScriptScene,
  scriptScene,
  scriptServer,
  writeConfig,
} from "./script_scene.ts";

/** The time limit within which a change must be noticed. */
const SOON_MS = 20_000;
/** Longer than the interval between two checks of the pins. */
const PINS_MS = 250;

/** Asserts that a call is answered the same each time, also with a `_meta`. Returns its code. */
async function assertSame(
  { call, callWithMeta }: ScriptScene,
  ...of: Parameters<ScriptScene["call"]>
) {
  const answer = await call(...of);
  assert.deepEqual(bare(await call(...of)), bare(answer));
  assert.deepEqual(bare(await callWithMeta(...of)), bare(answer));
  return codeIn(answer);
}

Deno.test("the next call obeys a rule that was added or removed", async () => {
  await using scene = await scriptScene("2025-11-25");
  const { ws, call, ledger } = scene;
  await writeConfig(ws, { permissions: { deny: ["s:run"] } });
  await bothSay(scene, (answer) => codeIn(answer) === "PERMISSION_DENIED");
  await writeConfig(ws, { permissions: { ask: ["s:run"] } });
  await bothSay(scene, (answer) => codeIn(answer) === "APPROVAL_REQUIRED");
  const before = (await ledger()).length;
  assert.equal(await assertSame(scene), "APPROVAL_REQUIRED");
  assert.equal((await ledger()).length, before, "nothing was sent");
  await writeConfig(ws, {});
  await until(async () => textOf(await scene.call()) === "done");
  assert.equal(textOf(await call()), "done");
  await writeConfig(ws, { limits: 5 });
  await bothSay(scene, (answer) => codeIn(answer) === "CONFIG_INVALID");
});

Deno.test("a rule with a condition is evaluated for each call", async () => {
  await using scene = await scriptScene("2026-07-28", {
    rules: { allow: ["s:run(path=a*)"], deny: ["s:run(path=ab)"] },
    warm: [["s__run", { path: "a1" }]],
  });
  assert.equal(textOf(await scene.call({ path: "a2" })), "done");
  assert.equal(await assertSame(scene, { path: "b" }), "APPROVAL_REQUIRED");
  assert.equal(await assertSame(scene, {}), "PERMISSION_DENIED");
  assert.equal(await assertSame(scene, { path: "ab" }), "PERMISSION_DENIED");
  assert.equal(await assertSame(scene, { path: ["a1"] }), "PERMISSION_DENIED");
  assert.equal(textOf(await scene.call({ path: "a3" })), "done");
  assert.deepEqual((await scene.ledger()).filter((line) => !/"a\d"/.test(line)).length, 1);
});

Deno.test("arguments that do not match the schema reach the server as they came", async () => {
  await using scene = await scriptScene("2025-11-25", { warm: [["s__strict", { n: 1 }]] });
  for (const args of [{}, { n: "1" }, { n: null }, { n: 1, more: 2 }]) {
    const seen = (await scene.ledger()).length;
    assert.equal(textOf(await scene.call(args, "s__strict")), "done");
    assert.equal(textOf(await scene.callWithMeta(args, "s__strict")), "done");
    const sent = (await scene.ledger()).slice(seen);
    assert.equal(sent.length, 2);
    for (const line of sent) assert.ok(line.includes(JSON.stringify(args)), line);
  }
  const { pml } = scene;
  for (const odd of [{ arguments: [] }, { arguments: null }, { task: {} }, { more: 1 }]) {
    const params = { name: "s__strict", arguments: { n: "x" }, ...odd };
    const answer = await pml.request("tools/call", params);
    const other = await pml.request("tools/call", { ...params, _meta: { "x/y": 1 } });
    assert.deepEqual(bare(answer), bare(other));
  }
  const call = { tool: "s:strict", arguments: { n: 1 } };
  const wrong = { name: "call", arguments: { ...call, more: 1 } };
  const before = (await scene.ledger()).length;
  assert.equal(codeIn(await pml.request("tools/call", wrong)), "BAD_ARGUMENTS");
  assert.equal((await scene.ledger()).length, before, "nothing was sent");
  assert.equal(
    textOf(await pml.request("tools/call", { name: "call", arguments: call })),
    "done",
  );
});

Deno.test("a tool with a changed description asks again", async () => {
  await using scene = await scriptScene("2026-07-28");
  await scene.call({ steps: [{ describe: "in other words" }] });
  await until(async () => codeIn(await scene.call()) === "APPROVAL_STALE", SOON_MS);
  assert.equal(await assertSame(scene), "APPROVAL_STALE");
});

Deno.test("capabilities and names that a client declares in a request apply to that request", async () => {
  await using scene = await scriptScene("2026-07-28", {
    config: { toolsets: { chosen: ["s:other"] }, client_toolsets: { small: "chosen" } },
  });
  const { pml, ledger } = scene;
  const call = (text: string, value: object) => {
    const _meta = { [`io.modelcontextprotocol/${text}`]: value };
    return pml.request("tools/call", { name: "s__run", arguments: {}, _meta });
  };
  assert.equal(textOf(await scene.call()), "done");
  const small = await call("clientInfo", { name: "small", version: "1" });
  assert.equal(codeIn(small), "PERMISSION_DENIED");
  assert.equal(textOf(await call("clientInfo", { name: "large", version: "1" })), "done");
  // The handshake declares the client's capabilities to a server, so the server is started again.
  assert.equal(textOf(await call("clientCapabilities", { elicitation: { form: {} } })), "done");
  assert.equal((await ledger()).filter((line) => line.startsWith("start")).length, 2);
});

Deno.test("a tool asks again if its description changes during a call", async () => {
  await using scene = await scriptScene();
  // PML lists the tools again before the call is over.
  await scene.callWithMeta({ steps: [{ describe: "in other words" }, { wait: 700 }] });
  assert.equal(await assertSame(scene), "APPROVAL_STALE");
});

Deno.test("pins that another process changed ask within 200 ms", async () => {
  for (const folder of ["workspace", "home"]) {
    await using scene = await scriptScene();
    const { ws } = scene;
    const pins = join(ws.home, "pins");
    const pathOf = async () => {
      const [name = ""] = (await readdir(pins).catch(() => [])).filter((one) =>
        one.endsWith(".json")
      );
      return folder === "home" ? join(pins, name) : ws.file("pml.lock");
    };
    // PML writes a new pin during the call.
    await until(async () => /"run"/.test(await readFile(await pathOf(), "utf8").catch(() => "")));
    const path = await pathOf();
    const text = await readFile(path, "utf8");
    const changed = text.replace(/("run":[^}]*?sha256-)(\w)/, (_, head, one) => {
      return `${head}${one === "0" ? 1 : 0}`;
    });
    assert.notEqual(changed, text);
    // File times have a resolution of some milliseconds, and PML wrote the file just now.
    await delay(50);
    await writeFile(path, changed);
    await delay(PINS_MS);
    assert.equal(codeIn(await scene.call()), "APPROVAL_STALE", folder);
    assert.equal(await assertSame(scene), "APPROVAL_STALE", folder);
  }
});

Deno.test("calls stop using a server whose definition changes or that is switched off", async () => {
  await using scene = await scriptScene();
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
  assert.equal(textOf(await call()), "done");
  await write({ s: scriptServer({ tools: { run: { disabled: true } } }) });
  await until(async () => codeIn(await call()) === "UNKNOWN_TOOL");
  assert.equal(await assertSame(scene), "UNKNOWN_TOOL");
  const fixed = { run: { rename: "go", arguments: { owner: "acme" } } };
  await write({ s: scriptServer({ tools: fixed }) });
  await until(async () => codeIn(await call({}, "s__go")) === undefined);
  for (let at = 0; at < 3; at++) await call({ x: at }, "s__go");
  assert.equal((await scene.ledger()).at(-1), 'call run {"x":2,"owner":"acme"}');
  await write({ s: { ...scriptServer(), command: "/nowhere/deno" } });
  await until(async () => codeIn(await call()) !== undefined);
  assert.equal(await assertSame(scene), "UPSTREAM_DOWN");
  await write({});
  await until(async () => codeIn(await call()) === "UNKNOWN_TOOL");
  assert.equal(await assertSame(scene), "UNKNOWN_TOOL");
});

Deno.test("after a key changes, the next call uses another process", async () => {
  await using scene = await scriptScene("2025-11-25", {
    server: { env: { WORD: "${SOME_WORD}" } },
    prepare: async (ws) => {
      await runPml(ws, ["key", "set", "SOME_WORD", "--stdin"], { stdin: "one" });
    },
  });
  const { ws, ledger, call } = scene;
  assert.equal(textOf(await call()), "done");
  await runPml(ws, ["key", "set", "SOME_WORD", "--stdin"], { stdin: "two" });
  await until(async () => {
    await call();
    return (await ledger()).some((line) => /^start \d+ two$/.test(line));
  });
  assert.equal(textOf(await call()), "done");
  await runPml(ws, ["key", "remove", "SOME_WORD"]);
  await until(async () => codeIn(await call()) !== undefined);
  await assertSame(scene);
});

Deno.test("a workspace file that is no longer trusted runs nothing", async () => {
  const prepare = async (ws: Workspace) => {
    const typed = [["to trust exactly this", "trust"]] as const;
    const result = await runPmlOnTerminal(ws, ["trust"], { typed });
    assert.equal(result.code, 0, result.stdout);
  };
  await using scene = await scriptScene("2025-11-25", { trusted: false, prepare });
  const { ws, call, ledger } = scene;
  assert.equal(textOf(await call()), "done");
  const text = await readFile(ws.file(".pml.json"), "utf8");
  await writeFile(ws.file(".pml.json"), text.replace('"s:*"', '"s:*", "other:*"'));
  await until(async () => codeIn(await call()) === "WORKSPACE_UNTRUSTED");
  const before = (await ledger()).length;
  assert.equal(await assertSame(scene), "WORKSPACE_UNTRUSTED");
  assert.equal((await ledger()).length, before, "nothing was sent");
});
