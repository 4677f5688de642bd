/**
 * Results of servers that break the protocol in one member: all other members reach the client,
 * with each way to call a tool.
 *
 * @module
 */

import assert from "node:assert/strict";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { connect } from "./kit/client.ts";
import { ERAS } from "./kit/json_rpc.ts";
import { NEWEST, servedOverHttp, type Table } from "./kit/said_server.ts";
import { definitions, filesOf } from "./said_scene.ts";

const SAID = { type: "text", text: "said" };
const LINK = { type: "resource_link", uri: "mem://x", name: "n", title: null, size: null };

/** Results of a tool, by their odd member; `true` for those that need a remark. */
const RESULTS: readonly (readonly [what: string, result: unknown, isRemarked?: true])[] = [
  ["annotations are null", { content: [{ ...SAID, annotations: null, _meta: null }] }],
  ["_meta is null", { content: [SAID], _meta: null }],
  ["isError is null", { content: [SAID], isError: null }],
  ["a block is null", { content: [SAID, null] }],
  ["members of a link are null", { content: [SAID, LINK] }],
  ["a type is unknown", { content: [{ type: "error", text: "said" }] }, true],
  ["an image has no type", { content: [SAID, { type: "image", data: "AA==" }] }, true],
  ["a priority is 5", { content: [{ ...SAID, annotations: { priority: 5 } }] }, true],
  ["the result is a text", "said", true],
];
const TABLE: Table = {
  "tools/list": { result: { tools: [{ name: "go", inputSchema: { type: "object" } }] } },
  "tools/call": RESULTS.flatMap(([, result]) => Array(2).fill({ result })),
  "prompts/list": { result: { prompts: [{ name: "p" }] } },
  "prompts/get": {
    result: {
      description: null,
      messages: [{ role: "user", content: { ...SAID, annotations: null } }],
    },
  },
  "resources/list": { result: { resources: [{ uri: "mem://x", name: "x" }] } },
  "resources/read": { result: { contents: [{ uri: "mem://x", mimeType: null, text: "said" }] } },
};

for (const era of ERAS) {
  Deno.test(`odd members of results lose nothing else, on ${era}`, async () => {
    await using older = servedOverHttp(TABLE);
    await using newest = servedOverHttp({ ...NEWEST, ...TABLE });
    const tables = { s: TABLE, n: { ...NEWEST, ...TABLE } };
    const url = (server: Deno.HttpServer<Deno.NetAddr>) => `http://127.0.0.1:${server.addr.port}/`;
    await using ws = await makeAttackWorkspace({
      files: filesOf(tables),
      pml: {
        version: 1,
        permissions: { allow: ["s:*", "n:*", "hs:*", "hn:*"] },
        gateway: { tools_exposure: "full_proxy" },
        mcpServers: {
          ...definitions(tables),
          hs: { type: "http", url: url(older) },
          hn: { type: "http", url: url(newest) },
        },
      },
    });
    await using connection = await connect(ws, { era });
    const { client } = connection;
    for (const server of ["s", "n", "hs", "hn"]) {
      for (const [what, , isRemarked = false] of RESULTS) {
        const calls = [
          { name: `${server}__go`, arguments: {} },
          { name: "call", arguments: { tool: `${server}:go` } },
        ];
        for (const call of calls) {
          const { content, isError } = await client.callTool(call);
          const texts = (content as readonly { readonly text?: string }[])
            .map(({ text = "" }) => text);
          assert.ok(texts.includes("said") && isError !== true, `${server}, ${what}: ${texts}`);
          const remarks = texts.filter((text) => /^\[PML: The tool did run\./.test(text));
          assert.equal(remarks.length, isRemarked ? 1 : 0, `${server}, ${what}: ${texts}`);
        }
      }
      // The last result stays. Code gets it without the remark.
      const code = `return await mcp.${server}.go({});`;
      const ran = JSON.stringify(
        await client.callTool({ name: "execute_code", arguments: { code } }),
      );
      assert.ok(ran.includes("said") && !ran.includes("The tool did run"), ran);
      const { messages } = await client.getPrompt({ name: `${server}__p` });
      assert.deepEqual(messages, [{ role: "user", content: SAID }]);
      const { contents } = await client.readResource({ uri: `pml://${server}/mem://x` });
      assert.equal(JSON.stringify(contents).includes("said"), true);
    }
    await client.close();
  });
}

Deno.test("the error about a result that cannot be delivered reports that the tool did run", async () => {
  const blocks = Array.from({ length: 5_000 }, () => SAID);
  const tables = { s: { ...TABLE, "tools/call": { result: { content: blocks } } } };
  await using ws = await makeAttackWorkspace({
    files: {
      ...filesOf(tables),
      "m.js": `export const __meta__ = { name: "m", version: "1.0.0", tools: { go: {} } };
        export const go = () => ({ content: [{ type: "hologram" }] });`,
    },
    pml: {
      version: 1,
      permissions: { allow: ["s:*", "m:*"] },
      gateway: { tools_exposure: "full_proxy" },
      private_mcps: { m: { type: "deno", path: "m.js" } },
      mcpServers: definitions(tables),
    },
  });
  await using connection = await connect(ws);
  const { client } = connection;
  // The second call of a server runs without a start.
  for (const name of ["s__go", "s__go", "m__go"]) {
    const { isError, structuredContent } = await client.callTool({ name, arguments: {} });
    assert.equal(isError, true);
    const { error } = structuredContent as {
      error: { code: string; hint: string; detail: { may_have_run: boolean } };
    };
    assert.match(error.code, name === "m__go" ? /OUTPUT_INVALID/ : /RESULT_TOO_LARGE/);
    assert.match(error.hint, /did run\./);
    assert.equal(error.detail.may_have_run, true);
  }
  await client.close();
});

Deno.test("a result with a null error member is a result", async () => {
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      if (request.method !== "POST") return new Response(null, { status: 405 });
      const { id, method } = await request.json();
      if (id === undefined) return new Response(null, { status: 202 });
      const capabilities = { tools: {} };
      const results: Readonly<Record<string, object>> = {
        initialize: {
          protocolVersion: "2025-06-18",
          capabilities,
          serverInfo: { name: "s", version: "1" },
        },
        "tools/list": { tools: [{ name: "go", inputSchema: { type: "object" } }] },
        "tools/call": { content: [SAID] },
      };
      const result = results[method];
      const error = result === undefined ? { code: -32601, message: "Method not found" } : null;
      return Response.json({ jsonrpc: "2.0", id, result: result ?? null, error });
    },
  );
  await using ws = await makeAttackWorkspace({
    pml: {
      version: 1,
      permissions: { allow: ["s:*"] },
      gateway: { tools_exposure: "full_proxy" },
      mcpServers: { s: { type: "http", url: `http://127.0.0.1:${server.addr.port}/` } },
    },
  });
  await using connection = await connect(ws);
  const { content } = await connection.client.callTool({ name: "s__go", arguments: {} });
  assert.deepEqual(content, [SAID]);
  await connection.client.close();
});
