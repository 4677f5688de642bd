/**
 * Rules, tool sets and servers that change while a call or a run waits: for its server to be
 * installed or to start, for a free child, or for the user. A call that is denied by then does not
 * run.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { approve } from "../capability_scene.ts";
import { full } from "../full_scene.ts";
import { FakeNpm } from "../kit/fake_npm.ts";
import { FakeProvider } from "../kit/fake_provider.ts";
import { type Era, ERAS } from "../kit/json_rpc.ts";
import { npmServer } from "../kit/npm_server.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { until } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { scriptServer, writeConfig } from "../script_scene.ts";
import { samplingScene } from "../sampling_scene.ts";
import { ledgerOf, ledgerScene, withoutTypeCheck } from "./code_tools.ts";
import { codeOf, endWell, journalOf, textOf } from "./oracles.ts";
import { answerOf, picked, questionOf } from "./questions.ts";
import { makeAttackWorkspace, makeScene, SLOW } from "./stage.ts";

/** A call for finding out whether a new configuration is active, which denies this call. */
type Probe = { readonly id: string; readonly name: string; readonly arguments: object };

/** A built-in tool, for tests in which the server `s` cannot start. */
const LIST: Probe = {
  id: "filesystem:list_directory",
  name: "filesystem__list_directory",
  arguments: { path: "." },
};
/** A tool of the server `s`, for tests in which no sandbox child is free. */
const OTHER: Probe = { id: "s:other", name: "s__other", arguments: {} };
const CAN_ASK = { elicitation: { form: {} } } as const;
const ALLOW = ["filesystem:*", "s:*", "slow:*", "my:*"];

/** A server that starts only while the file `open` exists. */
function slowServer() {
  const { command, args } = scriptServer() as { command: string; args: string[] };
  const line = 'echo $$ >> starting; until [ -e open ]; do sleep 0.02; done; exec "$@"';
  return { command: "/bin/sh", args: ["-c", line, "sh", command, ...args] };
}

function configuration(deny: readonly string[] = []) {
  return {
    version: 1,
    permissions: { allow: ALLOW, deny },
    mcpServers: { s: slowServer() },
    private_mcps: SLOW.pml.private_mcps,
  };
}

/** Writes a configuration, and waits until it is active. */
async function apply(pml: RawStdio, write: () => Promise<void>): Promise<void> {
  const count = () => pml.stderr.split("The configuration was applied").length;
  const before = count();
  await write();
  await until(() => count() > before);
}

/** Denies a tool, and waits until the rule is active. */
async function deny(
  tool: string,
  { ws, pml, probe }: { readonly ws: Workspace; readonly pml: RawStdio; readonly probe: Probe },
): Promise<void> {
  await writeFile(ws.file(".pml.json"), JSON.stringify(configuration([tool, probe.id])));
  await until(async () => {
    const { name, arguments: args } = probe;
    return codeOf(await answerOf(pml, { name, arguments: { ...args } })) === "PERMISSION_DENIED";
  });
}

async function scenery(limits = {}): Promise<Workspace> {
  const files = { ...SLOW.files, open: "", starting: "", ledger: "", there: "content" };
  return await makeAttackWorkspace({ files, pml: configuration(), limits });
}

async function open(ws: Workspace, era: Era): Promise<RawStdio> {
  const pml = new RawStdio(ws, { era });
  await pml.open();
  return pml;
}

Deno.test("a call that is denied while its server starts is not sent to it", async () => {
  await using ws = await scenery();
  const run = { name: "s__run", arguments: {} };
  await using first = await open(ws, "2025-11-25");
  assert.equal(textOf(await answerOf(first, run)), "done");
  await first.close();
  await Deno.remove(ws.file("open"));
  await using pml = await open(ws, "2025-11-25");
  const starts = async () => (await Deno.readTextFile(ws.file("starting"))).split("\n").length;
  const before = await starts();
  const call = pml.begin("tools/call", { ...run, arguments: { late: 1 } });
  await until(async () => await starts() > before);
  await deny("s:run", { ws, pml, probe: LIST });
  await writeFile(ws.file("open"), "");
  assert.equal(codeOf(await call.answer), "PERMISSION_DENIED");
  assert.doesNotMatch(await Deno.readTextFile(ws.file("ledger")), /late/);
  await endWell(ws, pml);
});

