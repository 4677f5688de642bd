import assert from "node:assert/strict";
import { ERAS, paramsFor } from "../kit/json_rpc.ts";
import { pmlCommand } from "../kit/pml_command.ts";
import { ProcWatch } from "../kit/procwatch.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { END_MS, until, waitUntil, within } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import {
  assertAftermath,
  assertNoTempFiles,
  assertPaired,
  assertServes,
  journalOf,
  ofKind,
} from "./oracles.ts";
import { makeAttackWorkspace, makeScene, SLOW } from "./stage.ts";

const DOING: Readonly<Record<string, (pml: RawStdio) => Promise<void>>> = {
  "at idle": () => Promise.resolve(),
  "after a call": assertServes,
  "in a call that waits": (pml) => begun(pml, "wait"),
  "in a call that spins": (pml) => begun(pml, "spin"),
  "while a module never finishes loading": async (pml) => {
    pml.begin("tools/call", { name: "stuck__go", arguments: {} }).answer.catch(() => {});
    await assertServes(pml);
  },
  "in the middle of a frame": async (pml) => {
    await assertServes(pml);
    await pml.sendText('{"jsonrpc":"2.0","id":"half","method":"tools/call","params":{"name":');
  },
};

const SIGNALS = { SIGTERM: 143, SIGINT: 130, SIGHUP: 129 } as const;
const CRASH = /panicked|Uncaught|error: |at file:|\n {4}at /;

for (const [at, [doing, act]] of Object.entries(DOING).entries()) {
  Deno.test(`a client that closes stdin ${doing} leaves no process (ST5)`, async () => {
    const era = ERAS[at % ERAS.length];
    // The test ends it.
    await using scene = await makeScene({ ownProcess: true, era, ...SLOW });
    const { ws, pml } = scene;
    await act(pml);
    const { code, ms } = await pml.close();
    assert.equal(code, 0, pml.stderr);
    assert.ok(ms < END_MS, `the end took ${ms} ms`);
    assert.doesNotMatch(pml.stderr, CRASH);
    await assertAftermath(ws, pml);
  });
}

for (const [signal, wanted] of Object.entries(SIGNALS)) {
  for (const [doing, act] of Object.entries(DOING)) {
    Deno.test(`${signal} ${doing} ends with ${wanted} (ST6)`, async () => {
      // The test ends it.
      await using scene = await makeScene({ ...SLOW, ownProcess: true });
      const { ws, pml } = scene;
      await act(pml);
      const { code, ms } = await pml.kill(signal as keyof typeof SIGNALS);
      assert.equal(code, wanted, pml.stderr);
      assert.ok(ms < END_MS, `the end took ${ms} ms`);
      assert.doesNotMatch(pml.stderr, CRASH);
      await assertAftermath(ws, pml);
    });
  }
}

Deno.test("a second SIGINT ends it at once (ST6)", async () => {
  // Two signals end it.
  await using scene = await makeScene({ ...SLOW, ownProcess: true });
  const { ws, pml } = scene;
  await begun(pml, "spin");
  Deno.kill(pml.pid, "SIGINT");
  const { code } = await pml.kill("SIGINT");
  assert.equal(code, 130);
  await pml.watch.assertNothingLeft();
  await ws.assertCanaries();
});

Deno.test("a signal at any moment of the start leaves no process (ST6)", async () => {
  await using ws = await makeAttackWorkspace(SLOW);
  for (let ms = 0; ms < 150; ms += 6) {
    // A signal may arrive before PML runs.
    const pml = new RawStdio(ws, { ownProcess: true });
    pml.open().catch(() => {}); // the signal may come before the answer
    // No event shows the progress of a start, so the moments are spread over all of it.
    await new Promise((resolve) => setTimeout(resolve, ms));
    const { code } = await pml.kill("SIGTERM");
    assert.equal(code, 143, `after ${ms} ms: ${pml.stderr}`);
    assert.doesNotMatch(pml.stderr, CRASH);
    await pml.watch.assertNothingLeft();
  }
  await assertNoTempFiles(ws);
});

Deno.test("a client that is killed in the middle of a call leaves no process (ST5)", async () => {
  await using ws = await makeAttackWorkspace(SLOW);
  const client = spawnBehindClient(ws, [callLine("slow__wait", { path: "never" })]);
  const started = async () => ofKind(await journalOf(ws), "start").length === 1;
  assert.ok(await waitUntil(started));
  const watch = new ProcWatch(ws);
  await watch.remember(client.pid);
  client.kill("SIGKILL");
  await client.status;
  await watch.assertNothingLeft();
  await assertNoTempFiles(ws);
  assertPaired(await journalOf(ws));
  await ws.assertCanaries();
});

Deno.test("a client that closes its end of stdout ends PML without a crash report (ST6)", async () => {
  await using ws = await makeAttackWorkspace(SLOW);
  const { child, stderr, send } = spawnBare(ws);
  await child.stdout.cancel();
  await send(callLine("filesystem__read_file", { path: "good.txt" }));
  await until(async () => ofKind(await journalOf(ws), "end").length === 1);
  await within(child.status, { ms: END_MS, what: () => "it does not end" });
  assert.doesNotMatch(await stderr, CRASH);
  await new ProcWatch(ws).assertNothingLeft();
  await assertNoTempFiles(ws);
  assertPaired(await journalOf(ws));
});

