/**
 * Compares the lists of servers of both revisions with and without PML, for clients with different
 * capabilities.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { ledgerOf } from "./full_scene.ts";
import { ERAS, type Json } from "./kit/json_rpc.ts";
import { repoFile } from "./kit/pml_command.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";

const KINDS = ["legacy", "modern"] as const;
const UI = { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html"] } } };
const SETS = [{}, { elicitation: { form: {} } }, { sampling: {} }, UI];
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";

function wire(kind: string) {
  const args = ["run", "-A", "--quiet", repoFile("tests/kit/wire_server.ts"), kind];
  return { command: process.execPath, args: [...args, `./${kind}.ledger`] };
}

async function workspaceOf(): Promise<Workspace> {
  return await makeAttackWorkspace({
    limits: { first_list_ms: 60_000 },
    pml: {
      version: 1,
      gateway: { tools_exposure: "full_proxy" },
      permissions: { allow: KINDS.map((kind) => `${kind}:*`) },
      mcpServers: Object.fromEntries(KINDS.map((kind) => [kind, wire(kind)])),
    },
  });
}

/** Returns the tools of a list, without the names of their servers. */
async function toolsOf(
  pml: RawStdio,
  { prefix = "", able }: { readonly prefix?: string; readonly able?: object } = {},
): Promise<readonly Json[]> {
  const _meta = able === undefined ? {} : { _meta: { [CAPABILITIES]: able } };
  const { result } = await pml.request("tools/list", _meta);
  const tools = result?.tools as unknown as readonly (Json & { readonly name: string })[];
  return tools.filter(({ name }) => name.startsWith(prefix))
    // The newest revision has no `execution` member: tasks are an extension there.
    .map((
      { execution: _, ...tool },
    ) => ({ ...tool, name: tool.name.slice(prefix.length) } as unknown as Json))
    .sort((one, other) => String(one.name) < String(other.name) ? -1 : 1);
}

/** Returns the tools that a client of the server's own revision gets without PML. */
async function direct(ws: Workspace, kind: string, capabilities: object) {
  const { command, args } = wire(kind);
  await using client = new RawStdio(ws, {
    era: kind === "modern" ? "2026-07-28" : "2025-11-25",
    command: [command, ...args.slice(0, -1), "./direct.ledger"],
    capabilities: { ...capabilities },
  });
  await client.open();
  return await toolsOf(client);
}

/** Returns how often a server was started. */
async function startsOf(ws: Workspace, kind: string): Promise<number> {
  return (await ledgerOf(ws, kind)).filter((line) => line.startsWith("start")).length;
}

for (const era of ERAS) {
  Deno.test(`a server lists the same for a client as without PML, whichever client listed first, on ${era}`, async () => {
    await using ws = await workspaceOf();
    // Caches the lists of a client without capabilities for the clients below.
    await runPml(ws, ["tools"]);
    for (const able of [...SETS, ...SETS.toReversed()]) {
      await using pml = new RawStdio(ws, { era, capabilities: { ...able } });
      await pml.open();
      await pml.callTool("search", { query: "anything" });
      for (const kind of KINDS) {
        const shown = await toolsOf(pml, { prefix: `${kind}__` });
        assert.deepEqual(shown, await direct(ws, kind, able), `${kind} ${JSON.stringify(able)}`);
      }
    }
  });
}

Deno.test("a client that declares other capabilities in its next request gets other tools", async () => {
  await using ws = await workspaceOf();
  await using pml = new RawStdio(ws, { era: "2026-07-28", capabilities: {} });
  await pml.open();
  for (const able of [...SETS, ...SETS.toReversed()]) {
    for (const kind of KINDS) {
      const shown = await toolsOf(pml, { prefix: `${kind}__`, able });
      assert.deepEqual(shown, await direct(ws, kind, able), `${kind} ${JSON.stringify(able)}`);
    }
  }
  // Cached lists are reused: only the older server was started anew, once for each set.
  assert.deepEqual([await startsOf(ws, "legacy"), await startsOf(ws, "modern")], [SETS.length, 1]);
});

