/**
 * Tests metrics: `/metrics` of `pml serve`, and `pml metrics` of all running PMLs of a home.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { MetricFamily } from "../src/audit/metric_families.ts";
import { connect } from "./kit/client.ts";
import { assertGolden } from "./kit/golden.ts";
import { denoServer } from "./kit/pml_command.ts";
import { connectHttp, servePml, type TestServer } from "./kit/pml_serve.ts";
import { runPml } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const GOOD = { path: "good.txt" };

async function ruled(more: object = {}): Promise<Workspace> {
  return await makeWorkspace({
    files: { "good.txt": "good\n" },
    pml: {
      version: 1,
      gateway: { tools_exposure: "full_proxy" },
      permissions: { allow: ["filesystem:*"] },
      ...more,
    },
  });
}

/** Returns a value of the text of Prometheus; 0 if it has no such line. */
function valueIn(text: string, series: string): number {
  const line = text.split("\n").find((one) => one.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1) ?? 0);
}

async function metricsOf(
  ws: Workspace,
  { url }: TestServer,
): Promise<{ readonly token: string; readonly read: () => Promise<string> }> {
  const file = join(ws.home, "metrics_token");
  const token = (await Deno.readTextFile(file)).trim();
  const read = async () => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(new URL("/metrics", url), { headers });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    return await response.text();
  };
  return { token, read };
}

Deno.test("/metrics counts requests, calls, errors and tokens by listed names", async () => {
  await using ws = await ruled();
  await using served = await servePml(ws, ["--metrics"]);
  const { read } = await metricsOf(ws, served);
  await using at = await connectHttp(served);
  await at.client.listTools();
  await at.client.callTool({ name: "filesystem__read_file", arguments: GOOD });
  await at.client.callTool({ name: "filesystem__read_file", arguments: { path: "none.txt" } });
  for (let count = 0; count < 3; count++) {
    const name = `odd-canary-${count}"\n`;
    await at.client.callTool({ name, arguments: {} }).catch(() => {});
    await at.client.callTool({ name: "call", arguments: { tool: `x:y${count}` } }).catch(() => {});
  }
  let text = "";
  const served1 = 'mcp_server_operation_duration_seconds_count{mcp_method_name="tools/call",' +
    'gen_ai_tool_name="filesystem__read_file"}';
  await until(async () => valueIn(text = await read(), served1) === 1);
  const failed = served1.replace("}", ',error_type="tool_error"}');
  assert.equal(valueIn(text, failed), 1);
  const buckets = text.split("\n").filter((line) =>
    line.startsWith(served1.replace("_count", "_bucket").slice(0, -1)) && !line.includes("error")
  );
  assert.equal(buckets.length, 15);
  assert.match(buckets.at(-1) ?? "", /le="\+Inf"\} 1$/);
  const calls = (outcome: string) =>
    valueIn(text, `pml_calls_total{server="filesystem",tool="read_file",outcome="${outcome}"}`);
  await until(async () => {
    text = await read();
    return calls("result") === 1 && calls("tool_error") === 1;
  });
  const unlisted = 'mcp_server_operation_duration_seconds_count{mcp_method_name="tools/call",' +
    'gen_ai_tool_name="_OTHER",error_type="-32602"}';
  assert.equal(valueIn(text, unlisted), 3);
  assert.doesNotMatch(text, /canary|x:y|"y\d/);
  assert.equal(valueIn(text, 'pml_answers_total{method="tools/list",mode="full_proxy"}'), 1);
  assert.ok(valueIn(text, 'pml_answer_tokens_total{method="tools/list",mode="full_proxy"}') > 100);
  assert.equal(valueIn(text, "pml_processes"), 1);
  assert.ok(valueIn(text, 'pml_memory_bytes{of="pml"}') > 1_000_000);
  assert.equal(valueIn(text, "pml_calls_running"), 0);
  await until(async () => valueIn(await read(), 'pml_starts_total{command="serve"}') === 1);
});

Deno.test("/metrics keeps the counts of an identity whose token is revoked", async () => {
  await using ws = await ruled();
  const token = createHash("sha256").update("token-of-ci").digest("hex");
  const identities = { ci: { token, permissions: { allow: ["filesystem:*"] } } };
  await writeFile(join(ws.home, "config.yaml"), JSON.stringify({ identities }));
  await using served = await servePml(ws, ["--metrics"]);
  const { read } = await metricsOf(ws, served);
  const calls = async () =>
    valueIn(
      await read(),
      'pml_calls_total{server="filesystem",tool="read_file",outcome="result"}',
    );
  {
    await using ci = await connectHttp({ url: served.url, token: "token-of-ci" });
    await ci.client.callTool({ name: "filesystem__read_file", arguments: GOOD });
  }
  await until(async () => await calls() === 1);
  assert.equal((await runPml(ws, ["token", "revoke", "ci"])).code, 0);
  await until(async () => {
    const headers = { authorization: "Bearer token-of-ci" };
    const response = await served.fetch({ method: "POST", body: "{}", headers });
    await response.text();
    return response.status === 401;
  });
  for (let time = 0; time < 20; time++) assert.equal(await calls(), 1);
});