Deno.test("a client that never reads is disconnected, and its requests are limited (ST9)", async () => {
  const limits = { queued_bytes: 128 * 1024, unread_ms: 1_000 };
  const files = { ...SLOW.files, "big.txt": "0123456789abcdef".repeat(4096) };
  await using ws = await makeAttackWorkspace({ ...SLOW, files, limits });
  const { child, stderr, send } = spawnBare(ws);
  let sent = 0;
  const asking = (async () => {
    for (; sent < 200; sent++) {
      await send(callLine("filesystem__read_file", { path: "big.txt" }, sent + 1));
    }
  })().catch(() => {}); // the pipe closes when it is dropped
  await until(async () => ofKind(await journalOf(ws), "end").length > 0);
  await within(child.status, { ms: END_MS, what: () => "it does not end" });
  await asking;
  assert.match(await stderr, /read its answers/);
  await child.stdout.cancel();
  await new ProcWatch(ws).assertNothingLeft();
  await assertNoTempFiles(ws);
  assertPaired(await journalOf(ws));
});

Deno.test("SIGTERM also ends it when its last answer is never read (ST6, ST9)", async () => {
  const files = { "big.txt": "0123456789abcdef".repeat(16_384) };
  await using ws = await makeAttackWorkspace({ files });
  const { child, send } = spawnBare(ws);
  await send(callLine("filesystem__read_file", { path: "big.txt" }));
  // The pipe contains a part of the answer, and the rest waits.
  assert.ok(await waitUntil(async () => ofKind(await journalOf(ws), "end").length === 1));
  child.kill("SIGTERM");
  const { code } = await within(child.status, { ms: 4000, what: () => "it does not end" });
  assert.equal(code, 143);
  await child.stdout.cancel();
  await new ProcWatch(ws).assertNothingLeft();
  assertPaired(await journalOf(ws));
});

/** A server that never answers a subscription, and records its arrival. */
const MUTE = `
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
const ANSWERS = {
  "initialize": {
    protocolVersion: "2025-11-25",
    capabilities: { resources: { subscribe: true } },
    serverInfo: { name: "mute", version: "1" },
  },
  "resources/list": { resources: [{ uri: "test://a", name: "a" }] },
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line);
  const result = ANSWERS[method];
  if (method === "resources/subscribe") writeFileSync("asked", "");
  if (id === undefined || method === "resources/subscribe") continue;
  const answer = result ? { result } : { error: { code: -32601, message: "Method not found" } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...answer }) + "\\n");
}
`;

Deno.test("a client that waits for a subscription when PML ends gets PML's own error (ST6)", async () => {
  const pml = { permissions: { allow: ["mute:*"] } };
  const mcpServers = { mute: { command: "node", args: ["mute.mjs"] } };
  await using scene = await makeScene({
    // A signal ends it.
    ownProcess: true,
    era: "2026-07-28",
    files: { "mute.mjs": MUTE },
    pml: { version: 1, ...pml, mcpServers },
  });
  const { ws, pml: client } = scene;
  const notifications = { resourceSubscriptions: ["pml://mute/test://a"] };
  client.begin("subscriptions/listen", { notifications }).answer.catch(() => {});
  await until(() => Deno.stat(ws.file("asked")).then(() => true, () => false));
  await client.kill("SIGTERM");
  assert.match(client.stderr, /Cannot follow a resource: PML is ending/);
  assert.doesNotMatch(client.stderr, /signal has been aborted/);
});

/** Begins a call of the slow module, and waits until it runs. */
async function begun(pml: RawStdio, tool: string): Promise<void> {
  // The child is ready when its first call has returned.
  await pml.callTool("slow__wait", { path: "good.txt" });
  pml.begin("tools/call", { name: `slow__${tool}`, arguments: { path: "never" } })
    .answer.catch(() => {}); // it never arrives: the connection ends before
  await assertServes(pml);
}

function callLine(name: string, args: Record<string, unknown>, id = 1): string {
  const params = paramsFor("2026-07-28", { name, arguments: args }, {});
  return `${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params })}\n`;
}

/** Spawns PML with pipes that the test does not read. */
function spawnBare(ws: Workspace): {
  readonly child: Deno.ChildProcess;
  readonly stderr: Promise<string>;
  readonly send: (line: string) => Promise<void>;
} {
  const [program, ...args] = pmlCommand();
  const child = new Deno.Command(program, {
    args: [...args, "stdio"],
    cwd: ws.path,
    env: ws.env,
    clearEnv: true,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  return {
    child,
    stderr: new Response(child.stderr).text(),
    send: (line) => writer.write(new TextEncoder().encode(line)),
  };
}

/** Spawns a client that spawns PML, sends lines, and then keeps its pipes open. */
function spawnBehindClient(ws: Workspace, lines: readonly string[]): Deno.ChildProcess {
  const [program, ...args] = pmlCommand();
  const command = JSON.stringify([program, { args: [...args, "stdio"], stdin: "piped" }]);
  const code = `
    const child = new Deno.Command(...${command}).spawn();
    await child.stdin.getWriter().write(new TextEncoder().encode(${
    JSON.stringify(lines.join(""))
  }));
    setInterval(() => {}, 1000);`;
  return new Deno.Command(program, {
    args: ["eval", "--no-config", code],
    cwd: ws.path,
    env: ws.env,
    clearEnv: true,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
}
