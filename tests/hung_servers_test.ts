import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeScene } from "./attacks/stage.ts";
import { codeOf, textOf } from "./attacks/oracles.ts";
import { FullHttp } from "./kit/full_http.ts";
import type { Message } from "./kit/json_rpc.ts";
import { runPml } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace } from "./kit/workspace.ts";
import { type Said, type ScriptScene, scriptScene } from "./script_scene.ts";

/** Longer than the 10 s after which a silent server gets a ping, and the 1 s for its answer. */
const LIMITS = { call_ms: 15_000 };
const SILENT: Said = { silent: true };

function begin({ pml }: ScriptScene, said: Said, token?: string) {
  const _meta = token && { _meta: { progressToken: token } };
  return pml.begin("tools/call", { name: "s__run", arguments: said, ..._meta });
}

function progressOf({ pml }: ScriptScene, token: string): readonly string[] {
  return pml.messages.map(({ params = {} }) => params)
    .filter(({ progressToken }) => progressToken === token)
    .map(({ message }) => String(message));
}

async function pids({ ledger }: ScriptScene): Promise<readonly number[]> {
  const starts = (await ledger()).filter((line) => line.startsWith("start "));
  return starts.map((line) => Number(line.split(" ")[1]));
}

async function callsRun({ ledger }: ScriptScene): Promise<number> {
  return (await ledger()).filter((line) => line.startsWith("call run")).length;
}

/** Stops the server's process once it has received one more call than before. */
async function stopped(scene: ScriptScene, before: number): Promise<number> {
  await until(async () => await callsRun(scene) > before);
  const pid = (await pids(scene)).at(-1) ?? 0;
  Deno.kill(pid, "SIGSTOP");
  return pid;
}

function assertEnded(answer: Message): void {
  assert.equal(codeOf(answer), "UPSTREAM_DOWN");
  const text = `${textOf(answer)}${answer.error?.message}`;
  assert.match(
    text,
    / 1\d s, was restarted;/,
  );
}

/** Asserts that the first result after a restart has a remark, and the second one has none. */
async function assertRestarted(scene: ScriptScene): Promise<void> {
  const first = textOf(await scene.call());
  assert.match(first, /^done\s*\[PML: "s" did not answer .* it was restarted\. .* lost\]$/);
  assert.equal(textOf(await scene.call()), "done");
}

Deno.test("the next result after a cancelled call names the restart of a blocked server", async () => {
  await using scene = await scriptScene("2025-11-25");
  const { pml } = scene;
  const before = await callsRun(scene);
  const { id, answer } = begin(scene, { steps: [{ block: 60_000 }] });
  answer.catch(() => {}); // a cancelled call is never answered
  await until(async () => await callsRun(scene) > before);
  await pml.notify("notifications/cancelled", { requestId: id });
  // The server has a second for the ping that follows a cancelled call.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  await assertRestarted(scene);
  assert.equal((await pids(scene)).length, 2);
});

Deno.test("a server that is stopped until a call's deadline is restarted", async () => {
  await using scene = await scriptScene("2026-07-28", { limits: LIMITS });
  const before = await callsRun(scene);
  const first = begin(scene, SILENT, "first").answer;
  const pid = await stopped(scene, before);
  // Its other calls begin later, and all of them end with the first one.
  const second = begin(scene, SILENT).answer;
  await until(() => progressOf(scene, "first").length > 0);
  const third = begin(scene, SILENT, "third").answer;
  assert.equal(codeOf(await first), "TIMED_OUT");
  assertEnded(await second);
  assertEnded(await third);
  const said = progressOf(scene, "first");
  assert.equal(said.filter((one) => one === "s has not answered for 10 s").length, 1);
  assert.match(said.at(-1) ?? "", /^s .* 10 s$/);
  await until(async () => (await pids(scene)).length === 2);
  await assertRestarted(scene);
  assert.ok(!(await pids(scene)).slice(1).includes(pid));
  assert.equal((await scene.pml.close()).code, 0);
  await scene.pml.watch.assertNothingLeft();
});

Deno.test("a busy server that answers nothing before its deadline keeps its calls", async () => {
  await using scene = await scriptScene("2025-11-25", { limits: { call_ms: 60_000 } });
  const blocks = begin(scene, { steps: [{ block: 13_000 }] }, "p").answer;
  const behind = begin(scene, {}, "q").answer;
  for (const answer of [blocks, behind]) assert.equal(textOf(await answer), "done");
  for (const token of ["p", "q"]) {
    assert.ok(progressOf(scene, token).some((one) => / 10 s$/.test(one)), token);
  }
  assert.equal(textOf(await scene.call()), "done");
  assert.equal((await pids(scene)).length, 1);
});

Deno.test("a server that does not answer after a cancelled call is restarted when no other call waits", async () => {
  await using scene = await scriptScene("2025-11-25");
  const { pml } = scene;
  const before = await callsRun(scene);
  const { id, answer } = begin(scene, SILENT);
  answer.catch(() => {}); // a cancelled call is never answered
  await stopped(scene, before);
  await pml.notify("notifications/cancelled", { requestId: id });
  // PML restarts it without another call.
  await until(async () => (await pids(scene)).length === 2);
  await assertRestarted(scene);
  assert.equal((await pids(scene)).length, 2);
  assert.equal((await pml.close()).code, 0);
  await pml.watch.assertNothingLeft();
});

for (const kind of ["legacy", "modern"] as const) {
  Deno.test(`the connection to a server that is silent over HTTP is closed (${kind})`, async () => {
    let hangs: Promise<undefined> | undefined;
    const released = Promise.withResolvers<undefined>();
    await using http = new FullHttp(kind, { guard: async () => await hangs });
    // The server ends only after its requests.
    using _release = { [Symbol.dispose]: () => released.resolve(undefined) };
    const pml = {
      version: 1,
      permissions: { allow: ["far:*"] },
      mcpServers: { far: { type: "http", url: http.url } },
    };
    await using scene = await makeScene({ pml, limits: LIMITS });
    const call = () =>
      scene.pml.begin("tools/call", { name: "call", arguments: { tool: "far:meta" } }).answer;
    await until(async () => (await call()).result?.isError === undefined);
    hangs = released.promise;
    const { length } = http.asked;
    const first = call();
    await until(() => http.asked.length > length);
    // The second call's deadline is later than that of the first.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const second = call();
    assert.equal(codeOf(await first), "TIMED_OUT");
    assertEnded(await second);
    hangs = undefined;
    released.resolve(undefined);
    assert.equal((await call()).result?.isError, undefined);
  });
}

Deno.test("pml doctor names a server that does not answer a running PML", async () => {
  await using ws = await makeWorkspace({ pml: { version: 1 } });
  const folder = join(ws.home, "unresponsive");
  await mkdir(folder, { recursive: true });
  const note = async (server: string, pid: number) =>
    await writeFile(
      join(folder, `${server}-${pid}.json`),
      JSON.stringify({ server, pid, since: 0 }),
    );
  await note("slow", Deno.pid);
  await note("gone", 999_999_999);
  const { stdout } = await runPml(ws, ["doctor"]);
  const text = `has not answered the PML of process ${Deno.pid} since 1970-01-01T00:00:00.000Z`;
  assert.ok(stdout.includes(`warn server slow: ${text}`), stdout);
  assert.ok(!stdout.includes("gone"));
  assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), [
    `slow-${Deno.pid}.json`,
  ]);
});
