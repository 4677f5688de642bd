/**
 * Attacks on the HTTP endpoint, byte by byte.
 *
 * @module
 */

import assert from "node:assert/strict";
import { DoorClient, type Reading } from "../kit/door_client.ts";
import { ERAS } from "../kit/json_rpc.ts";
import { repoFile } from "../kit/pml_command.ts";
import { servePml, type TestServer } from "../kit/pml_serve.ts";
import { rssOf } from "../kit/procwatch.ts";
import { type RawAnswer, rawHttp } from "../kit/raw_http.ts";
import { until, within } from "../kit/wait.ts";
import { scriptServer, told } from "../script_scene.ts";
import { journalOf, ofKind } from "./oracles.ts";
import { makeAttackWorkspace, SLOW } from "./stage.ts";

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
  "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
};
/** A call, because each dispatched call is in the journal. */
const CALL = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: {
    name: "call",
    arguments: { tool: "filesystem:read_file", arguments: { path: "good.txt" } },
    _meta: META,
  },
});
const CLOSED = /\r\n0\r\n\r\n|"}}$/;

interface Raw {
  readonly first?: string;
  readonly headers?: readonly string[];
  readonly body?: string;
}

/** Sends one request, by default a valid one. */
function send(
  { url, token }: TestServer,
  { first = "POST /mcp HTTP/1.1", headers, body = CALL }: Raw,
): Promise<RawAnswer> {
  const { port, host } = new URL(url);
  const own = headers ?? [
    `Host: ${host}`,
    `Authorization: Bearer ${token}`,
    "Content-Type: application/json",
    "Accept: application/json, text/event-stream",
    "Mcp-Protocol-Version: 2026-07-28",
    "Mcp-Method: tools/call",
    "Mcp-Name: call",
    `Content-Length: ${new TextEncoder().encode(body).length}`,
  ];
  const lines = [first, ...own, "Connection: close"].join("\r\n");
  return rawHttp(Number(port), [`${lines}\r\n\r\n${body}`], { ms: 5_000 });
}

/**
 * Returns the headers of a valid request, some of them replaced, omitted (undefined) or doubled.
 */
function headersOf(
  { url, token }: TestServer,
  changes: Readonly<Record<string, string | readonly string[] | undefined>>,
  body = CALL,
): readonly string[] {
  const all: Record<string, string | readonly string[] | undefined> = {
    Host: new URL(url).host,
    Authorization: `Bearer ${token}`,
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    "Mcp-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "call",
    "Content-Length": `${body.length}`,
    ...changes,
  };
  return Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((each) => `${name}: ${each}`)
  );
}

async function noCalls(ws: Parameters<typeof journalOf>[0]): Promise<void> {
  assert.equal(ofKind(await journalOf(ws), "start").length, 0, "nothing was dispatched");
}

