/**
 * What the command line says of servers behind PML.
 *
 * @module
 */

import assert from "node:assert/strict";
import { full, ledgerOf } from "./full_scene.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const RULES = {
  version: 1,
  permissions: { allow: ["legacy:link"], deny: ["legacy:@prompts"] },
  mcpServers: { legacy: full("legacy") },
};

Deno.test("pml tools starts a server once, and again only with --refresh", async () => {
  await using ws = await makeWorkspace({ pml: RULES, trusted: true });
  const starts = async () =>
    (await ledgerOf(ws, "legacy")).filter((line) => line.startsWith("start")).length;
  for (const _ of [1, 2]) {
    const { code, stdout } = await runPml(ws, ["tools", "legacy"]);
    assert.equal(code, 0);
    assert.match(stdout, /legacy:link\s+runs/);
    assert.equal(await starts(), 1);
  }
  const again = await runPml(ws, ["tools", "--refresh", "legacy"]);
  assert.match(again.stdout, /legacy:link\s+runs/);
  assert.equal(await starts(), 2);
});

Deno.test("pml tools --refresh says of each server what is wrong with it, and lists the others", async () => {
  const lost = { ...full("lost"), env: { KEY: "${NO_SUCH_KEY_HERE}" } };
  const pml = { ...RULES, mcpServers: { legacy: full("legacy"), lost } };
  await using ws = await makeWorkspace({ pml, trusted: true });
  const { code, stdout } = await runPml(ws, ["tools", "--refresh"]);
  assert.equal(code, 0);
  assert.match(stdout, /lost \(private, stdio\) failed: .*NO_SUCH_KEY_HERE/);
  assert.match(stdout, /legacy:link/);
});

Deno.test("pml tools fails with a named server, names it and repeats what it said", async () => {
  const args = ["eval", 'console.error("no licence here"); Deno.exit(3)'];
  const mcpServers = { legacy: full("legacy"), dead: { command: Deno.execPath(), args } };
  await using ws = await makeWorkspace({ pml: { ...RULES, mcpServers }, trusted: true });
  const message = 'Cannot reach "dead": its process ended with exit code 3';
  for (const more of [["--refresh"], []]) {
    const { code, stderr } = await runPml(ws, ["tools", ...more, "dead"]);
    assert.equal(code, 1);
    assert.ok(stderr.startsWith(`error: UPSTREAM_DOWN: ${message}`), stderr);
    assert.match(stderr, /It wrote: no licence here/);
    const asked = await runPml(ws, ["tools", ...more, "--json", "dead"]);
    assert.equal(asked.code, 1);
    const { error } = JSON.parse(asked.stdout);
    assert.ok(error.message.startsWith(message), error.message);
  }
  const all = await runPml(ws, ["tools", "--refresh"]);
  assert.equal(all.code, 0, "the others are there");
  assert.match(all.stdout, /dead \(private, stdio\) failed: Cannot reach "dead": /);
});

Deno.test("pml why says what the rules say of the rest of MCP", async () => {
  await using ws = await makeWorkspace({ pml: RULES, trusted: true });
  const said = async (id: string) => (await runPml(ws, ["why", id])).stdout.split("\n", 1)[0];
  assert.equal(await said("legacy:@resources"), "legacy:@resources: runs");
  assert.equal(await said("legacy:@prompts"), "legacy:@prompts: denied");
  assert.equal(await said("legacy:@sampling"), "legacy:@sampling: asks");
  const { code, stderr } = await runPml(ws, ["why", "legacy:@nothing"]);
  assert.equal(code, 2);
  assert.match(stderr, /it is no SERVER:TOOL/);
});

Deno.test("pml install names the server that it cannot install, and says why", async () => {
  const mcpServers = { far: { type: "http", url: "https://mcp.example.com/mcp" } };
  await using ws = await makeWorkspace({ pml: { version: 1, mcpServers }, trusted: true });
  const wrong = { far: "no command starts it", nobody: "no file of yours defines it" };
  for (const [name, why] of Object.entries(wrong)) {
    const { code, stderr } = await runPml(ws, ["install", "--json", name]);
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`BAD_ARGUMENTS: Cannot install "${name}": ${why}`));
  }
});
