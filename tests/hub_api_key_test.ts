/**
 * A hub that requires keys of its clients: which clients may read it, and where PML sends the key.
 *
 * @module
 */

import assert from "node:assert/strict";
import { call } from "./attacks/evil_servers.ts";
import { textOf } from "./attacks/oracles.ts";
import { FakeCloud } from "./kit/fake_cloud.ts";
import { FakeRegistry, manifestEntry } from "./kit/fake_registry.ts";
import { moduleOffer, put, sendRequest, spawnHub, spawnHubWith, type TestHub } from "./kit/hub.ts";
import { startPostgres } from "./kit/postgres.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const REQUIRED = "--require-api-key";
const LIST = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
const JSON_RPC = { accept: "application/json, text/event-stream" };
const STORES = {
  "a file": async () => await spawnHub(REQUIRED),
  PostgreSQL: async () => {
    const server = await startPostgres();
    const hub = await spawnHubWith({ DATABASE_URL: await server.database() }, REQUIRED);
    const dispose = async () => {
      await hub[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    };
    return { ...hub, [Symbol.asyncDispose]: dispose };
  },
};
/** The paths of a hub's catalog and entries. */
const PATHS = ["/mcp", "/mcp/greeter", "/mcp/greeter@1.0.0", "/mcp/routing", "/mcp?q=greets"]
  .concat("/v0.1/servers", "/", "/search?q=greets", "/entry/greeter", "/mcp/none", "/favicon.svg");

function basic(key: string): string {
  return `Basic ${btoa(`ada:${key}`)}`;
}

/** Publishes a module, and creates a key of each kind. */
async function filled(hub: TestHub) {
  const publisher = await hub.key("acme");
  const client = await hub.key("acme", "--client");
  assert.equal((await put(hub.url, publisher.key, moduleOffer("greeter", "1.0.0"))).status, 201);
  return { publisher, client };
}

for (const [place, spawn] of Object.entries(STORES)) {
  Deno.test(`a hub on ${place} that requires keys answers only clients with a valid one, until it is revoked`, async () => {
    await using hub = await spawn();
    const { publisher, client } = await filled(hub);
    const get = (path: string, key?: string) =>
      sendRequest(new URL(path, hub.url).href, { method: "GET", key });
    const unknown = `pmlclient_${"A".repeat(43)}`;
    for (const path of PATHS) {
      for (const key of [undefined, publisher.key, unknown, "x"]) {
        const { status, body } = await get(path, key);
        assert.deepEqual([path, key, status], [path, key, 401]);
        assert.match(
          body.message,
          /pml-hub key add ORGANISATION --client.*PML_API_KEY.*cloud\.url/,
        );
      }
      // Programs find no page at /search.
      const isMissing = path === "/mcp/none" || path.startsWith("/search");
      const { status } = await get(path, client.key);
      assert.equal(status, isMissing ? 404 : 200, path);
    }
    assert.match((await get("/mcp", publisher.key)).body.message, /^This is a publisher key/);
    assert.match((await get("/mcp", unknown)).body.message, /unknown or was revoked/);
    for (const path of ["/health", "/ready"]) assert.equal((await get(path)).status, 200);
    const post = (path: string, key?: string) =>
      sendRequest(`${hub.url}${path}`, { method: "POST", key, body: LIST, headers: JSON_RPC });
    for (const [path, then] of [["", 200], ["/proxy/none", 404]] as const) {
      assert.equal((await post(path)).status, 401);
      assert.equal((await post(path, publisher.key)).status, 401);
      assert.equal((await post(path, client.key)).status, then);
    }
    // A client's key may not publish.
    assert.equal((await put(hub.url, client.key, moduleOffer("other", "1.0.0"))).status, 401);
    const yank = { method: "POST", key: client.key, body: {} };
    assert.equal((await sendRequest(`${hub.url}/greeter@1.0.0/yank`, yank)).status, 401);
    const { stdout } = await hub.run("key", "list");
    assert.match(stdout, new RegExp(`^${publisher.id} +publisher +acme .* valid$`, "m"));
    assert.match(stdout, new RegExp(`^${client.id} +client +acme .* valid$`, "m"));
    assert.equal((await hub.run("key", "revoke", client.id)).code, 0);
    for (const path of PATHS) assert.equal((await get(path, client.key)).status, 401, path);
    assert.equal((await post("", client.key)).status, 401);
    const { stderr } = await hub.serving.end();
    assert.ok(![client.key, publisher.key].some((key) => stderr.includes(key)), stderr);
  });
}

Deno.test("shared caches store no answer of a hub that requires keys, and a browser sends a key as a password", async () => {
  await using hub = await spawnHub(REQUIRED);
  const { client } = await filled(hub);
  const exact = await sendRequest(`${hub.url}/greeter@1.0.0`, { method: "GET", key: client.key });
  assert.match(exact.headers.get("cache-control") ?? "", /^private, /);
  assert.match(exact.headers.get("vary") ?? "", /authorization/);
  const refused = await sendRequest(`${hub.url}/greeter@1.0.0`, { method: "GET" });
  assert.deepEqual(
    [refused.headers.get("www-authenticate"), refused.headers.get("cache-control")],
    [
      "Bearer",
      "no-store",
    ],
  );
  const origin = new URL("/", hub.url).href;
  const browser = (authorization?: string) =>
    sendRequest(origin, {
      method: "GET",
      headers: { accept: "text/html", ...authorization !== undefined && { authorization } },
    });
  const reply = await browser();
  assert.equal(reply.status, 401);
  assert.match(reply.headers.get("www-authenticate") ?? "", /^Basic realm=/);
  const page = await browser(basic(client.key));
  assert.equal(page.status, 200);
  assert.match(page.body, /&quot;cloud&quot;: \{&quot;url&quot;/);
  for (const wrong of [basic("x"), "Basic %", `Basic ${btoa(client.key)}`]) {
    assert.equal((await browser(wrong)).status, 401, wrong);
  }
  // Another site can make a browser send a request with its password.
  const headers = { ...JSON_RPC, authorization: basic(client.key) };
  assert.equal((await sendRequest(hub.url, { method: "POST", body: LIST, headers })).status, 401);
});

Deno.test("a hub without the setting answers clients without a key", async () => {
  await using hub = await spawnHub();
  await filled(hub);
  const { status, headers } = await sendRequest(`${hub.url}/greeter@1.0.0`, { method: "GET" });
  assert.deepEqual([status, headers.get("cache-control")?.startsWith("public")], [200, true]);
});

Deno.test("a backup contains clients' keys, which may still read and not publish after a restore", async () => {
  await using hub = await spawnHub(REQUIRED);
  const { client } = await filled(hub);
  assert.equal((await hub.run("backup", "copy")).code, 0);
  const restored = await hub.run("restore", "copy", "--data", "back");
  assert.equal(restored.code, 0, restored.stderr);
  await using back = await hub.again("--data", "back");
  const url = `http://127.0.0.1:${back.port}/mcp`;
  assert.equal((await sendRequest(url, { method: "GET", key: client.key })).status, 200);
  assert.equal((await sendRequest(url, { method: "GET" })).status, 401);
  assert.equal((await put(url, client.key, moduleOffer("other", "1.0.0"))).status, 401);
});

Deno.test("revoking a client's key ends only that client's open streams to servers behind a hub", async () => {
  await using cloud = new FakeCloud();
  await using hub = await spawnHub(REQUIRED, "--upstream", `127.0.0.1:${cloud.port}`);
  const { publisher, client } = await filled(hub);
  const other = await hub.key("other", "--client");
  const manifest = {
    ...{ fqdn: "far", type: "cloud", version: "1.0.0", description: "Far away" },
    ...{ proxy_to: `${hub.url}/proxy/far`, url: `${cloud.url}/far`, headers: {} },
    ...{ tools: [{ name: "go" }], env_required: [], warnings: [], routing: "cloud" },
  };
  const reply = await put(hub.url, publisher.key, { manifest });
  assert.equal(reply.status, 201, JSON.stringify(reply.body));
  cloud.script = () =>
    new Response(
      new ReadableStream({ start: (at) => at.enqueue(new TextEncoder().encode(": open\n\n")) }),
      { headers: { "content-type": "text/event-stream" } },
    );
  const open = async (key: string) => {
    const headers = { authorization: `Bearer ${key}`, accept: "text/event-stream" };
    const { body, status } = await fetch(`${hub.url}/proxy/far`, { headers });
    assert.equal(status, 200);
    const reader = (body ?? new ReadableStream()).getReader();
    assert.match(new TextDecoder().decode((await reader.read()).value), /open/);
    const stream = { isOver: false, cancel: () => reader.cancel() };
    const end = () => stream.isOver = true;
    reader.read().then(end, end);
    return stream;
  };
  const [one, two] = [await open(client.key), await open(other.key)];
  assert.equal((await hub.run("key", "revoke", client.id)).code, 0);
  await until(() => one.isOver);
  assert.equal(two.isOver, false);
  await two.cancel();
});

Deno.test("PML sends PML_API_KEY to the registry of its hub, and to no other registry", async () => {
  await using hub = await spawnHub(REQUIRED);
  const { client } = await filled(hub);
  await using other = await FakeRegistry.open([
    manifestEntry("docs", { type: "http", url: "https://docs.example.com/mcp" }),
  ]);
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: `${hub.url} ${other.url}`, PML_API_KEY: client.key },
    pml: { version: 1, permissions: { allow: ["pml:*", "greeter:*"] }, cloud: { url: hub.url } },
  });
  const refreshed = await runPml(ws, ["tools", "--refresh"]);
  assert.equal(refreshed.code, 0, refreshed.stderr);
  assert.doesNotMatch(refreshed.stderr, /PML_API_KEY|401/);
  await using pml = new RawStdio(ws, { answer: () => ({ action: "accept", content: {} }) });
  await pml.open();
  const found = textOf(await call(pml, "pml:search_tools", { query: "greets" }));
  assert.match(found, /^greeter:greet \(1\.0\.0\)/);
  const listed = textOf(await pml.callTool("search", { query: "greets somebody" }));
  assert.match(listed, /greeter/);
  assert.equal((await pml.close()).code, 0);
  assert.ok(other.asked.length > 0);
  assert.ok(!JSON.stringify(other.asked).includes(client.key));
});