Deno.test("a call that is denied while it waits for a child does not run", async () => {
  await using ws = await scenery({ children: 1 });
  await using pml = await open(ws, "2025-11-25");
  const wait = (path: string) => ({ name: "slow__wait", arguments: { path } });
  assert.equal(textOf(await answerOf(pml, wait("there"))), "content");
  assert.equal(textOf(await answerOf(pml, { name: "s__run", arguments: {} })), "done");
  const occupying = pml.begin("tools/call", wait("free"));
  const write = pml.begin("tools/call", {
    name: "filesystem__write_file",
    arguments: { path: "made.txt", content: "made" },
    _meta: { progressToken: "waits" },
  });
  await until(() => pml.messages.some(({ params }) => /fewer sandbox/.test(`${params?.message}`)));
  await deny("filesystem:write_file", { ws, pml, probe: OTHER });
  await writeFile(ws.file("free"), "content");
  assert.equal(textOf(await occupying.answer), "content");
  assert.equal(codeOf(await write.answer), "PERMISSION_DENIED");
  await assert.rejects(Deno.stat(ws.file("made.txt")), Deno.errors.NotFound);
  await endWell(ws, pml);
});

Deno.test("a capability that is denied while it waits for a child does not run", async () => {
  await using ws = await scenery({ children: 1 });
  await approve(ws, {
    "my:holds": withoutTypeCheck('return await mcp.slow.wait({ path: "free" })'),
    "my:late": withoutTypeCheck("return await mcp.s.run({ late: 1 })"),
  });
  await using pml = await open(ws, "2025-11-25");
  const began = async (count: number) => {
    const lines = await journalOf(ws);
    return lines.filter(({ event }) => event === "capability began").length === count;
  };
  assert.equal(textOf(await answerOf(pml, { name: "s__run", arguments: {} })), "done");
  const holds = pml.begin("tools/call", { name: "my__holds", arguments: {} });
  await until(() => began(1));
  const late = pml.begin("tools/call", { name: "my__late", arguments: {} });
  await until(() => began(2));
  await deny("my:late", { ws, pml, probe: OTHER });
  await writeFile(ws.file("free"), "content");
  assert.equal(textOf(await holds.answer), "content");
  assert.equal(codeOf(await late.answer), "PERMISSION_DENIED");
  assert.doesNotMatch(await Deno.readTextFile(ws.file("ledger")), /late/);
  await endWell(ws, pml);
});

Deno.test("a waiting run may no longer call a tool that leaves the tool set of its client", async () => {
  const setOf = (tools: readonly string[]) => ({
    toolsets: { few: tools },
    client_toolsets: { "pml-test": "few" },
  });
  await using scene = await ledgerScene({
    ...{ era: "2026-07-28", capabilities: CAN_ASK },
    prepare: (ws) => writeConfig(ws, setOf(["led:*", "filesystem:*"])),
  });
  const { ws, pml } = scene;
  const code = withoutTypeCheck(`
      await mcp.led.gated({ text: "asked" });
      await mcp.led.note({ text: "late" });`);
  const question = await questionOf(pml, { name: "execute_code", arguments: { code } });
  await apply(pml, () => writeConfig(ws, setOf(["led:gated", "filesystem:*"])));
  assert.match(textOf(await question.answer(picked("Yes"))), /PERMISSION_DENIED/);
  assert.deepEqual(await ledgerOf(ws), ["gated asked"]);
  await endWell(ws, pml);
});

for (const era of ERAS) {
  Deno.test(`an answer has no effect if the client may no longer ask the user, on ${era}`, async () => {
    await using scene = await ledgerScene({ era, capabilities: CAN_ASK });
    const { ws, pml } = scene;
    const plain = await questionOf(pml, { name: "led__gated", arguments: { text: "late" } });
    const code = withoutTypeCheck(`await mcp.led.gated({ text: "late" })`);
    const inCode = await questionOf(pml, { name: "execute_code", arguments: { code } });
    await apply(pml, () => writeConfig(ws, { approvals: { channel: "terminal" } }));
    assert.match(textOf(await plain.answer(picked("Yes"))), /APPROVAL_REQUIRED/);
    assert.match(textOf(await inCode.answer(picked("Yes"))), /APPROVAL_REQUIRED/);
    assert.deepEqual(await ledgerOf(ws), []);
    await endWell(ws, pml);
  });
}

