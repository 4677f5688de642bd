/**
 * `pml serve`: real clients of both revisions over HTTP, and refused requests.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { journalOf, ofKind } from "./attacks/oracles.ts";
import { makeAttackWorkspace, SLOW } from "./attacks/stage.ts";
import { type Era, ERAS } from "./kit/json_rpc.ts";
import { type HttpClient, servePml } from "./kit/pml_serve.ts";
import { pmlCommand } from "./kit/pml_command.ts";
import { runPml } from "./kit/run.ts";
import { ProcWatch } from "./kit/procwatch.ts";
import { until, within } from "./kit/wait.ts";

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "t", version: "1" },
  },
};
const READ = {
  name: "call",
  arguments: { tool: "filesystem:read_file", arguments: { path: "a.txt" } },
};

async function read({ client }: HttpClient): Promise<unknown> {
  const { content } = await client.callTool(READ);
  return content;
}

Deno.test("clients of both revisions find and call tools over HTTP, many at once", async () => {
  await using ws = await makeAttackWorkspace({ files: { "a.txt": "hello" } });
  await using served = await servePml(ws);
  const clients = await Promise.all([...ERAS, ...ERAS].map((era) => served.connect({ era })));
  const told = await Promise.all(clients.map(read));
  assert.deepEqual(told, clients.map(() => [{ type: "text", text: "hello" }]));
  for (const { client } of clients) {
    const { tools } = await client.listTools();
    assert.ok(tools.some(({ name }) => name === "search"), "the meta-tools are listed");
  }
  await Promise.all(clients.map((each) => each[Symbol.asyncDispose]()));
  assert.equal((await stat(`${ws.home}/serve_token`)).mode & 0o777, 0o600);
  assert.ok(served.token.length >= 40);
});

Deno.test("a question goes to the client that called, in both revisions", async () => {
  await using ws = await makeAttackWorkspace({
    files: { "a.txt": "hello" },
    pml: { version: 1, permissions: { ask: ["filesystem:*"] } },
  });
  await using served = await servePml(ws);
  const asked: Era[] = [];
  const clients = await Promise.all(ERAS.map((era) =>
    served.connect({
      era,
      elicit: () => {
        asked.push(era);
        return { action: "accept", content: { answer: "Yes" } };
      },
    })
  ));
  for (const client of clients) {
    assert.deepEqual(await read(client), [{ type: "text", text: "hello" }]);
  }
  assert.deepEqual(asked, ERAS);
  await Promise.all(clients.map((each) => each[Symbol.asyncDispose]()));
});

const REFUSED:
  readonly (readonly [string, number, RequestInit & { path?: string; url?: string }])[] = [
    ["no token", 401, { headers: { authorization: "" } }],
    ["another token", 401, { headers: { authorization: "Bearer x" } }],
    ["a token in the query", 401, { headers: { authorization: "" }, path: "/mcp?token=x" }],
    ["another path", 404, { path: "/other" }],
    ["another method", 405, { method: "PUT", body: "{}" }],
    ["another origin", 403, { headers: { origin: "https://evil.example" } }],
    ["an opaque origin", 403, { headers: { origin: "null" } }],
    ["another type", 415, { headers: { "content-type": "text/plain" } }],
    ["a compressed body", 415, { headers: { "content-encoding": "gzip" } }],
    ["too much", 413, { body: `"${"x".repeat(70_000)}"` }],
    ["no JSON", 400, { body: "{" }],
    ["no session", 400, { body: JSON.stringify({ ...INITIALIZE, method: "tools/list" }) }],
    ["an unknown session", 404, {
      body: JSON.stringify({ ...INITIALIZE, method: "tools/list", params: {} }),
      headers: { "mcp-session-id": crypto.randomUUID() },
    }],
  ];

Deno.test("invalid and unauthorized requests are refused", async (t) => {
  await using ws = await makeAttackWorkspace({ limits: { input_bytes: 65_536 } });
  await using served = await servePml(ws);
  for (const [what, status, { path, ...init }] of REFUSED) {
    await t.step(what, async () => {
      const response = await served.fetch({
        method: "POST",
        body: JSON.stringify(INITIALIZE),
        ...init,
      }, path);
      const text = await response.text();
      assert.equal(response.status, status, text);
      assert.equal(response.headers.get("access-control-allow-origin"), null);
      assert.ok(!text.includes(served.token));
    });
  }
  await t.step("health needs no token, and returns only the status", async () => {
    const { host } = new URL(served.url);
    // Such a client sends no Authorization header.
    const said = async (path: string) => {
      const response = await fetch(`http://${host}${path}`);
      return [response.status, await response.text()];
    };
    const fine = [200, '{"status":"ok"}'];
    assert.deepEqual([await said("/health"), await said("/ready")], [fine, fine]);
    assert.equal((await said("/mcp"))[0], 401);
    await Deno.writeTextFile(ws.file(".pml.json"), '{"version": 1, "no_such_key": 1}');
    await until(async () => (await said("/ready"))[0] === 503);
    const [, text] = await said("/ready");
    assert.doesNotMatch(String(text), /no_such_key|\//, "it tells nothing of the configuration");
    assert.deepEqual(await said("/health"), fine);
  });
  assert.match(served.stderr, /Refused a request/);
  assert.ok(!served.stderr.includes(served.token), "the log holds no token");
});

Deno.test("pml serve ends after a signal and the calls that run, with exit code 0", async () => {
  await using ws = await makeAttackWorkspace(SLOW);
  // A signal ends it.
  await using served = await servePml(ws, [], { ownProcess: true });
  await using one = await served.connect();
  const params = { name: "call", arguments: { tool: "slow:wait", arguments: { path: "go.txt" } } };
  const called = one.client.callTool(params);
  called.catch(() => {}); // asserted below
  await until(async () => ofKind(await journalOf(ws), "start").length === 1);
  served.kill("SIGTERM");
  await until(() => served.fetch({}, "/ready").then(({ ok }) => !ok, () => true));
  // Without waiting for the call, PML would end in this time.
  await new Promise((done) => setTimeout(done, 1_000));
  await Deno.writeTextFile(ws.file("go.txt"), "went");
  assert.deepEqual((await called).content, [{ type: "text", text: "went" }]);
  assert.equal(await within(served.ended, { what: () => "it does not end" }), 0);
});

Deno.test("pml serve ends at once after a second signal, with its child processes", async () => {
  await using ws = await makeAttackWorkspace(SLOW);
  // Two signals end it.
  await using served = await servePml(ws, [], { ownProcess: true });
  await using one = await served.connect();
  const params = { name: "call", arguments: { tool: "slow:wait", arguments: { path: "go.txt" } } };
  one.client.callTool(params).catch(() => {}); // it is lost
  await until(async () => ofKind(await journalOf(ws), "start").length === 1);
  const watch = new ProcWatch(ws);
  await until(async () => (await watch.remember(served.pid)).length > 1);
  served.kill("SIGTERM");
  // After the first signal it accepts no requests, and waits for the call.
  await until(() => served.fetch({}, "/ready").then(({ ok }) => !ok, () => true));
  const since = performance.now();
  served.kill("SIGTERM");
  assert.equal(await within(served.ended, { what: () => "it does not end" }), 143);
  assert.ok(performance.now() - since < 1_000);
  await watch.assertNothingLeft();
});

Deno.test("wrong usage of pml serve is reported", async () => {
  await using ws = await makeAttackWorkspace();
  const table: readonly (readonly [RegExp, ...string[]])[] = [
    [/could read the token/, "--host", "0.0.0.0"],
    [/not a number/, "--port", "70000"],
    [/go together/, "--cert", "a.pem"],
    [/has no token/, "--token-env", "NO_SUCH"],
    [/too short/, "--token-env", "TERM"],
    [/is no origin/, "--allow-origin", "evil"],
  ];
  for (const [says, ...args] of table) {
    const { code, stderr } = await runPml(ws, ["serve", ...args]);
    assert.match(stderr, says);
    assert.notEqual(code, 0);
  }
});

/** The lowest port at which this account may listen: 0 in some containers. */
const FREE_FROM = Number(await readFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", "utf8"));

Deno.test({
  name: "the error of a port that this account may not use contains the next step (HT6)",
  ignore: FREE_FROM < 2,
  fn: async () => {
    await using ws = await makeAttackWorkspace();
    const bare = pmlCommand();
    // Root may use the port, so this drops that capability.
    const without = ["setpriv", "--bounding-set=-net_bind_service", ...bare] as const;
    const command = Deno.uid() === 0 ? without : bare;
    const result = await runPml(ws, ["serve", "--port", `${FREE_FROM - 1}`], { command });
    assert.equal(result.code, 2, result.stderr);
    assert.match(result.stderr, /Cannot serve MCP at .*EACCES.*\n.*Give another --port/);
    assert.doesNotMatch(result.stderr, /\n\s+at /);
  },
});

Deno.test("pml init --http writes an entry that names the token's variable, once", async () => {
  await using ws = await makeAttackWorkspace();
  const { code, stdout, stderr } = await runPml(ws, ["init", "--yes", "--http"]);
  assert.equal(code, 0, stderr);
  assert.match(stdout + stderr, /pml serve/);
  const text = await Deno.readTextFile(ws.file(".mcp.json"));
  const { mcpServers: { pml } } = JSON.parse(text);
  assert.deepEqual(pml, {
    type: "http",
    url: "http://127.0.0.1:3003/mcp",
    headers: { Authorization: "Bearer ${PML_TOKEN:-}" },
    alwaysLoad: true,
  });
  await runPml(ws, ["init", "--yes", "--http"]);
  assert.equal(await Deno.readTextFile(ws.file(".mcp.json")), text, "a second run changes nothing");
});