Deno.test("PML reports that a hub requires PML_API_KEY, or rejects it", async () => {
  await using hub = await spawnHub(REQUIRED);
  const { client } = await filled(hub);
  const scene = (env: Record<string, string>, cloud?: object) =>
    makeWorkspace({
      env: { PML_REGISTRIES: hub.url, ...env },
      pml: { version: 1, permissions: { allow: ["pml:*", "greeter:*"] }, ...cloud },
    });
  const cloud = { cloud: { url: hub.url.replace(/\/mcp$/, "") } };
  const calling = async (env: Record<string, string>, more?: object) => {
    await using ws = await scene(env, more);
    const { stderr, code } = await runPml(ws, ["call", "greeter:greet", "who=Ada"]);
    assert.notEqual(code, 0);
    return stderr;
  };
  assert.match(await calling({}, cloud), /it requires PML_API_KEY[\s\S]*pml key set PML_API_KEY/);
  assert.equal((await hub.run("key", "revoke", client.id)).code, 0);
  const key = { PML_API_KEY: client.key };
  const rejected = await calling(key, cloud);
  assert.match(rejected, /it rejects PML_API_KEY/);
  assert.ok(!rejected.includes(client.key));
  // Without cloud.url it is a registry like any other, which gets no key of the account.
  assert.match(await calling(key), /it answers 401[\s\S]*cloud\.url/);
  await using ws = await scene(key, cloud);
  const own = await runPml(ws, ["call", "pml:search_tools", "query=x"]);
  assert.match(own.stderr, /the cloud rejects PML_API_KEY/);
});