Deno.test("PML sends nothing to a provider that was removed before the approval", async () => {
  await using provider = new FakeProvider("anthropic", { text: "it is" });
  const servers = { legacy: full("legacy") };
  await using scene = await samplingScene({
    provider,
    era: "2025-11-25",
    servers,
    capabilities: CAN_ASK,
  });
  const { ws, pml } = scene;
  const question = await questionOf(pml, { name: "legacy__sample", arguments: {} });
  await apply(pml, () => writeConfig(ws, { limits: { batch: 5 } }));
  assert.match(textOf(await question.answer(picked("Yes"))), /provider is no longer/);
  assert.equal(provider.received.length, 0);
  await endWell(ws, pml);
});

Deno.test("PML sends nothing to a provider that the question did not show", async () => {
  await using provider = new FakeProvider("anthropic", { text: "it is" });
  await using other = new FakeProvider("anthropic", { text: "it is" });
  const servers = { legacy: full("legacy") };
  const options = { era: "2026-07-28", capabilities: CAN_ASK } as const;
  await using scene = await samplingScene({ provider, servers, ...options });
  const { ws, pml } = scene;
  const question = await questionOf(pml, { name: "legacy__sample", arguments: {} });
  await apply(pml, () => writeFile(`${ws.home}/config.yaml`, other.config()));
  assert.match(textOf(await question.answer(picked("Yes"))), /its configuration keeps changing/);
  assert.deepEqual([provider.received.length, other.received.length], [0, 0]);
  await endWell(ws, pml);
});

Deno.test("PML sends nothing more to a provider that is removed while its model waits for a tool", async () => {
  const uses = [{ name: "filesystem__read_file", input: { path: "good.txt" } }];
  await using provider = new FakeProvider("anthropic", { uses }, { text: "it is" });
  await using scene = await samplingScene({
    ...{ provider, era: "2026-07-28", servers: { legacy: full("legacy") }, capabilities: CAN_ASK },
    settings: { allowed_tool_patterns: ["filesystem:*"] },
    rules: { allow: ["legacy:@sampling"], ask: ["filesystem:read_file"] },
  });
  const { ws, pml } = scene;
  const wants = { name: "legacy__sample", arguments: { allowedToolPatterns: ["**"] } };
  const question = await questionOf(pml, wants);
  assert.match(question.text, /Tool: "read_file"/);
  await apply(pml, () => writeConfig(ws, { limits: { batch: 5 } }));
  assert.match(textOf(await question.answer(picked("Yes"))), /provider is no longer/);
  assert.equal(provider.received.length, 1);
  assert.equal((await pml.close()).code, 0);
});

Deno.test("a server that is removed during its installation does not start", async () => {
  const files = npmServer('"it ran"');
  const main = `require("fs").writeFileSync("started", "");${files["main.js"]?.slice(19)}`;
  await using npm = new FakeNpm({ hello: { "1.0.0": { ...files, "main.js": main } } });
  const withServer = (mcpServers: object) => ({
    version: 1,
    permissions: { allow: ["hello:*", "filesystem:*"] },
    mcpServers,
  });
  const hello = { command: "npx", args: ["-y", "hello@1.0.0", "tiny"] };
  await using scene = await makeScene({
    env: { NPM_CONFIG_USERCONFIG: npm.settings },
    pml: withServer({ hello }),
  });
  const { ws, pml } = scene;
  const free = npm.hold();
  const call = pml.begin("tools/call", { name: "hello__tell", arguments: {} });
  await until(() => npm.asked.length > 0);
  await apply(pml, () => writeFile(ws.file(".pml.json"), JSON.stringify(withServer({}))));
  free();
  assert.equal(codeOf(await call.answer), "UNKNOWN_TOOL");
  await assert.rejects(Deno.stat(ws.file("started")), Deno.errors.NotFound);
  await endWell(ws, pml);
});
