import assert from "node:assert/strict";
import { join } from "node:path";
import { assertError } from "./cli_greeter.ts";
import { runPml } from "./kit/run.ts";
import { HttpSink, type SinkRequest } from "./kit/sinks.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const KEY = "CANARY/key value-123";
const ENCODED = encodeURIComponent(KEY);

/** Returns an answer of MCP over HTTP in an older revision. */
function answers({ method, body }: SinkRequest): Response {
  if (method !== "POST") return new Response(null, { status: 405 });
  const { id, method: asked, params } = JSON.parse(body);
  if (id === undefined) return new Response(null, { status: 202 });
  const results: Record<string, unknown> = {
    initialize: {
      protocolVersion: params?.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "s", version: "1" },
    },
    "tools/list": { tools: [{ name: "t", inputSchema: { type: "object" } }] },
    "tools/call": { content: [{ type: "text", text: "ran" }] },
  };
  const result = results[asked];
  return Response.json(
    result === undefined
      ? { jsonrpc: "2.0", id, error: { code: -32601, message: "no" } }
      : { jsonrpc: "2.0", id, result },
  );
}

function workspaceOf(
  urls: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
  trusted = true,
): Promise<Workspace> {
  const servers = Object.entries(urls).map(([name, url]) => [name, { type: "http", url }]);
  const allow = Object.keys(urls).map((name) => `${name}:*`);
  const mcpServers = Object.fromEntries(servers);
  const pml = { version: 1, permissions: { allow }, mcpServers };
  return makeWorkspace({ pml, env, trusted });
}

/** Asserts that neither texts nor the files of a folder contain the key. */
async function assertNoKey(folder: string, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    assert.ok(!text.includes("CANARY"), text);
  }
  for await (const { name, isFile, isDirectory } of Deno.readDir(folder)) {
    const path = join(folder, name);
    assert.ok(!name.includes("CANARY"));
    if (isDirectory) await assertNoKey(path);
    if (isFile) {
      const text = new TextDecoder("latin1").decode(await Deno.readFile(path));
      assert.ok(!text.includes("CANARY"), path);
    }
  }
}

Deno.test("a key in path and query reaches the server encoded, and no error, log or file", async () => {
  await using sink = new HttpSink((request) => {
    const { path } = request;
    if (path.includes("/down/")) return new Response(`no ${path}`, { status: 500 });
    if (path.includes(".well-known")) return new Response(null, { status: 404 });
    if (!path.includes("/private/")) return answers(request);
    return new Response(null, { status: 401, headers: { "www-authenticate": "Bearer" } });
  });
  const urls = {
    path: `${sink.url}/\${MY_KEY}/mcp`,
    query: `${sink.url}/mcp?api_key=\${MY_KEY}`,
    broken: `${sink.url}/down/\${MY_KEY}`,
    unreached: "http://127.0.0.1:1/${MY_KEY}",
    sign_in: `${sink.url}/mcp/private/\${MY_KEY}/x?a=b`,
  };
  await using ws = await workspaceOf(urls, { MY_KEY: KEY, PML_LOG_LEVEL: "debug" });
  for (const [name, path] of [["path", `/${ENCODED}/mcp`], ["query", `/mcp?api_key=${ENCODED}`]]) {
    const result = await runPml(ws, ["call", `${name}:t`]);
    assert.equal(result.code, 0, result.stderr);
    assert.ok(sink.received.some((request) => request.path === path), name);
    await assertNoKey(ws.home, result.stdout, result.stderr);
  }
  for (const name of ["broken", "unreached", "sign_in"]) {
    const result = await runPml(ws, ["call", `${name}:t`]);
    assert.equal(result.code, 1);
    await assertNoKey(ws.home, result.stdout, result.stderr);
  }
  const login = await runPml(ws, ["login", "sign_in", "--no-browser"]);
  await assertNoKey(ws.home, login.stdout, login.stderr);
  const names = sink.received.map(({ path }) => path).filter((path) =>
    path.includes(".well-known")
  );
  assert.ok(names.length > 0);
  for (const path of names) assert.ok(!path.includes("CANARY"), path);
  for (const command of [["list", "--json"], ["doctor"], ["logs", "broken"], ["audit", "tail"]]) {
    const { stdout, stderr } = await runPml(ws, command);
    await assertNoKey(ws.home, stdout, stderr);
  }
});

