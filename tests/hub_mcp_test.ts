/**
 * A spawned hub as an MCP server, used by the SDK's client in both revisions, and by a spawned PML.
 *
 * @module
 */

import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { call } from "./attacks/evil_servers.ts";
import { textOf } from "./attacks/oracles.ts";
import { moduleOffer, packageOffer, put, sendRequest, spawnHub, type TestHub } from "./kit/hub.ts";
import { CLIENT_INFO, type Era } from "./kit/json_rpc.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { rawRequest } from "./kit/registry_contract.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const ERAS: readonly Era[] = ["2025-11-25", "2026-07-28"];
const JSON_RPC = { accept: "application/json, text/event-stream" };

async function filled(): Promise<TestHub> {
  const hub = await spawnHub();
  const { key } = await hub.key("acme");
  const tool = (name: string, description: string) => ({
    ...{ name, description },
    inputSchema: { type: "object", properties: { city: { type: "string" } } },
  });
  const offers = [
    packageOffer("weather", "1.2.0", {
      tools: [tool("forecast", "Tells the weather of the next days"), tool("alerts", "Storms")],
    }),
    packageOffer("forecaster", "1.0.0", { description: "Another forecast", tools: [] }),
    moduleOffer("text:shout", "1.0.0"),
  ];
  for (const offer of offers) assert.equal((await put(hub.url, key, offer)).status, 201);
  return hub;
}

for (const era of ERAS) {
  Deno.test(`a hub finds tools and capabilities for a client of MCP, on ${era}`, async () => {
    await using hub = await filled();
    const client = new Client(CLIENT_INFO, {
      versionNegotiation: { mode: era === "2025-11-25" ? "legacy" : { pin: era } },
    });
    await client.connect(new StreamableHTTPClientTransport(new URL(hub.url)));
    const { tools } = await client.listTools();
    const own = ["pml__search_tools", "pml__search_capabilities", "pml__related"];
    assert.deepEqual(tools.map(({ name }) => name), own);
    const found = await client.callTool({
      name: "pml__search_tools",
      arguments: { query: "forecast of a city" },
    });
    // deno-lint-ignore no-explicit-any
    const { results } = found.structuredContent as any; // its form is checked below
    const names = results.map(({ name }: { name: string }) => name);
    assert.deepEqual(names.slice(0, 1).concat(names.slice(1).sort()), [
      "weather:forecast",
      ...["forecaster", "weather:alerts"],
    ]);
    assert.deepEqual([results[0].version, results[0].input_schema.properties], [
      "1.2.0",
      { city: { type: "string" } },
    ]);
    const capabilities = await client.callTool({
      name: "pml__search_capabilities",
      arguments: { query: "shout", limit: 1 },
    });
    assert.match(JSON.stringify(capabilities.content), /text:shout \(1\.0\.0\): Greets/);
    const bad = [{ query: 5 }, { query: "x".repeat(501) }, { query: "x", limit: 21 }, {
      query: "x",
      more: 1,
    }];
    for (const args of bad) {
      const said = await client.callTool({ name: "pml__search_tools", arguments: args });
      assert.equal(said.isError, true, JSON.stringify(args));
    }
    assert.equal((await client.callTool({ name: "pml__publish" })).isError, true);
    await client.close();
  });
}

Deno.test("PML calls a hub's own tools", async () => {
  await using hub = await filled();
  await using ws = await makeWorkspace({
    env: { PML_API_KEY: "account-key-0123456789" },
    pml: {
      version: 1,
      permissions: { allow: ["pml:search_tools"] },
      cloud: { url: hub.url.replace(/\/mcp$/, "") },
    },
  });
  await using pml = new RawStdio(ws, { era: "2026-07-28" });
  await pml.open();
  const message = await call(pml, "pml:search_tools", { query: "forecast" });
  assert.match(textOf(message), /^weather:forecast \(1\.2\.0\): Tells the weather/);
  assert.equal((await pml.close()).code, 0);
  const { stderr } = await hub.serving.end();
  assert.ok(!stderr.includes("account-key"), stderr);
});

Deno.test("invalid MCP messages are refused, and the hub keeps running", async () => {
  await using hub = await filled();
  const post = (body: unknown, headers = {}) =>
    sendRequest(hub.url, { method: "POST", body, headers: { ...JSON_RPC, ...headers } });
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
  const wrong = ["", "{", "[]", "5", { jsonrpc: "1.0" }, JSON.stringify(Array(1_000).fill(list))];
  for (const body of wrong) {
    const { status } = await post(body);
    assert.ok(status >= 400 && status < 500, `${status} ${JSON.stringify(body).slice(0, 80)}`);
  }
  assert.equal((await post(list, { "content-type": "text/plain" })).status, 415);
  assert.equal((await post("x".repeat(1_000_001))).status, 413);
  const foreign = await rawRequest(
    hub.serving.port,
    "POST /mcp",
    "host: evil.example\r\ncontent-length: 0\r\n",
  );
  assert.match(foreign, /^HTTP\/1.1 403 /);
  const page = await rawRequest(
    hub.serving.port,
    "POST /mcp",
    "host: 127.0.0.1\r\norigin: https://evil.example\r\ncontent-length: 0\r\n",
  );
  assert.match(page, /^HTTP\/1.1 403 /);
  const many = await Promise.all(Array.from({ length: 50 }, () => post(list)));
  for (const { status } of many) assert.equal(status, 200);
});
