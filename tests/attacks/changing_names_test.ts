/**
 * Names that change their meaning while calls run, and while a client subscribes.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import process from "node:process";
import { answer } from "../../src/registry/answers.ts";
import { type EntryVersion, versionsOf } from "../../src/registry/registry_store.ts";
import { FakeRegistry, manifestEntry, moduleEntry, storeOf } from "../kit/fake_registry.ts";
import { FullHttp } from "../kit/full_http.ts";
import { ERAS } from "../kit/json_rpc.ts";
import { repoFile } from "../kit/pml_command.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { until } from "../kit/wait.ts";
import { makeWorkspace } from "../kit/workspace.ts";
import { call, ledgerOf, pidsOf } from "./evil_servers.ts";
import { endWell, textOf } from "./oracles.ts";
import { outcomeOf, picked, questionOf } from "./questions.ts";
import { makeScene, type Scene } from "./stage.ts";

const PAGE = "pml://rude/rude://page";

const CAN_ASK = { elicitation: { form: {} } } as const;
/** The revision in which a question is the result of a request, which the client then repeats. */
const ERA = "2026-07-28";
const PERMISSIONS = { allow: ["filesystem:*", "rude:*"] };

function rude(word: string): Record<string, unknown> {
  const script = repoFile("tests/kit/rude_server.ts");
  const args = ["run", "-A", "--no-config", "--quiet", script, "./rude.ledger", word];
  return { command: process.execPath, args };
}

/** Applies another configuration. */
async function configure(
  { ws, pml }: Pick<Scene, "ws" | "pml">,
  said: Record<string, unknown>,
): Promise<void> {
  const count = () => pml.stderr.split("The configuration was applied").length;
  const before = count();
  await writeFile(ws.file(".pml.json"), JSON.stringify({ version: 1, ...said }));
  await until(() => count() > before);
}

async function saidIn({ ws }: Scene, what: string): Promise<number> {
  return (await ledgerOf(ws, "rude")).filter((line) => line.startsWith(what)).length;
}

for (const era of ERAS) {
  Deno.test(`a cancelled subscription is not resumed by later configurations, on ${era}`, async () => {
    const pml = { version: 1, permissions: PERMISSIONS, mcpServers: { rude: rude("one") } };
    await using scene = await makeScene({ era, pml });
    const { ws } = scene;
    const isOlder = era === "2025-11-25";
    const listen = { notifications: { resourceSubscriptions: [PAGE] } };
    const open = isOlder ? undefined : scene.pml.begin("subscriptions/listen", listen);
    open?.answer.catch(() => {}); // rejected when it is cancelled
    if (isOlder) await scene.pml.request("resources/subscribe", { uri: PAGE });
    await until(async () => await saidIn(scene, "resources/subscribe") === 1);
    await configure(scene, { permissions: PERMISSIONS, mcpServers: { rude: rude("two") } });
    await until(async () => await saidIn(scene, "resources/subscribe") === 2);
    if (isOlder) await scene.pml.request("resources/unsubscribe", { uri: PAGE });
    else await scene.pml.notify("notifications/cancelled", { requestId: open?.id });
    await until(async () => await saidIn(scene, "resources/unsubscribe") >= 1);
    await configure(scene, { permissions: PERMISSIONS, mcpServers: { rude: rude("three") } });
    assert.equal(textOf(await call(scene.pml, "rude:word")), "three");
    assert.equal(await saidIn(scene, "resources/subscribe"), 2);
    // A cancelled request gets no response.
    if (isOlder) await endWell(ws, scene.pml);
    else assert.equal((await scene.pml.close()).code, 0);
  });
}

function called(tool: string, args = {}) {
  return { name: "call", arguments: { tool, arguments: args } };
}

/** Creates a registry that sends no code until the test allows it. */
async function holding(entries: readonly EntryVersion[]) {
  const versions = versionsOf(entries);
  const held = Promise.withResolvers<void>();
  const registry = await FakeRegistry.open([], async (request) => {
    if (/typescript/.test(request.accept ?? "")) await held.promise;
    return await answer(request, storeOf(versions));
  });
  const isHeld = () =>
    registry.asked.some(({ headers }) => /typescript/.test(headers.accept ?? ""));
  return { registry, isHeld, release: held.resolve };
}

const READER = `export const __meta__ = {
  name: "reader", version: "1.0.0", permissions: { read: ["/etc"] },
  tools: { go: { inputSchema: { type: "object" } } },
};
export const go = () => "read " + Deno.readTextFileSync("/etc/hostname").length;`;

Deno.test("approving a server does not approve grants that are added while its code is fetched", async () => {
  const { registry, isHeld, release } = await holding([await moduleEntry("reader", READER)]);
  await using _ = registry;
  const permissions = { ask: ["reader:*"], allow: ["filesystem:*"] };
  const pml = { version: 1, permissions };
  await using ws = await makeWorkspace({ env: { PML_REGISTRIES: registry.url }, pml });
  await using client = new RawStdio(ws, { era: ERA, capabilities: CAN_ASK });
  await client.open();
  const question = await questionOf(client, called("reader:go"));
  assert.match(question.text, /asks for read \/etc: not granted/);
  const said = question.answer(picked("Yes"));
  await until(isHeld);
  await configure({ ws, pml: client }, { permissions, grants: { reader: { read: ["/etc"] } } });
  release();
  const outcome = await said;
  assert.doesNotMatch(textOf(outcome), /^read/);
  assert.equal(String(outcome.result?.resultType), "input_required", textOf(outcome));
  assert.match(JSON.stringify(outcome), /reads \/etc/);
  assert.equal((await client.close()).code, 0);
});