Deno.test("HT1, HT2, HT3: foreign origins, hosts and tokens are refused before the body is read", async (t) => {
  await using ws = await makeAttackWorkspace();
  await using served = await servePml(ws);
  const { host, port } = new URL(served.url);
  const refused: readonly (readonly [string, number, Parameters<typeof headersOf>[1], string?])[] =
    [
      ["evil.com", 403, { Origin: "http://evil.com" }],
      ["null", 403, { Origin: "null" }],
      ["localhost.evil.com", 403, { Origin: "http://localhost.evil.com" }],
      ["a user of evil", 403, { Origin: "http://127.0.0.1@evil" }],
      ["file", 403, { Origin: "file://" }],
      ["two origins", 403, { Origin: [`http://${host}`, `http://${host}`] }],
      ["host evil.com", 403, { Host: "evil.com" }],
      ["host of nip.io", 403, { Host: `127.0.0.1.nip.io:${port}` }],
      ["two hosts", 400, { Host: [host, host] }],
      ["no host", 400, { Host: undefined }],
      ["an absolute target", 400, {}, "POST http://evil.com/mcp HTTP/1.1"],
      ["no token", 401, { Authorization: undefined }],
      ["an empty token", 401, { Authorization: "Bearer " }],
      ["a part of the token", 401, { Authorization: `Bearer ${served.token.slice(0, -1)}` }],
      ["basic", 401, { Authorization: `Basic ${served.token}` }],
      [
        "a token in the query",
        401,
        { Authorization: undefined },
        `POST /mcp?token=${served.token} HTTP/1.1`,
      ],
    ];
  for (const [what, status, changes, first] of refused) {
    await t.step(what, async () => {
      const raw = { headers: headersOf(served, changes), ...first !== undefined && { first } };
      const answer = await send(served, raw);
      assert.equal(answer.status, status, answer.text);
      assert.doesNotMatch(answer.text, /access-control-allow/i);
    });
  }
  await noCalls(ws);
  await t.step("a valid one passes", async () => {
    assert.equal((await send(served, {})).status, 200);
    const own = { Origin: `http://localhost:${port}`, Host: `localhost:${port}` };
    assert.equal((await send(served, { headers: headersOf(served, own) })).status, 200);
    const first = `POST HTTP://LOCALHOST:${port}/mcp HTTP/1.1`;
    assert.equal((await send(served, { first, headers: headersOf(served, own) })).status, 200);
  });
  assert.equal(ofKind(await journalOf(ws), "start").length, 3, "what is dispatched is seen");
});

Deno.test("HT4: a preflight of another origin gets no permission", async () => {
  await using ws = await makeAttackWorkspace();
  await using served = await servePml(ws);
  const asks = { Origin: "https://evil.com", "Access-Control-Request-Method": "POST" };
  const headers = headersOf(served, { ...asks, "Content-Length": undefined });
  const answer = await send(served, { first: "OPTIONS /mcp HTTP/1.1", headers, body: "" });
  assert.equal(answer.status, 403, answer.text);
  assert.doesNotMatch(answer.text, /access-control-allow/i);
});

const CHUNKED = { "Transfer-Encoding": "chunked", "Content-Length": undefined };

/** Returns requests whose bodies are refused, each with the status and text of its response. */
function wrongBodies(served: TestServer): readonly (readonly [string, number, RegExp, Raw])[] {
  const large = "x".repeat(300_000);
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  const answer = JSON.stringify({ jsonrpc: "2.0", id: 1, result: {} });
  return [
    ["a length over the limit", 413, /262144/, {
      headers: headersOf(served, {}, large),
      body: large,
    }],
    ["chunks over the limit", 413, /262144/, {
      headers: headersOf(served, CHUNKED),
      body: `493e0\r\n${large}\r\n0\r\n\r\n`,
    }],
    ["deep JSON", 400, /nested deeper/, { headers: headersOf(served, {}, deep), body: deep }],
    ["a gzip bomb", 415, /compressed/, {
      headers: headersOf(served, { "Content-Encoding": "gzip" }, "x"),
      body: "x",
    }],
    ["no JSON", 400, /-32700/, { headers: headersOf(served, {}, "{"), body: "{" }],
    ["nothing", 400, /-32700/, { headers: headersOf(served, {}, ""), body: "" }],
    ["no object", 400, /-32600|-32700/, { headers: headersOf(served, {}, "7"), body: "7" }],
    ["an answer", 400, /no Mcp-Session-Id/, {
      headers: headersOf(served, {}, answer),
      body: answer,
    }],
    ["text/plain", 415, /content type/, {
      headers: headersOf(served, { "Content-Type": "text/plain" }),
    }],
  ];
}

