/**
 * Servers over HTTP of both revisions behind a spawned PML, for clients of both revisions: the same
 * passes through as for stdio servers.
 *
 * @module
 */

import assert from "node:assert/strict";
import { textOf } from "./attacks/oracles.ts";
import { makeScene, type Scene } from "./attacks/stage.ts";
import { ALL_ABLE, assertLogged, call, KINDS, listed } from "./full_scene.ts";
import { FullHttp } from "./kit/full_http.ts";
import { FullSse } from "./kit/sse_server.ts";
import { type Era, ERAS, type Json } from "./kit/json_rpc.ts";
import type { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { until } from "./kit/wait.ts";

type Servers = Readonly<Record<typeof KINDS[number], FullHttp | FullSse>>;

const TRANSPORTS = [
  { name: "Streamable HTTP", make: () => new FullHttp("legacy"), type: "http", end: "DELETE" },
  { name: "HTTP+SSE", make: () => new FullSse(), type: "sse", end: "POST" },
  { name: "HTTP+SSE that is found out", make: () => new FullSse(), type: "http", end: "POST" },
];

for (
  const [era, transport] of ERAS.flatMap((era) => TRANSPORTS.map((one) => [era, one] as const))
) {
  Deno.test(`all of MCP passes to servers over ${transport.name} and back, on ${era}`, async () => {
    await using legacy = transport.make();
    await using modern = new FullHttp("modern");
    const servers = { legacy, modern };
    await using scene = await sceneOf(era, servers, transport);
    const { pml } = scene;
    await lists(pml, servers);
    await results(pml);
    await questions(pml);
    await changes(pml, era);
    await follows(pml, { era, servers });
    await logs(pml, era);
    await forgets(pml, legacy);
    for (const { asked } of [legacy, modern]) {
      const keys = new Set(asked.map(({ headers }) => headers.authorization));
      assert.deepEqual([...keys], ["Bearer token-from-outside"]);
      assert.ok(asked.every(({ headers }) => headers.plain === "p"));
    }
    assert.equal((await pml.close()).code, 0);
    assert.equal(legacy.asked.at(-1)?.method, transport.end);
    assert.doesNotMatch(pml.stderr, /token-from-outside/);
  });
}

Deno.test("the command line lists, calls and refreshes servers over HTTP", async () => {
  await using full = new FullHttp("modern");
  await using scene = await sceneOf("2026-07-28", { legacy: full, modern: full });
  const { ws } = scene;
  const env = { FULL_TOKEN: "token-from-outside" };
  const tools = await runPml(ws, ["tools", "modern", "--json"], { env });
  assert.equal(tools.code, 0, tools.stderr);
  assert.match(tools.stdout, /"modern:link"/);
  const asked = () => full.ledger.filter((line) => line.startsWith("tools/list")).length;
  const before = asked();
  await runPml(ws, ["tools", "modern"], { env });
  assert.equal(asked(), before, "what is known is not asked for again");
  await runPml(ws, ["tools", "modern", "--refresh"], { env });
  assert.equal(asked(), before + 1);
});

Deno.test("the next process knows that an address uses HTTP+SSE", async () => {
  await using full = new FullSse();
  const pml = { version: 1, mcpServers: { far: { url: full.url } } };
  await using scene = await makeScene({ pml });
  const paths = async () => {
    const before = full.asked.length;
    const { code, stdout, stderr } = await runPml(scene.ws, ["tools", "far", "--refresh"]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /far:link/);
    return full.asked.slice(before, before + 3).map(({ method }) => method);
  };
  assert.deepEqual(await paths(), ["POST", "POST", "GET"]);
  assert.deepEqual(await paths(), ["GET", "POST", "POST"]);
});

async function sceneOf(era: Era, servers: Servers, { type } = { type: "http" }): Promise<Scene> {
  const headers = { "Authorization": "Bearer ${FULL_TOKEN}", "Plain": "p" };
  const mcpServers = Object.fromEntries(
    Object.entries(servers).map(([name, { url }]) => [
      name,
      { type: name === "legacy" ? type : "http", url, headers },
    ]),
  );
  return await makeScene({
    era,
    pml: { version: 1, permissions: { allow: KINDS.map((kind) => `${kind}:*`) }, mcpServers },
    capabilities: ALL_ABLE,
    env: { FULL_TOKEN: "token-from-outside" },
    answer: (method, params) => {
      if (method === "sampling/createMessage") {
        return { role: "assistant", model: "m", content: { type: "text", text: "it" } };
      }
      const isOurs = /@sampling/.test(String(params.message));
      return { action: "accept", content: isOurs ? { answer: "Yes" } : { name: params.message } };
    },
  });
}

async function lists(pml: RawStdio, servers: Servers): Promise<void> {
  // A search waits for lists only for a limited time.
  await until(async () =>
    /legacy:link/.test(textOf(await pml.callTool("search", { query: "link" })))
  );
  const resources = await listed(pml, "resources/list", { key: "resources", least: 6 });
  assert.deepEqual(resources.map(({ uri }) => uri), [
    "pml://servers",
    "pml://metrics",
    ...KINDS.flatMap((kind) => ["a", "b"].map((one) => `pml://${kind}/test://${one}`)),
  ]);
  assert.equal(resources[2]?.["x/kept"], 1);
  const templates = await listed(pml, "resources/templates/list", {
    key: "resourceTemplates",
    least: 3,
  });
  // One template is PML's.
  assert.equal(templates.length, 3);
  const prompts = await listed(pml, "prompts/list", { key: "prompts", least: 2 });
  assert.deepEqual(prompts.map(({ name }) => name), KINDS.map((kind) => `${kind}__greet`));
  const pages = servers.legacy.ledger.filter((line) => line.startsWith("resources/list"));
  assert.equal(pages.length, 2);
  const { result } = await pml.request("resources/read", { uri: "pml://servers" });
  const [{ text }] = result?.contents as unknown as [{ text: string }];
  const states = JSON.parse(text) as readonly { name: string; kind: string; state: string }[];
  for (const one of states.filter(({ name }) => name in servers)) {
    assert.deepEqual([one.kind, one.state], ["http", "ready"]);
  }
}

async function results(pml: RawStdio): Promise<void> {
  for (const kind of KINDS) {
    const { result } = await call(pml, `${kind}:link`);
    assert.deepEqual(result?.content, [
      { type: "resource_link", uri: "test://linked", name: "linked", "x/kept": { deep: true } },
      { type: "text", text: "see", annotations: { priority: 1, "x/kept": 2 } },
    ]);
    assert.deepEqual(result?.structuredContent, { at: "test://linked" });
    assert.deepEqual([result?._meta?.["x/kept"], result?.["x/kept"]], [3, 4]);
    const meta = { "x/mine": 1, progressToken: 5 };
    const params = { name: `${kind}__meta`, arguments: {}, _meta: meta };
    const seen = JSON.parse(textOf({ result: (await pml.request("tools/call", params)).result }));
    assert.equal(seen["x/mine"], 1);
    assert.notEqual(seen.progressToken, 5);
    const read = await pml.request("resources/read", { uri: `pml://${kind}/test://a` });
    assert.equal((read.result?.contents as unknown as Json[])[0]?.["x/kept"], 1);
    const missing = await pml.request("resources/read", {
      uri: `pml://${kind}/test://item/missing`,
    });
    assert.deepEqual(missing.error?.data, { a: 1 });
    const prompt = { name: `${kind}__greet`, arguments: { name: "Ann" } };
    const got = JSON.stringify((await pml.request("prompts/get", prompt)).result?.messages);
    assert.match(got, /greet.*Ann/);
    const ref = { type: "ref/resource", uri: `pml://${kind}/test://item/{id}` };
    const argument = { name: "name", value: "A" };
    const completed = await pml.request("completion/complete", { ref, argument });
    assert.match(JSON.stringify(completed.result?.completion), /test:\/\/item/);
    assert.match(textOf(await call(pml, `${kind}:fail`)), /-32099: It fails/);
  }
}

async function questions(pml: RawStdio): Promise<void> {
  for (const kind of KINDS) {
    const one = JSON.parse(textOf(await call(pml, `${kind}:ask_name`)));
    const content = { name: `Server ${kind} asks: Who\n    are you?` };
    assert.deepEqual(one, { one: { action: "accept", content } });
    const two = JSON.parse(textOf(await pml.callTool(`${kind}__ask_twice`)));
    assert.deepEqual(Object.keys(two), ["one", "two"]);
    const sampled = JSON.parse(textOf(await call(pml, `${kind}:sample`)));
    assert.deepEqual(sampled.one.content, { type: "text", text: "it" });
  }
}

async function changes(pml: RawStdio, era: Era): Promise<void> {
  if (era === "2026-07-28") {
    const notifications = { promptsListChanged: true };
    pml.begin("subscriptions/listen", { notifications }).answer.catch(() => {}); // ends with PML
  }
  for (const kind of KINDS) {
    const told = () =>
      pml.messages.filter(({ method }) => method === "notifications/prompts/list_changed").length;
    const before = told();
    await call(pml, `${kind}:add_prompt`);
    await until(() => told() > before);
    const names = (await listed(pml, "prompts/list", { key: "prompts" })).map(({ name }) =>
      String(name)
    );
    assert.ok(names.includes(`${kind}__later`));
  }
}

async function follows(
  pml: RawStdio,
  { era, servers }: { readonly era: Era; readonly servers: Servers },
): Promise<void> {
  const uris = KINDS.map((kind) => `pml://${kind}/test://a`);
  if (era === "2026-07-28") {
    const notifications = { resourceSubscriptions: uris };
    pml.begin("subscriptions/listen", { notifications }).answer.catch(() => {}); // ends with PML
  } else for (const uri of uris) await pml.request("resources/subscribe", { uri });
  const has = (begin: string) => servers.legacy.ledger.some((line) => line.startsWith(begin));
  await until(() => has("resources/subscribe"));
  for (const [at, kind] of KINDS.entries()) {
    await until(async () => {
      await call(pml, `${kind}:touch`);
      return pml.messages.some(({ method, params }) =>
        method === "notifications/resources/updated" && params?.uri === uris[at]
      );
    });
  }
  assert.ok(!JSON.stringify(pml.messages).includes('updated","params":{"uri":"test://b'));
}

async function logs(pml: RawStdio, era: Era): Promise<void> {
  const isOlder = era === "2025-11-25";
  if (isOlder) await pml.request("logging/setLevel", { level: "info" });
  await assertLogged(pml);
}

/** Asserts that calls and subscriptions go on with a server that was started anew. */
async function forgets(pml: RawStdio, legacy: FullHttp | FullSse): Promise<void> {
  const subscribed = () =>
    legacy.ledger.filter((line) => line.startsWith("resources/subscribe")).length;
  const before = subscribed();
  const since = pml.messages.length;
  await legacy.forget();
  assert.equal((await call(pml, "legacy:link")).result?.isError, undefined);
  await until(() => subscribed() > before);
  // The resource may have changed while no stream was open.
  await until(() =>
    pml.messages.slice(since).some(({ method, params }) =>
      method === "notifications/resources/updated" && params?.uri === "pml://legacy/test://a"
    )
  );
}
