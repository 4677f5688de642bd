/**
 * Resources that clients read by the address that their server uses.
 *
 * @module
 */

import assert from "node:assert/strict";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { connect } from "./kit/client.ts";
import type { Table } from "./kit/said_server.ts";
import { definitions, filesOf } from "./said_scene.ts";

const link = { type: "resource_link", uri: "mem://linked", name: "l" };
const TABLE: Table = {
  "tools/list": { result: { tools: [] } },
  "resources/list": { result: { resources: [] } },
  "resources/templates/list": {
    result: { resourceTemplates: [{ uriTemplate: "mem://of/{name}", name: "t" }] },
  },
  "prompts/list": { result: { prompts: [{ name: "p" }] } },
  "prompts/get": { result: { messages: [{ role: "user", content: link }] } },
  "resources/read": { result: { contents: [{ uri: "mem://x", text: "read" }] } },
};

Deno.test("an address that a template covers or a prompt links is read without a prefix", async () => {
  const tables = { s: TABLE, other: { "tools/list": { result: { tools: [] } } } };
  await using ws = await makeAttackWorkspace({
    files: filesOf(tables),
    pml: {
      version: 1,
      permissions: { allow: ["s:*", "other:*"] },
      mcpServers: definitions(tables),
    },
  });
  await using connection = await connect(ws, { era: "2026-07-28" });
  const { client } = connection;
  const read = async (uri: string) => (await client.readResource({ uri })).contents[0];
  assert.deepEqual(await read("mem://of/ada"), { uri: "mem://x", text: "read" });
  await assert.rejects(read("mem://linked"), /Cannot find the resource/);
  await client.getPrompt({ name: "s__p" });
  assert.deepEqual(await read("mem://linked"), { uri: "mem://x", text: "read" });
  await client.close();
});
