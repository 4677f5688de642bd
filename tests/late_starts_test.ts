/**
 * A server that did not start in time: later commands do not wait for it that long again. The second
 * limit is far beyond the time of a test, so a command that waits never ends.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { assertError } from "./cli_greeter.ts";
import { gatedServer } from "./kit/gated_server.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

async function limitStarts(ws: Workspace, ms: number): Promise<void> {
  await writeFile(join(ws.home, "config.yaml"), `limits: { start_ms: ${ms} }\n`);
}

Deno.test("commands wait once for a server that does not start in time, until --refresh", async () => {
  await using ws = await makeWorkspace({ pml: { mcpServers: { slow: gatedServer("slow") } } });
  const remembered = () => readdir(join(ws.home, "late_starts"));
  await limitStarts(ws, 300);
  assertError(await runPml(ws, ["tools", "slow"]), { code: "TIMED_OUT", exit: 1 });
  assert.equal((await remembered()).length, 1);
  await limitStarts(ws, 600_000);
  assertError(await runPml(ws, ["tools", "slow"]), { code: "TIMED_OUT", exit: 1 });
  const { stdout } = await runPml(ws, ["doctor", "--json"]);
  const findings: { name: string; ok: boolean }[] = JSON.parse(stdout).findings;
  assert.equal(findings.find(({ name }) => name === "server slow")?.ok, false, stdout);
  for (const args of [["tools", "--json"], ["config", "--json"], ["search", "slow", "--json"]]) {
    assert.equal((await runPml(ws, args)).code, 0, args.join(" "));
  }
  await writeFile(ws.file("slow.gate"), "");
  assert.equal((await runPml(ws, ["tools", "slow", "--refresh"])).code, 0);
  assert.deepEqual(await remembered(), []);
});

Deno.test("commands wait once for a module that does not load in time", async () => {
  await using ws = await makeWorkspace({
    files: { "hang.js": "export const __meta__ = {};\nfor (;;) {}\n" },
    pml: { private_mcps: { hang: { type: "deno", path: "./hang.js" } } },
  });
  await limitStarts(ws, 2_000);
  assertError(await runPml(ws, ["tools", "hang"]), { code: "SANDBOX_CRASHED", exit: 1 });
  await limitStarts(ws, 600_000);
  assertError(await runPml(ws, ["tools", "hang"]), { code: "SANDBOX_CRASHED", exit: 1 });
  assert.equal((await runPml(ws, ["tools", "--json"])).code, 0);
  // Another code is another module.
  const meta = { name: "hang", description: "x", tools: {} };
  await writeFile(ws.file("hang.js"), `export const __meta__ = ${JSON.stringify(meta)};`);
  const { stdout } = await runPml(ws, ["tools", "--json"]);
  const servers: { name: string; state: string }[] = JSON.parse(stdout).servers;
  assert.notEqual(servers.find(({ name }) => name === "hang")?.state, "failed", stdout);
});
