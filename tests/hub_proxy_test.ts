/**
 * Servers behind a spawned hub: which of them receive the caller's keys, and how their answers
 * pass.
 *
 * @module
 */

import assert from "node:assert/strict";
import { call } from "./attacks/evil_servers.ts";
import { textOf } from "./attacks/oracles.ts";
import { FakeCloud } from "./kit/fake_cloud.ts";
import {
  type HubOptions,
  type Offer,
  put,
  sendRequest,
  spawnHub,
  startHub,
  type TestHub,
} from "./kit/hub.ts";
import { rssOf } from "./kit/procwatch.ts";
import { rawHttp } from "./kit/raw_http.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const SECRET = "tavily-key-9876543210";
const ACCOUNT = "account-key-0123456789";
const CALL = {
  ...{ jsonrpc: "2.0", id: 7, method: "tools/call" },
  params: { name: "search", arguments: { query: "x" } },
};

/** Returns a server behind the hub. */
function behind(hub: TestHub, url: string, more: object = {}): Offer {
  return {
    manifest: {
      ...{ fqdn: "tavily", type: "cloud", version: "1.0.0", description: "Searches the web" },
      ...{ proxy_to: `${hub.url}/proxy/tavily`, url },
      headers: { Authorization: "Bearer ${TAVILY_API_KEY}", "X-Client": "pml" },
      tools: [{ name: "search", inputSchema: { type: "object" } }],
      ...{ env_required: ["TAVILY_API_KEY"], warnings: [], routing: "cloud", ...more },
    },
  };
}

async function opened(
  cloud: FakeCloud,
  options?: Pick<HubOptions, "ownProcess">,
): Promise<TestHub> {
  const hub = await startHub({ args: ["--upstream", `127.0.0.1:${cloud.port}`], ...options });
  const { key } = await hub.key("acme");
  const reply = await put(hub.url, key, behind(hub, `${cloud.url}/tavily`));
  assert.equal(reply.status, 201, JSON.stringify(reply.body));
  return hub;
}

Deno.test("a call of PML reaches a server behind a hub with its key, which is stored nowhere", async () => {
  await using cloud = new FakeCloud();
  await using hub = await opened(cloud);
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: hub.url, PML_API_KEY: ACCOUNT, TAVILY_API_KEY: SECRET },
    pml: {
      version: 1,
      permissions: { allow: ["tavily:search"] },
      cloud: { url: hub.url.replace(/\/mcp$/, "") },
    },
  });
  await using pml = new RawStdio(ws, { era: "2025-11-25" });
  await pml.open();
  assert.equal(textOf(await call(pml, "tavily:search", { query: "x" })), "search ran");
  const [made, ...more] = cloud.calls;
  assert.equal(more.length, 0);
  assert.deepEqual([made?.headers.authorization, made?.headers["x-client"]], [
    `Bearer ${SECRET}`,
    "pml",
  ]);
  // Neither the account's key nor the header in which the hub received the key.
  assert.ok(!cloud.text.includes(ACCOUNT) && !cloud.text.includes("x-pml-key"), cloud.text);
  for (const { method, headers } of cloud.received) {
    if (method !== "tools/call") assert.equal(headers.authorization, undefined, method);
  }
  assert.equal((await pml.close()).code, 0);
  const { stderr } = await hub.serving.end();
  assert.ok(![SECRET, ACCOUNT].some((each) => stderr.includes(each)), stderr);
  for (const { name } of Deno.readDirSync(hub.ws.file("hub-data"))) {
    const bytes = new TextDecoder("latin1").decode(
      await Deno.readFile(hub.ws.file(`hub-data/${name}`)),
    );
    assert.ok(![SECRET, ACCOUNT].some((each) => bytes.includes(each)), name);
  }
});

