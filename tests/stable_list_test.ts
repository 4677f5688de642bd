/**
 * The text that a model reads with every request: `tools/list` does not depend on the servers, and
 * the instructions name the tools at hand.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeScene } from "./attacks/stage.ts";
import { connect } from "./kit/client.ts";
import { ERAS } from "./kit/json_rpc.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const TINY = { command: "deno", args: ["run", "-A", "./tiny.js"] };

function pmlFile(servers: readonly string[], more: object = {}): Readonly<Record<string, unknown>> {
  return {
    version: 1,
    permissions: { allow: ["one:*", "filesystem:*"], deny: ["two:*", "git:blame"] },
    mcpServers: Object.fromEntries(servers.map((name) => [name, TINY])),
    ...more,
  };
}

async function workspaceOf(pml: object): Promise<Workspace> {
  return await makeWorkspace({
    files: { "tiny.js": tinyServer("params.arguments") },
    pml: pml as Readonly<Record<string, unknown>>,
  });
}

for (const era of ERAS) {
  Deno.test(`servers that come and go change no byte of the list, on ${era}`, async () => {
    await using scene = await makeScene({
      era,
      files: { "tiny.js": tinyServer("params.arguments") },
      pml: pmlFile([]),
    });
    const { pml, ws } = scene;
    const list = async () => JSON.stringify((await pml.request("tools/list", {})).result?.tools);
    const first = await list();
    const lists = async (name: string) => {
      const { result } = await pml.callTool("search", { server: name });
      return String(result?.content?.[0]?.text).includes(`${name}:tell`);
    };
    const file = join(ws.path, ".pml.json");
    const change = (pml: object) => writeFile(file, JSON.stringify(pml));
    await change(pmlFile(["one", "three"]));
    await until(async () => await lists("one") && await lists("three"));
    assert.equal(await list(), first, "servers were added");
    const disabled = { one: TINY, three: { ...TINY, disabled: true } };
    await change(pmlFile([], { mcpServers: disabled }));
    await until(async () => !await lists("three"));
    assert.equal(await list(), first, "a server was disabled");
    await change(pmlFile(["three"]));
    await until(async () => !await lists("one"));
    assert.equal(await list(), first, "a server was removed");
    // Two further processes, at the same time.
    const options = { era, clientName: "other" };
    await using one = await connect(ws, options);
    await using other = await connect(ws, options);
    for (const { client } of [one, other]) {
      const { tools } = await client.listTools();
      assert.deepEqual(tools, JSON.parse(first));
      assert.equal(JSON.stringify(tools), JSON.stringify(JSON.parse(first)));
    }
  });
}

Deno.test("instructions name the tools that may be called, once a search has listed them", async () => {
  await using ws = await workspaceOf(pmlFile(["one", "two"]));
  const instructionsAfter = async (work: (search: () => Promise<unknown>) => Promise<unknown>) => {
    await using connection = await connect(ws);
    const { client } = connection;
    await work(() => client.callTool({ name: "search", arguments: { query: "tell" } }));
    return client.getInstructions() ?? "";
  };
  const first = await instructionsAfter((search) => search());
  assert.match(first, /^Servers: .*one/m);
  assert.doesNotMatch(first, /tell/);
  const next = await instructionsAfter(() => Promise.resolve());
  assert.match(next, /^- one: tell\(\)$/m);
  assert.match(next, /^- git: .*\bcommit\b/m);
  assert.doesNotMatch(next, /blame|two/, "denied tools and servers are not named");
  assert.ok(next.length <= 2_000, `${next.length} characters`);
  // A rule applies to names that were written before it, and another command is another server.
  await writeFile(
    join(ws.path, ".pml.json"),
    JSON.stringify(pmlFile([], { mcpServers: { one: { ...TINY, env: { A: "1" } } } })),
  );
  const changed = await instructionsAfter(() => Promise.resolve());
  assert.doesNotMatch(changed, /one: tell/);
  const denied = { version: 1, permissions: { deny: ["git:commit"] } };
  await writeFile(join(ws.path, ".pml.json"), JSON.stringify(denied));
  assert.doesNotMatch(await instructionsAfter(() => Promise.resolve()), /\bcommit\b/);
});

Deno.test("instructions name no tools without call, with tool sets, or if all tools are listed", async () => {
  const toolsets = "toolsets: { reading: ['filesystem:read_file'] }\n";
  const cases: readonly (readonly [gateway: object, config: string])[] = [
    [{ tools_exposure: "full_proxy" }, ""],
    [{ meta_tools: ["search"] }, ""],
    [{}, `${toolsets}client_toolsets: { someone: reading }\n`],
  ];
  for (const [gateway, config] of cases) {
    await using ws = await workspaceOf(pmlFile(["one"], { gateway }));
    await writeFile(join(ws.home, "config.yaml"), config);
    for (const turn of [1, 2]) {
      await using connection = await connect(ws);
      const { client } = connection;
      await client.callTool({ name: "search", arguments: { query: "tell" } }).catch(() => {});
      const text = client.getInstructions() ?? "";
      assert.doesNotMatch(text, /\bcommit\b|one: tell/, `${JSON.stringify(gateway)} ${turn}`);
    }
  }
});