Deno.test("HT7, HT8: bodies that are too large, or not a message, are refused early", async (t) => {
  await using ws = await makeAttackWorkspace({ limits: { input_bytes: 262_144 } });
  // The test measures its memory.
  await using served = await servePml(ws, [], { ownProcess: true });
  for (const [what, status, says, raw] of wrongBodies(served)) {
    await t.step(what, async () => {
      const answer = await send(served, raw);
      assert.equal(answer.status, status, answer.text.slice(0, 500));
      assert.match(answer.text, says);
    });
  }
  await t.step("invalid UTF-8", async () => {
    const { port, host } = new URL(served.url);
    const head = headersOf(served, { Host: host, "Content-Length": "3" });
    const text = `POST /mcp HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n`;
    const answer = await rawHttp(Number(port), [text, new Uint8Array([0x22, 0xff, 0x22])], {
      until: CLOSED,
    });
    assert.equal(answer.status, 400, answer.text);
  });
  await t.step("an endless body", async () => {
    const head = `POST /mcp HTTP/1.1\r\n${headersOf(served, CHUNKED).join("\r\n")}\r\n\r\n`;
    const piece = `186a0\r\n${"x".repeat(100_000)}\r\n`;
    const before = await rssOf(served.pid);
    const { status, closed } = await rawHttp(Number(new URL(served.url).port), [
      head,
      ...Array(2_000).fill(piece),
    ]);
    assert.ok(closed && (status === 413 || status === 0), `${status}`);
    const grown = await rssOf(served.pid) - before;
    assert.ok(grown < 50_000_000, `it grew by ${grown} bytes`);
  });
  await noCalls(ws);
  await t.step("a notification, and a byte order mark", async () => {
    const note = JSON.stringify({
      jsonrpc: "2.0",
      method: "notifications/x",
      params: { _meta: META },
    });
    const headers = { "Mcp-Method": "notifications/x", "Mcp-Name": undefined };
    const taken = await send(served, { headers: headersOf(served, headers, note), body: note });
    assert.equal(taken.status, 202, taken.text);
    const length = { "Content-Length": `${CALL.length + 3}` };
    const marked = { headers: headersOf(served, length), body: `\uFEFF${CALL}` };
    assert.equal((await send(served, marked)).status, 200);
  });
});

Deno.test("HT10, HT13: other methods, paths and broken framing", async (t) => {
  await using ws = await makeAttackWorkspace();
  await using served = await servePml(ws);
  const table: readonly (readonly [string, readonly number[], Raw])[] = [
    ["PUT", [405], { first: "PUT /mcp HTTP/1.1" }],
    ["PATCH", [405], { first: "PATCH /mcp HTTP/1.1" }],
    ["OPTIONS", [405], { first: "OPTIONS /mcp HTTP/1.1" }],
    ["another path", [404], { first: "POST /mcp/x HTTP/1.1" }],
    ["a climbing path", [404], { first: "POST /../mcp HTTP/1.1" }],
    ...["GET", "DELETE"].map((method) =>
      [`${method} in 2026-07-28`, [405], {
        first: `${method} /mcp HTTP/1.1`,
        headers: headersOf(served, { "Content-Length": undefined }),
        body: "",
      }] as const
    ),
    ["length and chunks", [400], {
      headers: headersOf(served, { "Transfer-Encoding": "chunked" }),
      body: "0\r\n\r\nPOST /mcp HTTP/1.1\r\n\r\n",
    }],
    ["two lengths", [400], { headers: headersOf(served, { "Content-Length": ["5", "6"] }) }],
    ["a header of 1 MB", [400, 431], {
      headers: headersOf(served, { "X-Long": "x".repeat(1_000_000) }),
    }],
    ["no HTTP", [400], { first: "nonsense" }],
    ["a folded header", [400], { headers: headersOf(served, { "X-Folded": "a\r\n b" }) }],
    ["a line end without CR", [400], { headers: headersOf(served, { "X-Bare": "a\nX-Other: b" }) }],
  ];
  for (const [what, statuses, raw] of table) {
    await t.step(what, async () => {
      const answer = await send(served, raw);
      const isKnown = statuses.includes(answer.status) || answer.status === 0 && answer.closed;
      assert.ok(isKnown, `${answer.status} ${answer.text.slice(0, 300)}`);
      assert.equal(answer.text.match(/HTTP\/1\.1 /g)?.length ?? 0, answer.status === 0 ? 0 : 1);
    });
  }
  await noCalls(ws);
  await t.step("2026-07-28 ignores a session and an event id", async () => {
    const more = { "Mcp-Session-Id": "x".repeat(36), "Last-Event-ID": "1" };
    assert.equal((await send(served, { headers: headersOf(served, more) })).status, 200);
  });
});