Deno.test("keys of an approved version never go to the address of a newer one (GX8)", async () => {
  await using cloud = new FakeCloud();
  await using evil = new FakeCloud();
  await using hub = await spawnHub(
    ...["--upstream", `127.0.0.1:${cloud.port}`, "--upstream", `127.0.0.1:${evil.port}`],
  );
  const { key } = await hub.key("acme");
  const publish = async (version: string, url: string) => {
    const reply = await put(hub.url, key, behind(hub, url, { version }));
    assert.equal(reply.status, 201, JSON.stringify(reply.body));
  };
  await publish("1.0.0", `${cloud.url}/tavily`);
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: hub.url, PML_API_KEY: ACCOUNT, TAVILY_API_KEY: SECRET },
    pml: {
      version: 1,
      permissions: { allow: ["tavily:search"] },
      cloud: { url: hub.url.replace(/\/mcp$/, "") },
    },
  });
  await using pml = new RawStdio(ws);
  await pml.open();
  assert.equal(textOf(await call(pml, "tavily:search", { query: "x" })), "search ran");
  await publish("1.0.1", `${evil.url}/tavily`);
  assert.equal(textOf(await call(pml, "tavily:search", { query: "x" })), "search ran");
  assert.equal(cloud.calls.length, 2);
  assert.deepEqual(evil.received, []);
  const headers = { "x-pml-key-tavily_api_key": SECRET };
  const post = (path: string) =>
    sendRequest(`${hub.url}/proxy/${path}`, { method: "POST", body: CALL, headers });
  const { status, body } = await post("tavily");
  assert.deepEqual([status, body.error], [409, "version_required"]);
  assert.match(body.message, /Approve the server again/);
  // A yanked version may be the one that was approved.
  await hub.run("yank", "tavily@1.0.0", "--reason", "old");
  assert.equal((await post("tavily")).status, 409);
  assert.deepEqual(evil.received, []);
  assert.equal((await post("tavily@1.0.0")).status, 200);
  assert.deepEqual(evil.received, []);
  await post("tavily@1.0.1");
  assert.equal(evil.calls.length, 1);
});

Deno.test("a request without a version is passed on while all versions are at one address (GX8)", async () => {
  await using cloud = new FakeCloud();
  await using hub = await opened(cloud);
  const post = (path: string) =>
    sendRequest(`${hub.url}/proxy/${path}`, { method: "POST", body: CALL });
  assert.equal((await post("tavily")).status, 200);
  for (const path of ["tavily@latest", "tavily@2.0.0", "tavily@1.0"]) {
    assert.equal((await post(path)).status, 404, path);
  }
});

Deno.test("an entry contains the host and the header names of a server behind a hub (GX8)", async () => {
  await using cloud = new FakeCloud();
  await using hub = await opened(cloud);
  const { body } = await sendRequest(`${hub.url}/tavily@1.0.0`, { method: "GET" });
  assert.equal(body.upstream.host, `127.0.0.1:${cloud.port}`);
  assert.deepEqual(body.upstream.headers, ["Authorization", "X-Client"]);
  assert.match(body.upstream.hash, /^sha256-[0-9a-f]{64}$/);
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: hub.url, PML_API_KEY: ACCOUNT, TAVILY_API_KEY: SECRET },
    pml: { version: 1, cloud: { url: hub.url.replace(/\/mcp$/, "") } },
  });
  const questions: string[] = [];
  const answer = (_: string, { message }: Record<string, unknown>) => {
    questions.push(String(message));
    return { action: "decline" };
  };
  await using pml = new RawStdio(ws, { answer });
  await pml.open();
  await call(pml, "tavily:search", { query: "x" });
  const line =
    `Its hub passes all of it on to "127.0.0.1:${cloud.port}", with the headers Authorization, X-Client`;
  assert.ok(questions.some((each) => each.includes(line)), questions.join());
});

