/**
 * Results and other messages whose parsing would cost the gateway time and memory: they end their
 * own call, and delay no other.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import type { Message } from "../kit/json_rpc.ts";
import { tinyServer } from "../kit/tiny_server.ts";
import { until } from "../kit/wait.ts";
import { assertRefused, assertResponsive, flood, floodScene } from "./floods.ts";
import { assertAftermath, assertServes, batchedCalls, endWell, textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

const MB = 1_000_000;
const MANY = /over 500000 JSON values/;

Deno.test("a stdio server's result of millions of values ends only its call (GW3)", async () => {
  await using scene = await floodScene(["a", "b"], { era: "2026-07-28" });
  const { ws, pml } = scene;
  await assertResponsive(pml, async () => {
    // An even size puts the id at the end.
    for (const size of [12 * MB, 12 * MB + 1]) {
      const small = flood(pml, "a:text", 100);
      assertRefused(await flood(pml, "a:objects", size), MANY);
      assert.equal(textOf(await small).length, 100);
    }
    const both = await Promise.all(
      ["a", "b"].map((name) => flood(pml, `${name}:objects`, 60 * MB)),
    );
    for (const answer of both) assertRefused(answer, /has 600000\d\d bytes, more than 33554432/);
    assertRefused(await flood(pml, "a:names", 31 * MB), /over 100 names of more than 16000/);
    assertRefused(await flood(pml, "a:meta", 60_000), /60000 members in _meta, more than 500/);
    assertRefused(await flood(pml, "a:audience", 400_000), /members in audience/);
    assertRefused(await flood(pml, "a:deep", 100_000), /nested deeper than 10000/);
    assertRefused(await flood(pml, "a:blocks", 5_000), /5000 blocks, more than 4096/);
  });
  assert.equal(textOf(await flood(pml, "a:text", 1_000)).length, 1_000, "it is the same server");
  await endWell(ws, pml);
});

Deno.test("oversized messages of a server other than results are skipped (GW3)", async () => {
  await using scene = await floodScene(["a"]);
  const { ws, pml } = scene;
  await assertResponsive(pml, async () => {
    for (const what of ["told", "strange"]) {
      assert.equal(textOf(await flood(pml, `a:${what}`, 40 * MB)), "done");
      assert.equal(textOf(await flood(pml, `a:${what}`, 12 * MB)), "done");
    }
  });
  await endWell(ws, pml);
});

Deno.test("two texts of 60 MB at the same time are refused, and one of 31 MB passes (GW3)", async () => {
  await using scene = await floodScene(["a", "b"]);
  const { ws, pml } = scene;
  await assertResponsive(pml, async () => {
    const both = await Promise.all(["a", "b"].map((name) => flood(pml, `${name}:text`, 60 * MB)));
    for (const answer of both) assertRefused(answer, /more than 33554432/);
  });
  assert.equal(textOf(await flood(pml, "a:text", 31 * MB)).length, 31 * MB);
  await endWell(ws, pml);
});

Deno.test("output of a server that was stopped for unexpected messages is not parsed (GW3)", async () => {
  const names = ["a", "b"];
  await using scene = await floodScene(names);
  const { ws, pml } = scene;
  await assertResponsive(pml, async () => {
    const all = await Promise.all(names.map((name) => flood(pml, `${name}:lines`, 4 * MB)));
    for (const answer of all) {
      assert.match(textOf(answer), /UPSTREAM_PROTOCOL: .*no request/);
    }
  });
  await endWell(ws, pml);
});

Deno.test("servers that stop in the middle of large results slow no other server down (GW3)", async () => {
  await using scene = await floodScene(["a", "b", "c"]);
  const { ws, pml } = scene;
  const ledger = ws.file("written");
  for (const name of ["a", "b"]) {
    const size = 33 * MB;
    pml.callTool(`${name}__half`, { size, ledger }, { ms: 60_000 }).catch(() => {}); // never answered
  }
  await until(async () => (await readFile(ledger, "utf8").catch(() => "")).length === 16);
  for (const size of [100, 200_000, 20 * MB]) {
    const waits: number[] = [];
    for (let time = 0; time < 5; time++) {
      const since = performance.now();
      assert.equal(textOf(await flood(pml, "c:text", size)).length, size);
      waits.push(performance.now() - since);
    }
    const most = size > MB ? 5_000 : 300;
    assert.ok(Math.min(...waits) < most, `${size} bytes took ${waits} ms`);
  }
  assert.equal((await pml.close()).code, 0);
  await assertAftermath(ws, pml);
});

Deno.test("a server over HTTP cannot flood with values or lines (GW3)", async () => {
  await using server = new HttpFlood();
  const far = { type: "http", url: server.url };
  await using scene = await floodScene(["a"], { era: "2025-11-25", servers: { far } });
  const { ws, pml } = scene;
  const asked = (tool: string) => pml.callTool(`far__${tool}`, {}, { ms: 60_000 });
  assert.equal(textOf(await asked("done")), "done");
  await assertResponsive(pml, async () => {
    for (const way of ["json", "event"]) {
      assertRefused(await asked(`${way}_objects`), MANY);
      const both = await Promise.all([asked(`${way}_large`), asked(`${way}_large`)]);
      for (const answer of both) assertRefused(answer, /more than 33554432/);
    }
    for (const tool of Object.keys(LINES)) {
      assert.equal(textOf(await asked(tool)), "done", tool);
    }
  });
  await endWell(ws, pml);
});

Deno.test("a request of millions of values is refused before it is parsed (GW3)", async () => {
  await using scene = await floodScene(["a"]);
  const { ws, pml } = scene;
  const refusals = () => pml.messages.filter(({ id }) => id === null);
  await assertResponsive(pml, async () => {
    const line = `{"jsonrpc":"2.0","method":"x","params":{"all":[${"{},".repeat(2_600_000)}{}]}}\n`;
    await pml.sendText(line);
    await pml.sendText(`{"jsonrpc":"2.0","method":"x","params":{"all":${"[".repeat(MB)}}}\n`);
    await assertServes(pml);
  });
  const limits = refusals().map((
    { error },
  ) => [error?.code, /\d+/.exec(error?.message ?? "")?.[0]]);
  assert.deepEqual(limits, [[-32600, "500000"], [-32700, "10000"]]);
  // A request whose id can be read gets a response.
  const list = `{"params":{"id":1,"list":[${"{},".repeat(600_000)}{}]}`;
  const answer = pml.expect("too much");
  await pml.sendText(`${list},"method":"tools/call","id":"too much","jsonrpc":"2.0"}\n`);
  assert.match((await answer).error?.message ?? "", /^INPUT_TOO_LARGE: it has over 500000/);
  await endWell(ws, pml);
});

/** Streams of many lines before the response, some of which form one event. */
const LINES: Readonly<Record<string, string>> = {
  data: "data:\n",
  data_blank: "data: \r\n",
  data_short: "data:x\n",
  comments: ":\n",
  ends: "\n",
  unknown: "x\n",
};

