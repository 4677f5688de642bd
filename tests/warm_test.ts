/**
 * Servers that start before a call: approved ones after the greeting with `warm: true` in the user's
 * `config.yaml`, and the first program with the first list in a new PML home.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ERAS } from "./kit/json_rpc.ts";
import { repoFile } from "./kit/pml_command.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const SCRIPT = repoFile("tests/kit/listing_server.ts");
const LIST = { pages: [[{ name: "echo", inputSchema: { type: "object" } }]] };
const CALL = { tool: "listing:echo", arguments: {} };

interface Scene {
  readonly isWarm?: boolean;
  readonly trusted?: boolean;
  readonly permissions?: Readonly<Record<string, readonly string[]>>;
}

/** Creates a workspace with a server that writes each request into the file `ledger`. */
async function sceneOf({ isWarm = true, trusted = true, permissions }: Scene): Promise<Workspace> {
  const files = { "list.json": JSON.stringify(LIST) };
  const ws = await makeWorkspace({ trusted, files, pml: {} });
  await define(ws, permissions ?? { allow: ["listing:*"] });
  if (isWarm) await writeFile(join(ws.home, "config.yaml"), "warm: true\n", { mode: 0o600 });
  return ws;
}

async function define(ws: Workspace, permissions: Scene["permissions"]): Promise<void> {
  const files = ["list.json", "ledger"].map((name) => ws.file(name));
  const args = ["run", "-A", "--no-config", "--quiet", SCRIPT, ...files];
  const mcpServers = { listing: { command: "deno", args } };
  await writeFile(ws.file(".pml.json"), JSON.stringify({ version: 1, permissions, mcpServers }));
}

async function ledgerOf(ws: Workspace): Promise<string> {
  return await readFile(ws.file("ledger"), "utf8").catch(() => "");
}

for (const era of ERAS) {
  Deno.test(`warm starts an approved server after the greeting, and asks for its tools, on ${era}`, async () => {
    await using ws = await sceneOf({});
    await using pml = new RawStdio(ws, { era });
    await pml.open();
    await pml.request("tools/list");
    await until(async () => (await ledgerOf(ws)).includes("tools/list"));
    assert.match(JSON.stringify(await pml.callTool("call", CALL)), /ran echo/);
    const lines = (await ledgerOf(ws)).split("\n");
    assert.equal(lines.filter((line) => line === "tools/list").length, 1, lines.join());
    await pml.close();
  });
}

/** Starts PML, has it list its tools and call another server. Then an early start is over. */
async function listAndCall(ws: Workspace): Promise<void> {
  await using pml = new RawStdio(ws);
  await pml.open();
  await pml.request("tools/list");
  // A call of another server needs all that an early start needs, and comes after it.
  await pml.callTool("call", { tool: "filesystem:read_file", arguments: { path: "list.json" } });
  await pml.close();
}

Deno.test("the first program starts with the first list in a new PML home, once", async () => {
  await using ws = await sceneOf({ isWarm: false });
  await using pml = new RawStdio(ws);
  await pml.open();
  await pml.request("tools/list");
  await until(async () => (await ledgerOf(ws)).includes("tools/list"));
  assert.match(JSON.stringify(await pml.callTool("call", CALL)), /ran echo/);
  await pml.close();
  const lines = (await ledgerOf(ws)).split("\n");
  assert.equal(lines.filter((line) => line === "initialize").length, 1, lines.join());
  // Its tools are known now.
  await writeFile(ws.file("ledger"), "");
  await listAndCall(ws);
  assert.equal(await ledgerOf(ws), "");
});

for (const isWarm of [true, false]) {
  Deno.test(`a server that differs from its pin starts only after its approval, ${isWarm ? "with warm" : "without warm"}`, async () => {
    await using ws = await sceneOf({ isWarm });
    {
      await using pml = new RawStdio(ws);
      await pml.open();
      assert.match(JSON.stringify(await pml.callTool("call", CALL)), /ran echo/);
      await pml.close();
    }
    const lock = await readFile(ws.file("pml.lock"), "utf8");
    const other = lock.replace('"source": "private"', '"source": "mcp+https://127.0.0.1/other"');
    await writeFile(ws.file("pml.lock"), other);
    await rm(join(ws.home, "lists"), { recursive: true });
    await writeFile(ws.file("ledger"), "");
    await listAndCall(ws);
    assert.equal(await ledgerOf(ws), "");
  });
}

const NOT_STARTED: Readonly<Record<string, Scene>> = {
  "of an untrusted file": { trusted: false },
  "whose tools are all denied": { permissions: { allow: ["*"], deny: ["listing:*"] } },
};

for (const [name, scene] of Object.entries(NOT_STARTED)) {
  Deno.test(`no server starts early ${name}`, async () => {
    for (const isWarm of [true, false]) {
      await using ws = await sceneOf({ ...scene, isWarm });
      await listAndCall(ws);
      assert.equal(await ledgerOf(ws), "");
    }
  });
}