Deno.test("answers of a server behind a hub pass through, except for refused keys and redirects", async () => {
  await using cloud = new FakeCloud();
  await using hub = await opened(cloud);
  const headers = { "x-pml-key-tavily_api_key": SECRET, cookie: "a=b", "mcp-session-id": "s1" };
  const post = (path = "tavily") =>
    sendRequest(`${hub.url}/proxy/${path}`, { method: "POST", body: CALL, headers });
  const usual = await post();
  assert.equal(usual.body.result?.content[0].text, "search ran", JSON.stringify(usual.body));
  const [first] = cloud.calls;
  assert.deepEqual([first?.headers.cookie, first?.headers["mcp-session-id"]], [undefined, "s1"]);
  const answers: readonly (readonly [Response, RegExp])[] = [
    [new Response("no", { status: 401 }), /it refuses the key \(401\)/],
    [new Response("no", { status: 403 }), /it refuses the key \(403\)/],
    [new Response("no", { status: 500 }), /it answers 500/],
    [Response.redirect("http://127.0.0.1:1/", 307), /it redirects/],
  ];
  for (const [answer, why] of answers) {
    cloud.script = () => answer;
    const { status, body } = await post();
    assert.deepEqual([status, body.id], [502, 7]);
    assert.match(body.error.message, why);
    assert.ok(!JSON.stringify(body).includes(SECRET));
  }
  cloud.script = () =>
    new Response("data: 1\n\n", {
      headers: { "content-type": "text/event-stream", "set-cookie": "x=y", "mcp-session-id": "s2" },
    });
  const stream = await post();
  assert.deepEqual(
    [stream.body, stream.headers.get("mcp-session-id"), stream.headers.get("set-cookie")],
    ["data: 1\n\n", "s2", null],
  );
  for (const path of ["none", "..%2Fx", "%ff"]) {
    assert.equal((await post(path)).status, 404, path);
  }
  const put = await sendRequest(`${hub.url}/proxy/tavily`, { method: "PUT", body: {} });
  assert.equal(put.status, 405);
  const huge = await sendRequest(`${hub.url}/proxy/tavily`, {
    method: "POST",
    body: "x".repeat(4_000_001),
  });
  assert.equal(huge.status, 413);
});

Deno.test("no server behind a hub shows a page at the hub's address", async () => {
  await using cloud = new FakeCloud();
  await using hub = await opened(cloud);
  const live = "<script>alert(1)</script>";
  const types = ["text/html", "TEXT/HTML; charset=utf-8", "image/svg+xml", "text/javascript", ""];
  for (const type of [...types, "application/xhtml+xml", "application/jsonx"]) {
    for (const status of [200, 404]) {
      cloud.script = () => new Response(live, { status, headers: { "content-type": type } });
      for (const method of ["GET", "POST"]) {
        const { headers } = await sendRequest(`${hub.url}/proxy/tavily`, {
          method,
          headers: { accept: "text/html" },
          ...method === "POST" && { body: CALL },
        });
        assert.equal(headers.get("content-type"), "text/plain", `${type} ${method}`);
        assert.equal(headers.get("x-content-type-options"), "nosniff");
      }
    }
  }
  for (const type of ["application/json; charset=utf-8", "text/event-stream"]) {
    cloud.script = () => new Response("{}", { headers: { "content-type": type } });
    const { headers } = await sendRequest(`${hub.url}/proxy/tavily`, {
      method: "POST",
      body: CALL,
    });
    assert.equal(headers.get("content-type"), type);
    assert.equal(headers.get("x-content-type-options"), "nosniff");
  }
});

Deno.test("a server behind a hub that never answers delays no caller of another", async () => {
  await using cloud = new FakeCloud();
  await using hub = await opened(cloud);
  const { key } = await hub.key("other");
  const { manifest } = behind(hub, `${cloud.url}/slow`, { fqdn: "slow" });
  const slow = { manifest: { ...manifest, proxy_to: `${hub.url}/proxy/slow` } };
  assert.equal((await put(hub.url, key, slow)).status, 201);
  const over = Promise.withResolvers<void>();
  let waiting = 0;
  cloud.script = async ({ path }) => {
    if (!path.startsWith("/slow")) return undefined;
    waiting++;
    await over.promise;
    return undefined;
  };
  const gone = new AbortController();
  const asked = Array.from(
    { length: 200 },
    () =>
      sendRequest(`${hub.url}/proxy/slow`, { method: "POST", body: CALL, signal: gone.signal })
        .then(({ status }) => status, () => 0),
  );
  const refused = await Promise.race(asked);
  assert.equal(refused, 503, "one server has its share");
  const { status, body } = await sendRequest(`${hub.url}/proxy/tavily`, {
    method: "POST",
    body: CALL,
  });
  assert.equal(status, 200, JSON.stringify(body));
  assert.ok(waiting > 0);
  gone.abort();
  over.resolve();
  await Promise.all(asked);
});

