/**
 * Tools that are `internal`: no list or search contains them, and calls of them answer as if they
 * were missing, for every kind of server, for clients of both revisions and on the command line.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { JsonObject } from "../src/core/json.ts";
import { assertAftermath, codeOf, textOf, withoutMark } from "./attacks/oracles.ts";
import { answerOf, picked, questionOf, read } from "./attacks/questions.ts";
import { makeScene, type Scene } from "./attacks/stage.ts";
import { FakeCloud } from "./kit/fake_cloud.ts";
import { FakeRegistry, manifestEntry, moduleEntry } from "./kit/fake_registry.ts";
import type { Era } from "./kit/json_rpc.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { NEWEST, servedOverHttp, type Table } from "./kit/said_server.ts";
import { makeWorkspace } from "./kit/workspace.ts";
import { approve, called } from "./capability_scene.ts";
import { definitions, filesOf } from "./said_scene.ts";

const inputSchema = { type: "object" };
const ui = { resourceUri: "ui://vault" };
const TOOLS: readonly (JsonObject & { readonly name: string })[] = [
  { name: "seen", description: "Open the vault from outside", inputSchema },
  {
    name: "vault",
    description: "Open the vault",
    inputSchema,
    visibility: "internal",
    _meta: { ui },
  },
  { name: "stated", inputSchema, visibility: "external" },
];
const TABLE: Table = {
  "tools/list": { result: { tools: TOOLS } },
  "tools/call": { echo: "*" },
  "resources/read": { result: { contents: [{ uri: "ui://vault", text: "gold" }] } },
};
const KINDS = ["http", "module", "newest", "older"];

/** Returns a module with these tools; the visible one calls the internal one. */
function moduleOf(name: string): string {
  const tools = Object.fromEntries(TOOLS.map(({ name, ...tool }) => [name, tool]));
  return `export const __meta__ = ${JSON.stringify({ name, version: "1.0.0", tools })};
  export const vault = () => "gold";
  export const seen = () => vault() + " from inside";
  export const stated = () => "stated";`;
}

async function sceneOf(era: Era, url: string): Promise<Scene> {
  const tables = { older: TABLE, newest: { ...TABLE, ...NEWEST } };
  return await makeScene({
    era,
    limits: { first_list_ms: 60_000 },
    files: { ...filesOf(tables), "module.js": moduleOf("module") },
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", ...KINDS.map((name) => `${name}:*`)] },
      gateway: { tools_exposure: "hybrid", hybrid: { apply_semantic_filter: false } },
      mcpServers: { ...definitions(tables), http: { url } },
      private_mcps: { module: { type: "deno", path: "module.js" } },
    },
  });
}

const calling = (tool: string) => ({ name: "call", arguments: { tool, arguments: {} } });

/** Asserts that each way to an internal tool has the same error as one to a missing tool. */
async function assertUnknown(pml: RawStdio, server: string): Promise<void> {
  const answers = async (tool: string) => {
    const id = `${server}:${tool}`;
    const lines = [
      await pml.callTool(`${server}__${tool}`, {}),
      await answerOf(pml, calling(id)),
      await pml.callTool("schema", { tools: [id] }),
      await pml.callTool("batch", { calls: [{ tool: id }] }),
    ].map(({ result, error }) => JSON.stringify(result ?? error));
    return lines.map((text) => withoutMark(text).replaceAll(tool, "TOOL"));
  };
  const [hidden, missing] = [await answers("vault"), await answers("no_such")];
  for (const text of hidden) assert.match(text, /UNKNOWN_TOOL|Cannot find the tool/);
  assert.deepEqual(hidden, missing);
}

/** Asserts that no list, search or page for models and users contains the tool. */
async function assertHidden(pml: RawStdio, servers: readonly string[]): Promise<void> {
  const { result: list } = await pml.request("tools/list", {});
  const found = textOf(await pml.callTool("search", { query: "open the vault", limit: 50 }));
  for (const server of servers) assert.match(found, new RegExp(`^${server}:seen\\(`, "m"));
  const byName = textOf(await pml.callTool("search", { query: "vault", limit: 50 }));
  const { result: state } = await pml.request("resources/read", { uri: "pml://servers" });
  for (const text of [JSON.stringify(list), found, byName, JSON.stringify(state)]) {
    assert.doesNotMatch(text, /:vault|__vault|"vault"/);
  }
}

