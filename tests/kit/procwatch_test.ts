import assert from "node:assert/strict";
import process from "node:process";
import { openFiles, ProcWatch, rssOf, treeOf } from "./procwatch.ts";
import { waitUntil } from "./wait.ts";
import { makeWorkspace } from "./workspace.ts";

const SLEEP = ["-c", "sleep 600 & wait"];

function spawnShell(options: Deno.CommandOptions): Deno.ChildProcess {
  return new Deno.Command("sh", { args: SLEEP, stdout: "null", stderr: "null", ...options })
    .spawn();
}

Deno.test("ProcWatch finds a process by the tag in its environment, and its end", async () => {
  await using ws = await makeWorkspace();
  const watch = new ProcWatch(ws);
  await watch.assertNothingLeft();
  const shell = spawnShell({ env: ws.env });
  assert.ok(
    await waitUntil(async () => (await watch.living()).length === 2),
    "the shell and sleep",
  );
  await assert.rejects(watch.assertNothingLeft({ withinMs: 50 }), /sleep 600/);
  for (const { pid } of await watch.living()) Deno.kill(pid, "SIGKILL");
  await shell.status;
  await watch.assertNothingLeft();
});

Deno.test("ProcWatch finds a process without the tag in its environment by its folder", async () => {
  await using ws = await makeWorkspace();
  const watch = new ProcWatch(ws);
  const shell = spawnShell({ clearEnv: true, env: { PATH: ws.env.PATH ?? "" }, cwd: ws.path });
  assert.ok(
    await waitUntil(async () => (await watch.living()).length === 2),
    "the shell and sleep",
  );
  for (const { pid } of await watch.living()) Deno.kill(pid, "SIGKILL");
  await shell.status;
  await watch.assertNothingLeft();
});

Deno.test("ProcWatch remembers grandchildren without a tag after their parent's end", async () => {
  const watch = new ProcWatch({ tag: "no_such_tag", since: 0 });
  const shell = spawnShell({ clearEnv: true, env: {} });
  assert.ok(await waitUntil(async () => (await treeOf(shell.pid)).length === 2), "no grandchild");
  await watch.remember(shell.pid);
  shell.kill("SIGKILL");
  await shell.status;
  await assert.rejects(watch.assertNothingLeft({ withinMs: 50 }), /sleep 600/);
  for (const { pid } of await watch.living()) Deno.kill(pid, "SIGKILL");
  await watch.assertNothingLeft();
});

Deno.test("rssOf() and openFiles() inspect a process", async () => {
  assert.ok(await rssOf(process.pid) > 10_000_000);
  assert.equal(await rssOf(0), 0);
  assert.ok((await openFiles(process.pid)).length > 2);
});