Deno.test("unfinished large bodies fill no memory of a hub, and do not delay small ones", async () => {
  await using cloud = new FakeCloud();
  await using hub = await opened(cloud, { ownProcess: true });
  const { pid, port } = hub.serving;
  const before = await rssOf(pid);
  const large = async (path: string, size: number) => {
    const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${size}\r\n\r\n`;
    return await rawHttp(port, [head, "x".repeat(size - 1)], { ms: 15_000, until: /"message"/ });
  };
  const sent = Array.from(
    { length: 120 },
    (_, at) => at % 2 === 0 ? large("/mcp/proxy/tavily", 3_900_000) : large("/mcp", 990_000),
  );
  let [most, isOver] = [0, false];
  const answers = Promise.all(sent).finally(() => isOver = true);
  const small = await fetch(`${hub.url}/proxy/tavily`, {
    method: "POST",
    body: JSON.stringify(CALL),
    headers: { "content-type": "application/json" },
  });
  assert.equal(small.status, 200, await small.text());
  assert.ok(!isOver);
  await until(async () => {
    most = Math.max(most, await rssOf(pid));
    return isOver;
  });
  const busy = (await answers).filter(({ status, text }) =>
    status === 503 && /retry-after: 1/i.test(text)
  );
  assert.ok(most - before < 220e6, `${(most - before) / 1e6} MB`);
  assert.ok(busy.length >= 80, `${busy.length} were told to come again`);
});

Deno.test("a client that disconnects ends its forwarded request", async () => {
  const gone = Promise.withResolvers<void>();
  await using cloud = new FakeCloud();
  await using hub = await opened(cloud);
  cloud.script = ({ verb }) => {
    if (verb !== "GET") return undefined;
    const body = new ReadableStream({
      start: (to) => to.enqueue(new TextEncoder().encode("data: 1\n\n")),
      cancel: () => gone.resolve(),
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
  const leaving = new AbortController();
  const response = await fetch(`${hub.url}/proxy/tavily`, { signal: leaving.signal });
  const reader = response.body?.getReader();
  assert.equal(new TextDecoder().decode((await reader?.read())?.value), "data: 1\n\n");
  leaving.abort();
  await gone.promise;
});

Deno.test("no client learns the whole address of a server, and no entry leads to a private address", async () => {
  await using cloud = new FakeCloud();
  await using hub = await opened(cloud);
  const { key } = await hub.key("other");
  for (const path of ["/mcp/tavily", "/mcp/tavily@1.0.0", "/mcp?include=tools", "/entry/tavily"]) {
    const response = await fetch(hub.url.replace(/\/mcp$/, path));
    const text = await response.text();
    assert.equal(response.status, 200);
    assert.ok(!text.includes(cloud.url) && !text.includes("Bearer"), `${path}: ${text}`);
  }
  const bad: readonly (readonly [string, object, RegExp])[] = [
    ["ftp://x/", {}, /url is not the/],
    ["https://u:p@x/", {}, /url is not the/],
    ["https://x/", { proxy_to: "https://evil.example/mcp" }, /its proxy_to must be http/],
    ["https://x/", { env_required: ["A_KEY", "a_key"], headers: {} }, /differ only in case/],
    ["https://x/", { headers: { Host: "x" } }, /the header Host/],
    ["https://x/", { headers: { "X-A": "a\r\nb: c" } }, /invisible|not one line/],
    ["https://x/", { headers: { "X-A": "${OTHER_KEY}" } }, /uses \$\{OTHER_KEY\}/],
  ];
  for (const [url, more, why] of bad) {
    const proxy_to = `${hub.url}/proxy/other`;
    const { manifest } = behind(hub, url, { fqdn: "other", proxy_to, ...more });
    const { status, body } = await put(hub.url, key, { manifest });
    assert.equal(status, 400, JSON.stringify(body));
    assert.match(body.message, why);
  }
  // The hub reaches only addresses that the operator has named.
  await using hidden = new FakeCloud();
  const proxy_to = `${hub.url}/proxy/other`;
  let tried = 0;
  for (
    const url of [
      `${hidden.url}/x`,
      `https://localhost:${hidden.port}/x`,
      "https://169.254.169.254/",
    ]
  ) {
    const version = `1.0.${tried++}`;
    const { manifest } = behind(hub, url, { fqdn: "other", proxy_to, version });
    assert.equal((await put(hub.url, key, { manifest })).status, 201);
    const headers = { "x-pml-key-tavily_api_key": SECRET };
    const reply = await sendRequest(`${proxy_to}@${version}`, {
      method: "POST",
      body: CALL,
      headers,
    });
    assert.equal(reply.status, 502, url);
    assert.match(reply.body.error.message, /cannot be reached/);
  }
  assert.deepEqual(hidden.received, []);
  assert.deepEqual(cloud.received, []);
});
