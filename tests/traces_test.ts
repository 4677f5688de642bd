/**
 * Tests traces with a collector on this machine: the spans of each kind of request, the context in
 * `_meta`, and collectors that are dead, slow or hostile.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeScene, type Scene, type SceneOptions } from "./attacks/stage.ts";
import { codeOf, textOf } from "./attacks/oracles.ts";
import { BothHttp } from "./kit/both_server.ts";
import { Collector, type ReceivedSpan } from "./kit/collector.ts";
import { denoServer } from "./kit/pml_command.ts";
import { connectHttp, servePml } from "./kit/pml_serve.ts";
import { WAYS } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace } from "./kit/workspace.ts";
import { answers, scriptScene } from "./script_scene.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const CONTEXT = {
  traceparent: `00-${TRACE}-${PARENT}-01`,
  tracestate: "vendor=a1",
  baggage: "user=ann",
};

/** Starts PML with a server that returns the params of its calls. */
async function paramsScene(
  collector: Pick<Collector, "env">,
  more: SceneOptions = {},
): Promise<Scene> {
  const scene = await makeScene({
    pml: {
      version: 1,
      gateway: { tools_exposure: "full_proxy" },
      permissions: { allow: ["p:*", "pml:*"] },
      mcpServers: { p: denoServer("tests/kit/params_server.ts") },
    },
    limits: { first_list_ms: 60_000 },
    ...more,
    env: { ...collector.env, ...more.env },
  });
  await until(async () => textOf(await scene.pml.callTool("p__read")).startsWith("{"));
  return scene;
}

const isServed = (name: string) => (span: ReceivedSpan) =>
  span.kind === "SERVER" && span.name === name;

for (const { door, era, on } of WAYS) {
  Deno.test(`a call has a span of its client and of its server (${on})`, async () => {
    await using collector = new Collector();
    await using scene = await paramsScene(collector, { door, era });
    const { pml } = scene;
    const secret = "argument-canary";
    const answer = await pml.request("tools/call", {
      name: "p__read",
      arguments: { secret },
      _meta: CONTEXT,
    });
    const trace = await collector.trace(({ traceId, kind }) =>
      traceId === TRACE && kind === "SERVER"
    );
    const [served] = trace.filter(({ kind }) => kind === "SERVER");
    const [sent] = trace.filter(({ kind }) => kind === "CLIENT");
    assert.ok(served !== undefined && sent !== undefined);
    assert.deepEqual([served.name, sent.name], ["tools/call p__read", "tools/call read"]);
    assert.deepEqual([served.parentSpanId, sent.parentSpanId], [PARENT, served.spanId]);
    assert.equal(served.attributes["mcp.protocol.version"], era);
    assert.equal(served.attributes["network.transport"], door === "http" ? "tcp" : "pipe");
    const session = served.attributes["mcp.session.id"];
    if (door === "http" && era === "2025-11-25") assert.match(session ?? "", /^[0-9a-f]{32}$/);
    else assert.equal(session, undefined);
    for (const { attributes } of [served, sent]) {
      assert.equal(attributes["mcp.method.name"], "tools/call");
      assert.equal(attributes["gen_ai.operation.name"], "execute_tool");
      assert.equal(attributes["error.type"], undefined);
    }
    assert.equal(sent.attributes["pml.server"], "p");
    assert.equal(sent.attributes["mcp.protocol.version"], "2025-11-25");
    assert.match(sent.attributes["jsonrpc.request.id"] ?? "", /^\d+$/);
    // The server gets the span of PML as its parent, and nothing of the baggage.
    const { _meta } = JSON.parse(textOf(answer));
    assert.equal(_meta.traceparent, `00-${TRACE}-${sent.spanId}-01`);
    assert.equal(_meta.tracestate, CONTEXT.tracestate);
    assert.ok(!("baggage" in _meta));
    for (const text of [secret, "ann"]) assert.ok(!collector.text.includes(text), text);
  });
}