Deno.test("an address that a variable contains is shown and approved without its query", async () => {
  await using sink = new HttpSink(answers);
  await using other = new HttpSink(answers);
  await using ws = await workspaceOf({ s: "${API_BASE_URL}/mcp", whole: "${WHOLE_URL}" });
  const WHOLE_URL = `${sink.url}/a/mcp?key=${ENCODED}`;
  const env = { API_BASE_URL: `${sink.url}/api`, WHOLE_URL };
  assert.equal((await runPml(ws, ["call", "s:t"], { env })).code, 0);
  const whole = await runPml(ws, ["call", "whole:t"], { env });
  assert.equal(whole.code, 0, whole.stderr);
  assert.ok(sink.received.some(({ path }) => path === `/a/mcp?key=${ENCODED}`));
  await assertNoKey(ws.home, whole.stdout, whole.stderr);
  for (const base of [`${other.url}/api`, `${sink.url}/other`]) {
    const result = await runPml(ws, ["call", "s:t"], { env: { API_BASE_URL: base } });
    assertError(result, { code: "APPROVAL_STALE", exit: 1 });
    assert.ok(result.stderr.includes(`"${base}/mcp"`), result.stderr);
  }
  assert.equal(other.received.length, 0);
  const again = await runPml(ws, ["call", "whole:t"], {
    env: { ...env, WHOLE_URL: `${sink.url}/a/mcp?key=another-one` },
  });
  assert.equal(again.code, 0, again.stderr);
});

Deno.test("the question about a file shows the values of hosts, and the names of keys", async () => {
  const urls = { s: "${API_BASE_URL}/mcp", key: "https://h.example/${MY_KEY}/mcp" };
  await using ws = await workspaceOf(
    urls,
    { MY_KEY: KEY, API_BASE_URL: "https://a.example/?k=v" },
    false,
  );
  const result = await runPml(ws, ["trust", "--json"]);
  const facts = JSON.parse(result.stdout).facts.join("\n");
  assert.match(
    facts,
    /a server at "\$\{API_BASE_URL\}\/mcp" \(from API_BASE_URL\)/,
    "no path fits",
  );
  const env = { API_BASE_URL: "https://a.example/b" };
  const output = await runPml(ws, ["trust", "--json"], { env });
  assert.match(
    output.stdout,
    /a server at \\"https:\/\/a.example\/b\/mcp\\" \(from API_BASE_URL\)/,
  );
  assert.match(output.stdout, /\$\{MY_KEY\}\/mcp\\", is sent the keys MY_KEY in its address/);
  await assertNoKey(ws.home, output.stdout, output.stderr);
});

Deno.test("an address that is not valid makes its own server fail, and no other", async () => {
  await using sink = new HttpSink(answers);
  const urls = {
    fine: `${sink.url}/mcp`,
    scheme: "ftp://127.0.0.1/",
    user: "http://me:CANARY@127.0.0.1:1/",
    host_key: "https://${API_TOKEN}.127.0.0.1.example/",
    unset: "http://127.0.0.1:${PORT}/",
    text: "nothing",
    dots: `${sink.url}/a/\${UP}/b`,
  };
  await using ws = await workspaceOf(urls, { API_TOKEN: "CANARY", UP: ".." });
  assert.equal((await runPml(ws, ["call", "fine:t"])).code, 0);
  for (const name of Object.keys(urls).filter((each) => each !== "fine")) {
    const result = await runPml(ws, ["call", `${name}:t`]);
    const code = name === "unset" ? "KEY_MISSING" : "CONFIG_INVALID";
    assertError(result, { code, exit: name === "unset" ? 1 : 2 });
    assert.ok(result.stderr.includes(`Cannot reach "${name}": in its url, `), result.stderr);
    assert.ok(!result.stderr.includes("CANARY"), result.stderr);
  }
});

Deno.test("the .env of a workspace fills in keys of an address, and no host", async () => {
  await using sink = new HttpSink(answers);
  const urls = { key: `${sink.url}/\${MY_KEY}`, host: "${API_BASE_URL}/mcp" };
  await using ws = await workspaceOf(urls);
  await Deno.writeTextFile(ws.file(".env"), `MY_KEY=abcdefgh\nAPI_BASE_URL=${sink.url}\n`);
  assert.equal((await runPml(ws, ["call", "key:t"])).code, 0);
  assert.ok(sink.received.some(({ path }) => path === "/abcdefgh"));
  assertError(await runPml(ws, ["call", "host:t"]), { code: "KEY_MISSING", exit: 1 });
});