/** A server over HTTP of the older revisions whose tools are named after their answers. */
class HttpFlood implements AsyncDisposable {
  readonly #server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    (request) => this.#answer(request),
  );

  /** The address that it listens on. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}/mcp`;
  }

  /** Stops listening. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }

  async #answer(request: Request): Promise<Response> {
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const { id, method, params }: Message = await request.json();
    const said = (result: unknown) => Response.json({ jsonrpc: "2.0", id, result });
    switch (method) {
      case "initialize": {
        const serverInfo = { name: "far", version: "1" };
        return said({ protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo });
      }
      case "tools/list":
        return said({ tools: TOOLS.map((name) => ({ name, inputSchema: { type: "object" } })) });
      case "tools/call":
        return called(String(params?.name), JSON.stringify(id));
      default:
        if (id === undefined) return new Response(null, { status: 202 });
        return Response.json({ jsonrpc: "2.0", id, error: { code: -32601, message: "no" } });
    }
  }
}

const WAYS = ["json", "event"];
const TOOLS = [
  "done",
  ...WAYS.flatMap((way) => [`${way}_objects`, `${way}_large`]),
  ...Object.keys(LINES),
];

function called(tool: string, id: string): Response {
  const done = `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"done"}]}}`;
  if (tool === "done") return bodyOf("application/json", [done]);
  const lines = LINES[tool];
  if (lines !== undefined) {
    return bodyOf("text/event-stream", [...many(lines, 30 * MB), `\n\ndata: ${done}\n\n`]);
  }
  const [way, what] = tool.split("_");
  const size = (what === "large" ? 60 : 12) * MB;
  const pieces = [
    `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"structuredContent":{"all":[`,
    ...many("{},", size),
    "{}]}}}",
  ];
  if (way === "json") return bodyOf("application/json", pieces);
  return bodyOf("text/event-stream", ["data: ", ...pieces, "\n\n"]);
}

/** Repeats a text to about so many bytes, in parts. */
function many(text: string, size: number): readonly string[] {
  const piece = text.repeat(Math.round(100_000 / text.length));
  return Array(Math.round(size / piece.length)).fill(piece);
}

