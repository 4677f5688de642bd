/**
 * Tool sets of clients, selected by the client's name: they apply to lists, to search and to each
 * way to call.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Client } from "@modelcontextprotocol/client";
import { called, capabilityScene, PARIS, savedCode } from "./capability_scene.ts";
import { withoutTypeCheck } from "./attacks/code_tools.ts";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { connect } from "./kit/client.ts";
import { ERAS } from "./kit/json_rpc.ts";
import { servePml } from "./kit/pml_serve.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";

const READING = ["filesystem:read_file", "filesystem:list_directory"];
const CONFIG = {
  toolsets: { reading: READING },
  client_toolsets: { "Small Editor": "reading" },
  gateway: {
    tools_exposure: "hybrid",
    hybrid: { apply_semantic_filter: false, max_underlying_tools: 200 },
  },
};
const WRITE = { path: "made.txt", content: "x" };
const REFUSED = /PERMISSION_DENIED/;

async function scenery(config: object = CONFIG): Promise<Workspace> {
  const ws = await makeAttackWorkspace({ files: { "a.txt": "hello" } });
  await Deno.writeTextFile(`${ws.home}/config.yaml`, JSON.stringify(config));
  return ws;
}

async function said(client: Client, name: string, args: Record<string, unknown>): Promise<string> {
  return JSON.stringify(await client.callTool({ name, arguments: args }));
}

/** Asserts that a client can reach only the tools that read, in every way. */
async function assertReads(client: Client): Promise<void> {
  const { tools } = await client.listTools();
  const listed = tools.map(({ name }) => name).filter((name) => name.includes("__"));
  assert.deepEqual(listed.sort(), ["filesystem__list_directory", "filesystem__read_file"]);
  assert.match(await said(client, "search", { query: "read a file" }), /filesystem:read_file/);
  const found = await said(client, "search", { query: "write a file" });
  assert.doesNotMatch(found, /write_file/);
  const schema = await said(client, "schema", { tools: ["filesystem:write_file"] });
  assert.match(schema, /UNKNOWN_TOOL/);

  const read = { tool: "filesystem:read_file", arguments: { path: "a.txt" } };
  assert.match(await said(client, "call", read), /hello/);
  const write = { tool: "filesystem:write_file", arguments: WRITE };
  assert.match(await said(client, "call", write), REFUSED);
  assert.match(await said(client, "filesystem__write_file", WRITE), REFUSED);
  assert.match(await said(client, "batch", { calls: [write] }), REFUSED);
  const plan = { tasks: [{ id: "w", ...write }] };
  assert.match(await said(client, "execute_workflow", { plan }), REFUSED);
  const code = withoutTypeCheck(
    `return await mcp["filesystem:write_file"](${JSON.stringify(WRITE)})`,
  );
  assert.match(await said(client, "execute_code", { code }), REFUSED);
  const intent = "write the text 'x' to the file made.txt";
  assert.doesNotMatch(await said(client, "execute_workflow", { intent }), /write_file/);
}

async function assertWrites(client: Client): Promise<void> {
  assert.match(JSON.stringify(await client.listTools()), /filesystem__write_file/);
  assert.match(await said(client, "search", { query: "write a file" }), /write_file/);
  const write = { tool: "filesystem:write_file", arguments: WRITE };
  assert.doesNotMatch(await said(client, "call", write), REFUSED);
}

for (const era of ERAS) {
  Deno.test(`a client with a tool set has no other tools, on ${era}`, async () => {
    await using ws = await scenery();
    await using served = await servePml(ws);
    await using small = await served.connect({ era, clientName: "small editor" });
    await using other = await served.connect({ era, clientName: "other" });
    await assertReads(small.client);
    await assert.rejects(Deno.stat(ws.file(WRITE.path)), "nothing was written so far");
    await assertWrites(other.client);
    await assertReads(small.client);
    // An attached `pml stdio` is a client, too.
    await using attached = await connect(ws, { era, clientName: "Small Editor" });
    await assertReads(attached.client);
  });
}

Deno.test("pml stdio applies the tool set of its client's name", async () => {
  await using ws = await scenery();
  await using small = await connect(ws, { era: "2026-07-28", clientName: "Small Editor" });
  await assertReads(small.client);
  await using other = await connect(ws, { era: "2026-07-28", clientName: "other" });
  await assertWrites(other.client);
  // A change applies soon, and a missing set has no tools.
  const changed = { ...CONFIG, client_toolsets: { other: "gone" } };
  await Deno.writeTextFile(`${ws.home}/config.yaml`, JSON.stringify(changed));
  const read = { tool: "filesystem:read_file", arguments: { path: "a.txt" } };
  const write = { tool: "filesystem:write_file", arguments: WRITE };
  await until(async () => REFUSED.test(await said(other.client, "call", read)));
  await until(async () => !REFUSED.test(await said(small.client, "call", write)));
  await until(() => /no tool set "gone"/.test(other.raw.stderr));
  await Deno.writeTextFile(`${ws.home}/config.yaml`, "limits: [");
  await until(() => /error CONFIG_INVALID/.test(other.raw.stderr));
});

Deno.test("a capability is a tool of a set by its own name, and calls only tools of the set", async () => {
  await using scene = await capabilityScene("2026-07-28");
  const { pml, ws } = scene;
  const parameters = { city: "Paris", days: 3 };
  await savedCode(pml, PARIS, { name: "my:weather", parameters });
  const call = () => called(pml, "my:weather", { city: "Rome", days: 5 });
  assert.match(await call(), /Rome for 5/);
  const choose = (tools: readonly string[]) =>
    Deno.writeTextFile(
      `${ws.home}/config.yaml`,
      JSON.stringify({ toolsets: { chosen: tools }, gateway: { toolset: "chosen" } }),
    );
  await choose(["weather:get"]);
  await until(async () => REFUSED.test(await call()));
  await choose(["weather:get", "my:weather"]);
  await until(async () => /Rome for 5/.test(await call()));
  await choose(["my:weather"]);
  await until(async () => REFUSED.test(await call()));
});
