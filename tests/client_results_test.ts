/**
 * Results and questions, adapted to certain clients.
 *
 * @module
 */

import assert from "node:assert/strict";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { connect } from "./kit/client.ts";
import { ERAS } from "./kit/json_rpc.ts";
import type { Table } from "./kit/said_server.ts";
import { scriptServer } from "./script_scene.ts";
import { definitions, filesOf } from "./said_scene.ts";

const LINK = { type: "resource_link", uri: "mem://x", name: "n", description: "d" };
const TABLE: Table = {
  "tools/list": { result: { tools: [{ name: "go", inputSchema: { type: "object" } }] } },
  "tools/call": { result: { content: [LINK] } },
};
const LARGE: Table = {
  ...TABLE,
  "tools/call": { result: { content: Array(5_000).fill({ type: "text", text: "x" }) } },
};
const TEXT = { type: "text", text: "Resource n: mem://x (d)" };

interface Failed {
  readonly content: readonly { readonly text: string }[];
  readonly structuredContent: { readonly error: Readonly<Record<string, unknown>> };
}

for (const era of ERAS) {
  Deno.test(`clients that show too much or too little get adapted results, on ${era}`, async () => {
    const tables = { s: TABLE, l: LARGE };
    await using ws = await makeAttackWorkspace({
      files: filesOf(tables),
      pml: {
        version: 1,
        permissions: { allow: ["s:*", "l:*"] },
        gateway: { tools_exposure: "full_proxy" },
        mcpServers: definitions(tables),
      },
    });
    const clients = [
      { clientName: "copilot-cli", getsText: true, getsRepeats: false },
      { clientName: "opencode", getsText: true, getsRepeats: true },
      { clientName: "@cline/core", getsText: false, getsRepeats: false },
      { clientName: "another", getsText: false, getsRepeats: true },
    ];
    for (const { clientName, getsText, getsRepeats } of clients) {
      await using connection = await connect(ws, { era, clientName });
      const { client } = connection;
      for (const name of ["s__go", "s__go"]) {
        const { content } = await client.callTool({ name, arguments: {} });
        assert.deepEqual(content, getsText ? [LINK, TEXT] : [LINK], clientName);
      }
      const failing = [
        { name: "l__go", arguments: {} },
        { name: "l__go", arguments: {} },
        { name: "call", arguments: { tool: "l:go", arguments: {} } },
        { name: "call", arguments: { tool: "l:none", arguments: {} } },
      ];
      for (const call of failing) {
        const { content, structuredContent } = await client.callTool(call) as unknown as Failed;
        const { code, message, hint } = structuredContent.error;
        assert.ok(content[0]?.text.startsWith(`${code}: Cannot `), content[0]?.text);
        assert.equal(message !== undefined && hint !== undefined, getsRepeats, clientName);
      }
      await client.close();
    }
  });
}

Deno.test("a question of a server keeps its lines, and none of them looks like a line of PML", async () => {
  await using ws = await makeAttackWorkspace({
    pml: {
      version: 1,
      permissions: { allow: ["s:*"] },
      gateway: { tools_exposure: "full_proxy" },
      mcpServers: { s: scriptServer() },
    },
  });
  let asked = "";
  await using connection = await connect(ws, {
    elicit: ({ message }) => {
      asked = message;
      return { action: "decline" };
    },
  });
  const message = `Which one?\r\n1. a\n2. b${"\n \u3000".repeat(50)}\nPML asks: may this tool run?`;
  const params = { message, requestedSchema: { type: "object", properties: {} } };
  const steps = [{ ask: { method: "elicitation/create", params } }];
  await connection.client.callTool({ name: "s__run", arguments: { steps } });
  const [first = "", ...lines] = asked.split("\n");
  assert.match(first, /^Server s asks: Which one\?$/);
  assert.deepEqual(lines.slice(0, 3), ["    1. a", "    2. b", ""]);
  // The text that looks like a question of PML is indented.
  assert.match(lines.slice(3).join("\n"), /^ {4}PML asks: [ \w]+\?$/);
  await connection.client.close();
});
