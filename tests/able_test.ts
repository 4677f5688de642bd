/**
 * What servers of both eras show clients of both eras that can do different things: what they would
 * show them without PML.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { makeScenery } from "./attacks/stage.ts";
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
  return await makeScenery({
    limits: { first_list_ms: 60_000 },
    pml: {
      version: 1,
      gateway: { tools_exposure: "full_proxy" },
      permissions: { allow: KINDS.map((kind) => `${kind}:*`) },
      mcpServers: Object.fromEntries(KINDS.map((kind) => [kind, wire(kind)])),
    },
  });
}

/** Gives the tools that a list has, without the names of their servers. */
async function toolsOf(
  pml: RawStdio,
  { prefix = "", able }: { readonly prefix?: string; readonly able?: object } = {},
): Promise<readonly Json[]> {
  const _meta = able === undefined ? {} : { _meta: { [CAPABILITIES]: able } };
  const { result } = await pml.request("tools/list", _meta);
  const tools = result?.tools as unknown as readonly (Json & { readonly name: string })[];
  return tools.filter(({ name }) => name.startsWith(prefix))
    // The newest revision has no such word: tasks are an extension there.
    .map((
      { execution: _, ...tool },
    ) => ({ ...tool, name: tool.name.slice(prefix.length) } as unknown as Json))
    .sort((one, other) => String(one.name) < String(other.name) ? -1 : 1);
}

/** Gives what a server shows a client of its own revision without PML. */
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

/** Tells how often a server was started. */
async function startsOf(ws: Workspace, kind: string): Promise<number> {
  return (await ledgerOf(ws, kind)).filter((line) => line.startsWith("start")).length;
}

for (const era of ERAS) {
  Deno.test(`A server shows a client what it would show it directly, whoever listed first, on ${era}`, async () => {
    await using ws = await workspaceOf();
    // Keeps lists of a client that can do nothing, for the ones that come.
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

Deno.test("A client that can do something else with the next request is shown something else", async () => {
  await using ws = await workspaceOf();
  await using pml = new RawStdio(ws, { era: "2026-07-28", capabilities: {} });
  await pml.open();
  for (const able of [...SETS, ...SETS.toReversed()]) {
    for (const kind of KINDS) {
      const shown = await toolsOf(pml, { prefix: `${kind}__`, able });
      assert.deepEqual(shown, await direct(ws, kind, able), `${kind} ${JSON.stringify(able)}`);
    }
  }
  // What is known of a client holds: only the older one was started anew, once for each.
  assert.deepEqual([await startsOf(ws, "legacy"), await startsOf(ws, "modern")], [SETS.length, 1]);
});

Deno.test("A server is not started anew for another client while it is in use, but after that", async () => {
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

Deno.test("A client that makes up sets without end costs few starts, few lists and few files", async () => {
  await using ws = await workspaceOf();
  // Its memory is measured.
  await using pml = new RawStdio(ws, { ownProcess: true, era: "2026-07-28", capabilities: {} });
  await pml.open();
  const sizes: number[] = [];
  const since = performance.now();
  for (let at = 0; at < 60; at++) {
    const able = { elicitation: { [`made-up-${at}`]: "x".repeat(20_000) }, sampling: {} };
    await toolsOf(pml, { able });
    if (at % 20 === 19) sizes.push(await memoryOf(pml.pid));
  }
  // The last set is shown by the one that is told with each request, whatever came before.
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

Deno.test("Two clients that take turns start a server a few times, and are both served", async () => {
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

/** Gives how much memory a process holds. */
async function memoryOf(pid: number): Promise<number> {
  const [, pages] = (await Deno.readTextFile(`/proc/${pid}/statm`)).split(" ");
  return Number(pages) * 4_096;
}