function bodyOf(type: string, pieces: readonly string[]): Response {
  const body = ReadableStream.from(pieces).pipeThrough(new TextEncoderStream());
  return new Response(body, { headers: { "content-type": type } });
}

Deno.test("all results of a batch share the size limit of one, and each of its calls is answered (GW3)", async () => {
  const server = { command: Deno.execPath(), args: ["run", "-A", "tiny.js"] };
  const pml = {
    version: 1,
    permissions: { allow: ["filesystem:*", "big:*"] },
    mcpServers: { big: server },
  };
  const files = { "tiny.js": tinyServer("'\u0000'.repeat(params.arguments.size)") };
  await using scene = await makeScene({
    pml,
    files,
    limits: { result_bytes: 1_000_000, inline_bytes: 0 },
    // PML reads large results while its server writes.
    ownProcess: true,
  });
  const calls = [...Array(20).keys()].map((at) => ({
    ...{ id: String(at), tool: "big:tell", arguments: { size: at === 19 ? 1 : 40_000 } },
  }));
  const answer = await scene.pml.callTool("batch", { calls });
  const text = textOf(answer);
  assert.ok(text.length < 1_100_000, `${text.length} characters`);
  const items = batchedCalls(answer);
  assert.equal(items.length, 20);
  const codes = items.map(({ error }) => error?.code ?? "given");
  assert.deepEqual([...new Set(codes)].sort(), ["RESULT_TOO_LARGE", "given"]);
  assert.equal(codes[19], "given", "a small one has room");
  await endWell(scene.ws, scene.pml, { calls: 21 });
});

/** A server whose results have a key with an escape, and a long text. */
const ESCAPED = `
let rest = "";
const say = (id, result) => console.log('{"jsonrpc":"2.0","id":' + JSON.stringify(id) + ',"result":' + result + "}");
for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + chunk).split("\\n");
  rest = lines.pop();
  for (const { id, method, params } of lines.map((line) => JSON.parse(line))) {
    const serverInfo = { name: "e", version: "1" };
    const { protocolVersion } = params ?? {};
    if (method === "initialize") say(id, JSON.stringify({ protocolVersion, capabilities: {}, serverInfo }));
    else if (method === "tools/list") say(id, '{"tools":[{"name":"tell","inputSchema":{"type":"object"}}]}');
    else if (id !== undefined) {
      const text = "x".repeat(20_000_000);
      say(id, '{"structuredContent":{"gr\\\\u00f6\\\\u00dfe":1},"content":[{"type":"text","text":"' + text + '"}]}');
    }
  }
}`;

Deno.test("a long result with an escape in a key is answered soon (GW3)", async () => {
  const server = { command: Deno.execPath(), args: ["run", "-A", "escaped.js"] };
  const pml = {
    version: 1,
    permissions: { allow: ["filesystem:*", "own:*"] },
    mcpServers: { own: server },
  };
  const limits = { call_ms: 20_000, inline_bytes: 0 };
  await using scene = await makeScene({
    ...{ pml, files: { "escaped.js": ESCAPED }, limits },
    // PML reads large results while its server writes.
    ownProcess: true,
  });
  const { result } = await scene.pml.callTool("call", { tool: "own:tell" });
  assert.equal(textOf({ result }).length, 20_000_000);
  assert.deepEqual(result?.structuredContent as unknown, { größe: 1 });
  await endWell(scene.ws, scene.pml, { calls: 2 });
});
