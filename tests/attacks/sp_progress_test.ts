import assert from "node:assert/strict";
import { appendFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FakeNpm } from "../kit/fake_npm.ts";
import { KeptPackages } from "../kit/kept_packages.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { tinyServer } from "../kit/tiny_server.ts";
import { waitUntil } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { endWell, textOf } from "./oracles.ts";
import { makeScene, type Scene } from "./stage.ts";

const MS = 60_000;
const TINY = {
  "package.json": '{"bin":"main.js"}',
  "main.js": tinyServer(`"well"`),
};

/** The packages that the first test installed, for tests that only need them. */
const kept = new KeptPackages();

async function scene(
  npm: FakeNpm,
  limits: Readonly<Record<string, number>>,
  prepare = (_: Workspace) => Promise.resolve(),
): Promise<Scene> {
  return await makeScene({
    prepare,
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", "tiny:*"] },
      mcpServers: { tiny: { command: "npx", args: ["-y", "tiny@1.0.0"] } },
    },
    env: { NPM_CONFIG_USERCONFIG: npm.settings },
    limits,
  });
}

function begin(pml: RawStdio, progressToken: string) {
  const params = { name: "call", arguments: { tool: "tiny:tell", arguments: {} } };
  return pml.begin("tools/call", { ...params, _meta: { progressToken } }, { ms: MS });
}

/** Returns the progress of a token, in order. */
function told(pml: RawStdio, token: string): readonly { progress: number; message: string }[] {
  return pml.messages.filter(({ method }) => method === "notifications/progress")
    .map(({ params }) => params as unknown as { progressToken: string } & Told)
    .filter(({ progressToken }) => progressToken === token);
}

interface Told {
  readonly progress: number;
  readonly message: string;
}

async function package_(scene: Scene): Promise<string> {
  const [folder = ""] = await readdir(join(scene.ws.home, "servers"));
  return join(scene.ws.home, "servers", folder);
}

Deno.test("every call that waits for an install gets progress, and they share one install", async () => {
  await using npm = new FakeNpm({ tiny: { "1.0.0": TINY } });
  await using hosted = await scene(npm, { start_ms: MS, call_ms: MS });
  const { ws, pml } = hosted;
  const release = npm.hold();
  const tokens = ["a", "b", "c"];
  const answers = tokens.map((token) => begin(pml, token).answer);
  assert.ok(await waitUntil(() => tokens.every((token) => told(pml, token).length >= 2), MS));
  release();
  for (const answer of answers) assert.equal(textOf(await answer), '"well"');
  for (const token of tokens) {
    const messages = told(pml, token);
    assert.match(messages[0]?.message ?? "", /^Installing tiny@1\.0\.0 with npm/);
    assert.match(messages.at(-1)?.message ?? "", /^Installed tiny@1\.0\.0: version 1\.0\.0$/);
    const counts = messages.map(({ progress }) => progress);
    assert.deepEqual(counts, [...new Set(counts)].sort((one, other) => one - other), "it grows");
    assert.ok(counts.every((count) => count < 0), "what the server tells begins at nothing");
  }
  assert.equal(npm.asked.filter((path) => path.endsWith(".tgz")).length, 1);
  const info = pml.stderr.split("\n").filter((line) => line.includes("tiny"));
  assert.equal(info.length, 2, info.join("\n"));
  await endWell(ws, pml);
  await kept.keep(ws);
});

Deno.test("an install within a call extends its deadline, and a cancelled call leaves it", async () => {
  await using npm = new FakeNpm({ tiny: { "1.0.0": TINY } });
  await using hosted = await scene(
    npm,
    { start_ms: MS, call_ms: 3_000, idle_ms: 1_000 },
    (ws) => kept.give(ws),
  );
  const { pml } = hosted;
  assert.equal(textOf(await begin(pml, "first").answer), '"well"');
  // PML has listed its tools, so the next start is part of the deadline of a call.
  const folder = await package_(hosted);
  assert.ok(await waitUntil(async () => !await isRunning(folder), MS));
  await rm(folder, { recursive: true });
  const release = npm.hold();
  const waiting = begin(pml, "waits").answer;
  const given = begin(pml, "given up");
  given.answer.catch(() => {}); // a cancelled call is never answered
  assert.ok(await waitUntil(() => told(pml, "given up").length >= 1, MS));
  await pml.notify("notifications/cancelled", { requestId: given.id });
  assert.ok(await waitUntil(() => told(pml, "waits").length >= 5, MS));
  release();
  assert.equal(textOf(await waiting), '"well"');
});

/** Returns whether a process runs from a folder. */
async function isRunning(folder: string): Promise<boolean> {
  for await (const { name } of Deno.readDir("/proc")) {
    const line = await Deno.readTextFile(`/proc/${name}/cmdline`).catch(() => "");
    if (line.includes(folder)) return true;
  }
  return false;
}

Deno.test("an install that fails reports its step, and the last output of npm", async () => {
  await using npm = new FakeNpm({});
  await using hosted = await scene(npm, { start_ms: MS, call_ms: MS });
  const { result } = await begin(hosted.pml, "x").answer;
  assert.match(textOf({ result }), /^UPSTREAM_DOWN: Cannot install "tiny@1\.0\.0": `npm install` /);
  const text = JSON.stringify(result);
  assert.match(text, /"step":"npm install"/);
  assert.match(text, /E404/);
  assert.doesNotMatch(text, /npm http/);
});

Deno.test("an invalid record of an install stops the server; data next to its code does not", async () => {
  await using npm = new FakeNpm({ tiny: { "1.0.0": TINY } });
  await using hosted = await scene(
    npm,
    { start_ms: MS, call_ms: MS, idle_ms: 1_000 },
    (ws) => kept.give(ws),
  );
  const { pml } = hosted;
  const call = () => pml.callTool("call", { tool: "tiny:tell", arguments: {} }, { ms: MS });
  assert.equal(textOf(await call()), '"well"');
  const folder = await package_(hosted);
  const stopped = async () => assert.ok(await waitUntil(async () => !await isRunning(folder), MS));
  await stopped();
  await appendFile(join(folder, "node_modules/tiny/memory.jsonl"), "{}\n");
  assert.equal(textOf(await call()), '"well"');
  const path = join(folder, "pml-installed.json");
  const record = JSON.parse(await Deno.readTextFile(path));
  for (const file of ["../../../outside.js", "/outside.js", 1]) {
    await stopped();
    await writeFile(path, JSON.stringify({ ...record, file }));
    const answer = await call();
    assert.match(JSON.stringify(answer), /INTEGRITY_MISMATCH.*valid record/, `${file}`);
  }
});