Deno.test("a registry server is no longer used once its registry or its grant is removed", async () => {
  await using far = new FullHttp("modern");
  await using registry = await FakeRegistry.open([
    manifestEntry("far", { type: "http", url: far.url }),
  ]);
  const permissions = { allow: ["filesystem:*", "far:*"] };
  const registries = [registry.url];
  const grants = { far: { net: [new URL(far.url).host] } };
  const pml = { version: 1, permissions, registries, grants };
  await using other = await FakeRegistry.open([]);
  await using ws = await makeWorkspace({ env: { PML_REGISTRIES: "" }, pml });
  await using client = new RawStdio(ws, { era: ERA, capabilities: CAN_ASK });
  await client.open();
  const asked = await outcomeOf(client, called("far:@tools"));
  const first = asked.kind === "asked" ? await asked.asked.answer(picked("Yes")) : asked.message;
  assert.match(textOf(first), /far:/);
  const read = () => client.request("resources/read", { uri: "pml://far/full://page" });
  const before = far.asked.length;
  await read();
  assert.ok(far.asked.length > before, "it was asked");
  await configure({ ws, pml: client }, { permissions, registries });
  const ungranted = far.asked.length;
  assert.match(JSON.stringify(await read()), /REGISTRY_BAD_RESPONSE/);
  assert.equal(
    far.asked.length,
    ungranted,
    "no host that was granted is reached without the grant",
  );
  await configure({ ws, pml: client }, { permissions, grants, registries: [other.url] });
  assert.match(JSON.stringify(await read()), /pinned to/);
  assert.equal(far.asked.length, ungranted);
  assert.equal((await client.close()).code, 0);
});

Deno.test("no registry server is started or listed under a name that the user gave to another server", async () => {
  const script = repoFile("tests/kit/rude_server.ts");
  const args = ["run", "-A", "--no-config", "--quiet", script, "./rude.ledger", "theirs"];
  const entry = manifestEntry("rude", {
    type: "stdio",
    install: { command: "deno", args },
  });
  await using registry = await FakeRegistry.open([entry]);
  const env = { PML_REGISTRIES: registry.url };
  const pml = { version: 1, permissions: PERMISSIONS };
  await using ws = await makeWorkspace({ env, pml, files: { "good.txt": "good\n" } });
  const options = {
    era: "2025-11-25",
    capabilities: CAN_ASK,
    answer: () => ({ action: "accept", content: { answer: "Yes" } }),
  } as const;
  {
    await using first = new RawStdio(ws, options);
    await first.open();
    assert.equal(textOf(await call(first, "rude:word")), "theirs");
    assert.equal((await first.close()).code, 0);
  }
  await using client = new RawStdio(ws, options);
  await client.open();
  await configure({ ws, pml: client }, {
    permissions: PERMISSIONS,
    mcpServers: { rude: rude("mine") },
  });
  assert.equal((await client.request("resources/subscribe", { uri: PAGE })).error, undefined);
  assert.equal(textOf(await call(client, "rude:word")), "mine");
  const starts = (await pidsOf(ws, "rude")).length;
  await configure({ ws, pml: client }, { permissions: PERMISSIONS });
  await until(() => /Cannot follow/.test(client.stderr));
  await client.request("tools/list");
  await client.request("resources/list");
  assert.equal((await pidsOf(ws, "rude")).length, starts);
  // PML asks about it; then the name belongs to the registry.
  assert.equal(textOf(await call(client, "rude:word")), "theirs");
  await endWell(ws, client);
});

const WORD = `export const __meta__ = {
  name: "rude", version: "1.0.0", tools: { word: { inputSchema: { type: "object" } } },
};
export const word = () => "module";`;

Deno.test("a name that switches between kinds of servers answers each call, with expected results only", async () => {
  const kinds = [
    { mcpServers: { rude: rude("one") } },
    { private_mcps: { rude: { type: "deno", path: "word.js" } } },
    { mcpServers: { rude: { ...rude("off"), disabled: true } } },
    {},
  ];
  await using scene = await makeScene({
    era: "2025-11-25",
    capabilities: CAN_ASK,
    answer: () => ({ action: "accept", content: { answer: "Yes" } }),
    files: { "word.js": WORD },
    pml: { version: 1, permissions: PERMISSIONS, ...kinds[0] },
  });
  const { ws, pml } = scene;
  const known =
    /^(?:one|module|(?:UNKNOWN_TOOL|APPROVAL_STALE|APPROVAL_DECLINED|CANCELLED|OVERLOADED): )/;
  for (let turn = 1; turn <= 8; turn++) {
    const calls = Array.from({ length: 4 }, () => call(pml, "rude:word"));
    await configure(scene, { permissions: PERMISSIONS, ...kinds[turn % kinds.length] });
    for (const message of await Promise.all(calls)) assert.match(textOf(message), known);
    // The current server answers; a disabled name is reported as disabled.
    const wanted = [/^one$/, /^module$/, /is disabled in/, /^UNKNOWN_TOOL/][turn % kinds.length];
    await until(async () => wanted?.test(textOf(await call(pml, "rude:word"))) === true);
  }
  assert.doesNotMatch(pml.stderr, /bug in PML/);
  await endWell(ws, pml);
});