Deno.test("a server in use is not started anew for another client; after the use it is", async () => {
  await using ws = await workspaceOf();
  await using pml = new RawStdio(ws, { era: "2026-07-28", capabilities: {} });
  await pml.open();
  const able = { sampling: {} };
  const prefix = "legacy__";
  const plain = await toolsOf(pml, { prefix });
  const held = pml.begin("tools/call", { name: "legacy__hold", arguments: {} });
  await until(async () => (await ledgerOf(ws, "legacy")).includes("hold"));
  assert.deepEqual(await toolsOf(pml, { prefix, able }), plain);
  const _meta = { [CAPABILITIES]: able };
  const finish = { name: "legacy__finish", arguments: {}, _meta };
  assert.equal((await pml.request("tools/call", finish)).error, undefined);
  assert.equal((await held.answer).result?.isError, undefined);
  assert.equal(await startsOf(ws, "legacy"), 1);
  await until(async () => (await startsOf(ws, "legacy")) === 2);
  const wanted = JSON.stringify(await direct(ws, "legacy", able));
  await until(async () => JSON.stringify(await toolsOf(pml, { prefix, able })) === wanted);
});

Deno.test("a client that makes up capability sets without end causes few starts, few lists and few files", async () => {
  await using ws = await workspaceOf();
  // The memory of the process is measured.
  await using pml = new RawStdio(ws, { ownProcess: true, era: "2026-07-28", capabilities: {} });
  await pml.open();
  const sizes: number[] = [];
  const since = performance.now();
  for (let at = 0; at < 60; at++) {
    const able = { elicitation: { [`made-up-${at}`]: "x".repeat(20_000) }, sampling: {} };
    await toolsOf(pml, { able });
    if (at % 20 === 19) sizes.push(await memoryOf(pml.pid));
  }
  // The newest revision declares capabilities with each request, so earlier sets have no effect.
  const able = { sampling: {} };
  assert.deepEqual(
    await toolsOf(pml, { prefix: "modern__", able }),
    await direct(ws, "modern", able),
  );
  const more = Math.ceil((performance.now() - since) / 30_000);
  assert.ok(await startsOf(ws, "legacy") <= 9 + more, `${await startsOf(ws, "legacy")} starts`);
  assert.equal(await startsOf(ws, "modern"), 1);
  const files = await Array.fromAsync(Deno.readDir(`${ws.home}/lists`));
  for (const kind of KINDS) {
    assert.ok(files.filter(({ name }) => name.startsWith(`${kind}-`)).length <= 9);
  }
  const [first = 0, , last = 0] = sizes;
  assert.ok(last - first < 100_000_000, `grew from ${first} to ${last} bytes`);
});

Deno.test("two clients that take turns start a server only a few times, and both get answers", async () => {
  await using ws = await workspaceOf();
  await using pml = new RawStdio(ws, { era: "2026-07-28", capabilities: {} });
  await pml.open();
  const since = performance.now();
  for (let at = 0; at < 40; at++) {
    const _meta = { [CAPABILITIES]: at % 2 === 0 ? {} : { sampling: {} } };
    const plain = { name: "legacy__plain", arguments: {}, _meta };
    const { result, error } = await pml.request("tools/call", plain);
    assert.deepEqual([error, result?.isError], [undefined, undefined]);
  }
  const more = Math.ceil((performance.now() - since) / 30_000);
  const starts = await startsOf(ws, "legacy");
  assert.ok(starts <= 9 + more, `${starts} starts`);
});

/** Returns the resident memory of a process in bytes. */
async function memoryOf(pid: number): Promise<number> {
  const [, pages] = (await Deno.readTextFile(`/proc/${pid}/statm`)).split(" ");
  return Number(pages) * 4_096;
}