Deno.test("the last spans are sent when PML ends, also of an identity whose token is revoked", async () => {
  await using collector = new Collector();
  const env = { ...collector.env, OTEL_BSP_SCHEDULE_DELAY: "3600000" };
  const hash = createHash("sha256").update("token-of-ci").digest("hex");
  await using ws = await makeWorkspace({
    env,
    pml: { version: 1 },
    files: { "a.txt": "hi" },
  });
  const isCall = isServed("tools/call call");
  const permissions = { allow: ["filesystem:*"] };
  const identities = { ci: { token: hash, permissions } };
  await writeFile(join(ws.home, "config.yaml"), JSON.stringify({ identities, permissions }));
  const read = {
    name: "call",
    arguments: { tool: "filesystem:read_file", arguments: { path: "a.txt" } },
  };
  {
    await using served = await servePml(ws);
    await using ci = await connectHttp({ url: served.url, token: "token-of-ci" });
    await ci.client.callTool(read);
    assert.equal((await runPml(ws, ["token", "revoke", "ci"])).code, 0);
    await until(() => collector.spans.filter(isCall).length === 1);
    await using own = await served.connect();
    await own.client.callTool(read);
  }
  await until(() => collector.spans.filter(isCall).length === 2);
});

Deno.test("a result that is an error, and a JSON-RPC error, have their types", async () => {
  await using collector = new Collector();
  await using scene = await scriptScene("2025-11-25", { env: collector.env });
  const failed = `"result":{"isError":true,"content":[]}`;
  await scene.call(answers(failed));
  const typed = (kind: string, type: string) => (span: ReceivedSpan) =>
    span.kind === kind && span.isError && span.attributes["error.type"] === type;
  await collector.trace(typed("CLIENT", "tool_error"));
  await collector.trace(typed("SERVER", "tool_error"));
  await scene.call(answers(`"error":{"code":-32050,"message":"message-canary"}`));
  const [span] = await collector.trace(typed("CLIENT", "-32050"));
  assert.ok(span !== undefined);
  await scene.pml.request("tools/call", { name: "no__tool", arguments: {} });
  await collector.trace((one) => one.kind === "SERVER" && one.name === "tools/call no__tool");
  assert.ok(!collector.text.includes("message-canary"));
});

Deno.test("the calls of a batch, a plan and code are children of their request", async () => {
  await using collector = new Collector();
  await using scene = await paramsScene(collector, {
    pml: {
      version: 1,
      permissions: { allow: ["p:*", "pml:*"] },
      mcpServers: { p: denoServer("tests/kit/params_server.ts") },
    },
  });
  const { pml } = scene;
  const two = [{ tool: "p:read", arguments: { at: 1 } }, { tool: "p:read", arguments: { at: 2 } }];
  const task = (id: string) => ({ id, tool: "p:read", arguments: {} });
  const requests = {
    batch: { calls: two },
    execute_workflow: { plan: { tasks: [task("a"), task("b")] } },
    execute_code: { code: `await mcp.p.read({}); return await mcp.p.read({});` },
  };
  for (const [tool, args] of Object.entries(requests)) {
    const answer = await pml.callTool(tool, args);
    assert.equal(codeOf(answer), undefined, textOf(answer));
    const trace = await collector.trace(isServed(`tools/call ${tool}`));
    const [served] = trace.filter(({ kind }) => kind === "SERVER");
    const sent = trace.filter(({ kind, name }) => kind === "CLIENT" && name === "tools/call read");
    assert.equal(sent.length, 2, tool);
    for (const { parentSpanId } of sent) assert.equal(parentSpanId, served?.spanId);
  }
});