Deno.test("an internal tool of a server of any kind is in no list and cannot be called", async () => {
  await using http = servedOverHttp(TABLE);
  await using scene = await sceneOf("2026-07-28", `http://127.0.0.1:${http.addr.port}/mcp`);
  const { pml, ws } = scene;
  await assertHidden(pml, KINDS);
  const { result } = await pml.request("resources/read", { uri: "pml://servers" });
  const [{ text }] = result?.contents as unknown as [{ readonly text: string }];
  for (
    const state of JSON.parse(text).filter(({ name }: Scene & { name: string }) =>
      KINDS.includes(name)
    )
  ) {
    assert.deepEqual([state.tools, state.why], [2, undefined], JSON.stringify(state));
  }
  for (const kind of KINDS) await assertUnknown(pml, kind);
  assert.equal(textOf(await pml.callTool("module__seen", {})), "gold from inside");
  assert.equal(textOf(await pml.callTool("module__stated", {})), "stated");
  // A resource that only the internal tool links is unreadable.
  assert.ok((await pml.request("resources/read", { uri: "ui://vault" })).error !== undefined);
  assert.equal((await pml.close()).code, 0);
  await assertAftermath(ws, pml);
});

Deno.test("an internal tool of a registry's server is neither listed nor called", async () => {
  await using hub = new FakeCloud();
  await using registry = await FakeRegistry.open([
    await moduleEntry("keeper", moduleOf("keeper")),
    manifestEntry("sky", { type: "cloud", proxy_to: `${hub.url}/mcp/proxy/sky`, tools: TOOLS }),
  ]);
  const env = { PML_REGISTRIES: registry.url, PML_API_KEY: "account-key" };
  const pml = { version: 1, permissions: { allow: ["*"] }, cloud: { url: hub.url } };
  await using ws = await makeWorkspace({ env, pml });
  const treasure = "return [await mcp.keeper.vault(), await mcp.sky.vault()]";
  await approve(ws, { "my:treasure": treasure });
  await using client = new RawStdio(ws, { era: "2025-11-25", capabilities: { elicitation: {} } });
  await client.open();
  await assertHidden(client, ["keeper", "sky"]);
  const offered = await client.callTool("schema", { tools: ["keeper:vault", "sky:vault"] });
  assert.equal(textOf(offered).match(/UNKNOWN_TOOL/g)?.length, 2, textOf(offered));
  for (const server of ["keeper", "sky"]) {
    const question = await questionOf(client, calling(`${server}:seen`));
    await read();
    assert.equal(codeOf(await question.answer(picked("Yes"))), undefined);
    await assertUnknown(client, server);
  }
  await assertHidden(client, ["keeper", "sky"]);
  assert.deepEqual(hub.calls.map(({ tool }) => tool), ["seen"]);
  // A capability that the user saved may call it.
  assert.equal(await called(client, "my:treasure"), '["gold","vault ran"]');
  assert.deepEqual(hub.calls.map(({ tool }) => tool), ["seen", "vault"]);
  assert.equal((await client.close()).code, 0);
});

Deno.test("the command line neither shows nor calls an internal tool", async () => {
  await using http = servedOverHttp(TABLE);
  await using scene = await sceneOf("2025-11-25", `http://127.0.0.1:${http.addr.port}/mcp`);
  const { ws } = scene;
  for (const words of [["tools"], ["tools", "module"], ["search", "open", "the", "vault"]]) {
    const result = await runPml(ws, words);
    assert.match(result.stdout, /module:seen/);
    assert.doesNotMatch(result.stdout, /:vault/);
  }
  for (const words of [["call", "module:vault"], ["tools", "module:vault"]]) {
    const refused = await runPml(ws, words);
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /UNKNOWN_TOOL/);
  }
});

Deno.test("an invalid visibility is reported with file, key, found and wanted", async () => {
  await using ws = await makeWorkspace({
    files: { "module.js": moduleOf("module").replace('"external"', '"public"') },
    pml: { private_mcps: { module: { type: "deno", path: "module.js" } } },
  });
  const refused = await runPml(ws, ["call", "module:seen"]);
  assert.match(refused.stderr, /module\.js/);
  assert.match(
    refused.stderr,
    /__meta__\.tools\.stated\.visibility is "public", wanted "internal" or "external"/,
  );
});