Deno.test("HT12: a client that disconnects cancels its call", async () => {
  await using ws = await makeAttackWorkspace(SLOW);
  await using served = await servePml(ws);
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: {
      name: "call",
      arguments: { tool: "slow:wait", arguments: { path: "never.txt" } },
      _meta: META,
    },
  });
  const gone = new AbortController();
  const called = served.fetch({
    method: "POST",
    body,
    signal: gone.signal,
    headers: {
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": "call",
    },
  });
  called.catch(() => {});
  await until(async () => ofKind(await journalOf(ws), "start").length === 1);
  gone.abort();
  await until(async () => ofKind(await journalOf(ws), "end").length === 1);
  const [end] = ofKind(await journalOf(ws), "end");
  assert.match(JSON.stringify(end), /CANCELLED/);
});

Deno.test("HT16: a signal during 50 calls lets them end, and refuses new ones", async () => {
  await using ws = await makeAttackWorkspace(SLOW);
  // A signal ends it.
  await using served = await servePml(ws, [], { ownProcess: true });
  const clients = await Promise.all(
    Array.from(
      { length: 5 },
      (_, at) => served.connect({ era: at % 2 === 0 ? "2025-11-25" : "2026-07-28" }),
    ),
  );
  const params = { name: "call", arguments: { tool: "slow:wait", arguments: { path: "go.txt" } } };
  const calls = clients.flatMap(({ client }) =>
    Array.from({ length: 10 }, () => client.callTool(params))
  );
  for (const call of calls) call.catch(() => {});
  await until(async () => ofKind(await journalOf(ws), "start").length === 50);
  served.kill("SIGTERM");
  await until(() => served.fetch({}, "/health").then(() => false, () => true));
  await Deno.writeTextFile(ws.file("go.txt"), "went");
  const results = await Promise.all(calls);
  assert.ok(results.every(({ content }) => JSON.stringify(content).includes("went")));
  assert.equal(await within(served.ended, { what: () => "it does not end" }), 0);
});

Deno.test("HT16: calls that outlast the drain time are answered, and PML ends", async () => {
  const mcpServers = { s: scriptServer() };
  await using ws = await makeAttackWorkspace({
    pml: { version: 1, permissions: { allow: ["s:*"] }, mcpServers },
  });
  await using served = await servePml(ws, [], { preload: repoFile("tests/kit/short_drain.ts") });
  const readings: Promise<Reading>[] = [];
  for (const era of ERAS) {
    const client = await DoorClient.open(served, { era });
    // A notification before the response makes it a stream.
    for (const steps of [[], [told(1)]]) {
      const args = { steps: [...steps, { wait: 60_000 }], silent: true };
      const _meta = { progressToken: "p" };
      readings.push(client.begin("tools/call", { name: "s__run", arguments: args, _meta }));
    }
  }
  await until(async () => ofKind(await journalOf(ws), "start").length === readings.length);
  const since = performance.now();
  served.kill("SIGTERM");
  const kinds = new Set<string>();
  for (const read of await Promise.allSettled(readings)) {
    assert.ok(read.status === "fulfilled", "a connection was closed without an answer");
    const { headers, messages, over } = read.value;
    await over;
    const [answer, ...more] = messages.filter(({ method }) => method === undefined);
    const error = answer?.result?.structuredContent?.error;
    assert.equal(error?.code, "UPSTREAM_DOWN", read.value.text);
    assert.deepEqual(error?.detail, { may_have_run: true });
    assert.deepEqual(more, []);
    kinds.add(headers.get("content-type") ?? "");
  }
  assert.deepEqual([...kinds].toSorted(), ["application/json", "text/event-stream"]);
  assert.equal(await within(served.ended, { what: () => "it does not end" }), 0);
  const ms = performance.now() - since;
  assert.ok(ms < 4_000, `it ended after ${ms} ms`);
});