for (const hasNewest of [true, false]) {
  const revision = hasNewest ? "2026-07-28" : "2025-11-25";
  Deno.test(`a span to a server over HTTP has its address and session (${revision})`, async () => {
    await using collector = new Collector();
    await using server = new BothHttp();
    server.hasNewest = hasNewest;
    await using scene = await makeScene({
      pml: {
        version: 1,
        permissions: { allow: ["h:*"] },
        mcpServers: { h: { type: "http", url: `${server.url}?key=query-canary` } },
      },
      limits: { first_list_ms: 60_000 },
      era: revision,
      capabilities: {},
      env: collector.env,
    });
    await until(async () => codeOf(await scene.pml.callTool("h__log")) === undefined);
    const isSent = ({ kind, name, attributes }: ReceivedSpan) =>
      kind === "CLIENT" && name === "tools/call log" && attributes["error.type"] === undefined;
    const { attributes = {} } = (await collector.trace(isSent)).find(isSent) ?? {};
    assert.equal(attributes["server.address"], "127.0.0.1");
    assert.equal(attributes["server.port"], new URL(server.url).port);
    assert.equal(attributes["network.transport"], "tcp");
    assert.equal(attributes["mcp.protocol.version"], revision);
    const session = attributes["mcp.session.id"];
    assert.ok(hasNewest ? session === undefined : /^[0-9a-f]{32}$/.test(session ?? ""), session);
    assert.ok(!collector.text.includes("query-canary"));
  });
}

Deno.test("a call of a module has a span of PML", async () => {
  await using collector = new Collector();
  await using scene = await makeScene({ env: collector.env });
  await scene.pml.callTool("filesystem__read_file", { path: "good.txt" });
  const isRun = (span: ReceivedSpan) => span.name === "execute_tool read_file";
  const trace = await collector.trace(isRun);
  const run = trace.find(isRun);
  const served = trace.find(({ kind }) => kind === "SERVER");
  assert.deepEqual([run?.kind, run?.parentSpanId], ["INTERNAL", served?.spanId]);
  assert.equal(run?.attributes["pml.server"], "filesystem");
});

Deno.test("the URI in a span has neither a query nor a fragment", async () => {
  await using collector = new Collector();
  await using scene = await paramsScene(collector);
  await scene.pml.request("resources/read", { uri: "https://u:pw@h.example/a?key=canary#part" });
  const [span] = await collector.trace(isServed("resources/read"));
  assert.equal(span?.attributes["mcp.resource.uri"], "https://h.example/a");
  assert.ok(!collector.text.includes("canary"));
});

Deno.test("a client that records no trace gets none recorded, and its context passes", async () => {
  await using collector = new Collector();
  await using scene = await paramsScene(collector);
  const traceparent = `00-${TRACE}-${PARENT}-00`;
  const answer = await scene.pml.request("tools/call", {
    name: "p__read",
    arguments: {},
    _meta: { traceparent },
  });
  assert.equal(JSON.parse(textOf(answer))._meta.traceparent, traceparent);
  await scene.pml.callTool("p__change");
  await collector.trace(isServed("tools/call p__change"));
  assert.ok(!collector.spans.some(({ traceId }) => traceId === TRACE));
});