Deno.test("/metrics counts the requests to servers by server and method", async () => {
  await using ws = await ruled({
    permissions: { allow: ["p:*"] },
    mcpServers: { p: denoServer("tests/kit/params_server.ts") },
  });
  await using served = await servePml(ws, ["--metrics"]);
  const { read } = await metricsOf(ws, served);
  await using at = await connectHttp(served);
  await until(async () => (await at.client.listTools()).tools.length > 0);
  await at.client.callTool({ name: "p__read", arguments: {} });
  const of = (method: string) =>
    `mcp_client_operation_duration_seconds_count{mcp_method_name="${method}",pml_server="p"}`;
  let text = "";
  await until(async () => valueIn(text = await read(), of("tools/call")) === 1);
  assert.equal(valueIn(text, of("initialize")), 1);
  assert.ok(valueIn(text, of("tools/list")) >= 1);
  assert.ok(valueIn(text, "pml_children") >= 1);
  assert.ok(valueIn(text, 'pml_memory_bytes{of="children"}') > 1_000_000);
});

Deno.test("/metrics is off by default, and only its own token opens it", async () => {
  await using ws = await ruled();
  {
    await using served = await servePml(ws);
    assert.equal((await served.fetch({}, "/metrics")).status, 404);
    await assert.rejects(stat(join(ws.home, "metrics_token")));
  }
  await writeFile(join(ws.home, "config.yaml"), JSON.stringify({ serve: { metrics: true } }));
  await using served = await servePml(ws);
  const { token } = await metricsOf(ws, served);
  assert.equal((await stat(join(ws.home, "metrics_token"))).mode & 0o777, 0o600);
  const status = async (path: string, key: string, init: RequestInit = {}) => {
    const headers = { ...init.headers, authorization: `Bearer ${key}` };
    const response = await fetch(new URL(path, served.url), { ...init, headers });
    await response.body?.cancel();
    return response.status;
  };
  assert.equal(await status("/metrics", token), 200);
  // The owner's token reads no metrics, and that of metrics calls no tool.
  assert.equal(await status("/metrics", served.token), 401);
  assert.equal(await status("/metrics", ""), 401);
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  assert.equal(await status("/mcp", token, { method: "POST", headers, body }), 401);
  assert.equal(await status("/metrics", token, { method: "POST" }), 405);
  assert.equal(
    await status("/metrics", token, { headers: { origin: "https://evil.example" } }),
    403,
  );
});

Deno.test("pml serve refuses a token of metrics that is its own", async () => {
  const KEY = "one-token-for-both-0001";
  await using ws = await ruled();
  const args = ["serve", "--port", "0", "--token-env", "KEY", "--metrics"];
  const { code } = await runPml(ws, [...args, "--metrics-token-env", "KEY"], { env: { KEY } });
  assert.equal(code, 2);
});

Deno.test("pml metrics joins all running PMLs of the home", async () => {
  await using ws = await ruled();
  await using one = await connect(ws);
  await using two = await connect(ws);
  for (const { client } of [one, two]) {
    await client.listTools();
    await client.callTool({ name: "filesystem__read_file", arguments: GOOD });
  }
  const family = async (name: string): Promise<MetricFamily | undefined> => {
    const { stdout } = await runPml(ws, ["metrics", "--json"]);
    return (JSON.parse(stdout).families as MetricFamily[]).find((each) => each.name === name);
  };
  const labels = { server: "filesystem", tool: "read_file", outcome: "result" };
  await until(async () => {
    const calls = await family("pml_calls_total");
    return JSON.stringify(calls?.samples) === JSON.stringify([{ labels, value: 2 }]);
  });
  const { stdout: text } = await runPml(ws, ["metrics"]);
  assert.match(text, /^2 running PMLs: stdio \(\d+\), stdio \(\d+\)/);
  assert.match(text, /filesystem read_file result: 2/);
  const { stdout: prometheus } = await runPml(ws, ["metrics", "--prometheus"]);
  assert.equal(valueIn(prometheus, "pml_processes"), 2);
});

Deno.test("pml metrics shows the counts of the home if no PML runs", async () => {
  await using ws = await ruled();
  const { stdout, code } = await runPml(ws, ["metrics"]);
  assert.equal(code, 0);
  assertGolden("metrics/no PML runs", stdout);
  const { stdout: prometheus } = await runPml(ws, ["metrics", "--prometheus"]);
  assertGolden("metrics/no PML runs, for Prometheus", prometheus);
});

/** Replaces the amounts that depend on the machine. */
function withoutAmounts(text: string): string {
  return text
    .replaceAll(/[\d.]+ ms on average, 95% at most [\d.]+ m?s/g, "<MEAN>, 95% at most <BOUND>")
    .replaceAll(/(?<!: 0\.0 )(?<=: )[\d.]+ MiB/g, "<SIZE>")
    .replaceAll(/(?<=full_proxy: )\d{4}/g, "<TOKENS>")
    .replaceAll(/(?<=^(?:Processes|Programs) .*: |^ {2}ready: )\d+/gm, "<COUNT>")
    .replaceAll(/stdio \(\d+\)/g, "stdio (<PID>)");
}

Deno.test({
  name: "pml metrics shows the counts of a running PML as text",
  // Memory and processes are counted on Linux.
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    await using ws = await ruled();
    await using pml = await connect(ws);
    await pml.client.listTools();
    await pml.client.callTool({ name: "filesystem__read_file", arguments: GOOD });
    await pml.client.callTool({ name: "filesystem__read_file", arguments: { path: "none.txt" } });
    let text = "";
    await until(async () => {
      text = (await runPml(ws, ["metrics"])).stdout;
      return /failed|tool_error/.test(text) && /stdio: 1/.test(text);
    });
    assertGolden("metrics/a running PML", withoutAmounts(text));
  },
});