Deno.test("an invalid trace context begins a new trace", async () => {
  await using collector = new Collector();
  await using scene = await paramsScene(collector);
  for (const traceparent of ["x", `00-${"0".repeat(32)}-${PARENT}-01`, 7]) {
    const params = { name: "p__read", arguments: {}, _meta: { traceparent } };
    const answer = await scene.pml.request("tools/call", params);
    if (codeOf(answer) !== undefined) continue; // a value that needs an approval
    const { _meta } = JSON.parse(textOf(answer));
    assert.match(_meta.traceparent, /^00-(?!0{32})[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  }
});

Deno.test("pml doctor shows where traces are sent, and warns about the export of Deno", async () => {
  await using ws = await makeWorkspace();
  const findingsOf = async (env: Readonly<Record<string, string>>) => {
    const { stdout } = await runPml(ws, ["doctor", "--json"], { env });
    const { findings } = JSON.parse(stdout);
    const named = (name: string) =>
      findings.find((one: { readonly name: string }) => one.name === name);
    return { traces: named("traces"), own: named("OTEL_DENO") };
  };
  assert.deepEqual(Object.keys((await findingsOf({})).traces), ["name", "ok", "message"]);
  await using collector = new Collector();
  const { traces, own } = await findingsOf({ ...collector.env, OTEL_DENO: "true" });
  assert.ok(traces.message.includes(collector.url) && traces.warns === undefined);
  assert.equal(own.warns, true);
  assert.equal(collector.requests.length, 1);
  const dead = await findingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" });
  assert.deepEqual([dead.traces.warns, dead.own], [true, undefined]);
});

Deno.test("traces use the headers, the path and the encoding of the variables", async () => {
  await using collector = new Collector();
  await using _scene = await paramsScene({
    env: {
      ...collector.env,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own`,
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/protobuf",
      OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
      OTEL_EXPORTER_OTLP_HEADERS: "x-key=a%20b,x-other=2",
      OTEL_SERVICE_NAME: "my-pml",
    },
  });
  await until(() => collector.requests.length > 0);
  const [request] = collector.requests;
  assert.ok(request !== undefined);
  assert.equal(request.path, "/own");
  assert.equal(request.headers.get("content-type"), "application/x-protobuf");
  assert.equal(request.headers.get("x-key"), "a b");
  const zip = new Blob([request.body]).stream().pipeThrough(new DecompressionStream("gzip"));
  const text = await new Response(zip).text();
  assert.match(text, /my-pml/);
});

Deno.test("a file of a workspace cannot set the endpoint of traces", async () => {
  await using collector = new Collector();
  const files = {
    ".mcp.json": JSON.stringify({ mcpServers: { pml: { env: collector.env } } }),
    ".env": `OTEL_EXPORTER_OTLP_ENDPOINT=${collector.url}\n`,
  };
  {
    await using scene = await paramsScene(collector, { files });
    await until(() => scene.pml.stderr.includes("OTEL_EXPORTER_OTLP_ENDPOINT"));
  }
  {
    await using _scene = await paramsScene({ env: {} }, { files: { ".env": files[".env"] } });
  }
  // Both have ended, and the end sends the last spans.
  assert.equal(collector.requests.length, 0);
});

Deno.test("a policy with other hosts forbids the endpoint of traces", async () => {
  await using collector = new Collector();
  const folder = await Deno.makeTempDir({ prefix: "pml-policy-" });
  const policy = join(folder, "policy.yaml");
  await writeFile(policy, JSON.stringify({ hosts: ["a.example"] }), { mode: 0o644 });
  {
    await using scene = await paramsScene(collector, { env: { PML_POLICY: policy } });
    await until(() => /Cannot send traces/.test(scene.pml.stderr));
  }
  assert.equal(collector.requests.length, 0);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("traces are not sent to other machines without TLS", async () => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://192.0.2.1:4318",
    OTEL_BSP_SCHEDULE_DELAY: "1",
  };
  await using scene = await paramsScene({ env });
  await until(() => /Cannot send traces.*https/.test(scene.pml.stderr));
});

Deno.test("a collector that is dead, slow or broken delays no call and ends no PML", async () => {
  const big = () => {
    const piece = new Uint8Array(65_536);
    let count = 0;
    return new ReadableStream({
      pull: (stream) => (count++ > 160_000 ? stream.close() : stream.enqueue(piece)),
    });
  };
  const never = Promise.withResolvers<Response>();
  const kinds: Readonly<Record<string, () => Response | Promise<Response>>> = {
    slow: () => never.promise,
    broken: () => new Response("no", { status: 500 }),
    huge: () => new Response(big(), { status: 200 }),
    moved: () => new Response(null, { status: 307, headers: { location: "http://127.0.0.1:1/" } }),
    busy: () => new Response(null, { status: 503, headers: { "retry-after": "1" } }),
  };
  for (const [kind, answer] of Object.entries(kinds)) {
    await using collector = new Collector(answer);
    await using scene = await paramsScene(collector);
    await until(() => collector.requests.length > 0);
    for (let count = 0; count < 20; count++) await scene.pml.callTool("p__read");
    await scene.pml.close();
    if (kind === "slow") never.resolve(new Response());
  }
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1", OTEL_BSP_SCHEDULE_DELAY: "1" };
  await using scene = await paramsScene({ env });
  await until(() => /Cannot send traces/.test(scene.pml.stderr));
  await scene.pml.callTool("p__read");
  const lines = scene.pml.stderr.split("\n").filter((line) => /Cannot send traces/.test(line));
  assert.equal(lines.length, 1);
});
