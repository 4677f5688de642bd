/**
 * `Accept` headers and web pages: answers have an accepted type, and a page of an origin that the
 * user named can use PML in a real browser.
 *
 * @module
 */

import assert from "node:assert/strict";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { openChromium } from "./kit/chromium.ts";
import { servePml } from "./kit/pml_serve.ts";

const ORIGIN = "http://localhost:6274";
const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "page", version: "1" },
  },
};
const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "page", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};
const MODERN = {
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": "tools/call",
  "mcp-name": "call",
};
const CALL = {
  jsonrpc: "2.0",
  id: 2,
  method: "tools/call",
  params: {
    name: "call",
    arguments: { tool: "filesystem:read_file", arguments: { path: "a.txt" } },
    _meta: { ...META, progressToken: 7 },
  },
};

/** `Accept` headers, the status, and the type of the answer to `initialize`. */
const ACCEPTS: readonly (readonly [string, number, RegExp])[] = [
  ["*/*", 200, /json|event-stream/],
  ["application/*", 200, /^application\/json/],
  ["text/*;q=0.5", 200, /^text\/event-stream/],
  ["APPLICATION/JSON, Text/Event-Stream", 200, /json|event-stream/],
  ["application/json;charset=utf-8", 200, /^application\/json/],
  ["text/event-stream", 200, /^text\/event-stream/],
  ["application/json, text/event-stream;q=0", 200, /^application\/json/],
  ["application/json;q=0, */*", 200, /^text\/event-stream/],
  ["text/html", 406, /json/],
  ["application/json;q=0, text/event-stream;q=0", 406, /json/],
  ["*/*;q=0", 406, /json/],
];

Deno.test("answers have a type that the client accepts, in both revisions", async () => {
  await using ws = await makeAttackWorkspace({ files: { "a.txt": "hello" } });
  await using served = await servePml(ws);
  for (const [accept, status, type] of ACCEPTS) {
    const posts = [
      { body: JSON.stringify(INITIALIZE), headers: { accept } },
      { body: JSON.stringify(CALL), headers: { accept, ...MODERN } },
    ];
    for (const { body, headers } of posts) {
      const response = await served.fetch({ method: "POST", body, headers });
      const text = await response.text();
      assert.equal(response.status, status, `${accept}: ${text}`);
      assert.match(response.headers.get("content-type") ?? "", type, accept);
      if (status !== 200) continue;
      assert.notEqual(text, "", `${accept} ${body}`);
      const message = JSON.parse(/^data: (.+)$/m.exec(text)?.[1] ?? text);
      assert.ok(message.result !== undefined, text);
    }
  }
  const stream = await served.fetch({ headers: { accept: "application/json" } });
  assert.equal(stream.status, 406, await stream.text());
});

Deno.test("a missing Accept header means that everything is accepted", async () => {
  await using ws = await makeAttackWorkspace();
  await using served = await servePml(ws);
  const { hostname, port } = new URL(served.url);
  const body = JSON.stringify(INITIALIZE);
  const connection = await Deno.connect({ hostname, port: Number(port) });
  const head = [
    "POST /mcp HTTP/1.1",
    `host: ${hostname}:${port}`,
    `authorization: Bearer ${served.token}`,
    "content-type: application/json",
    `content-length: ${body.length}`,
    "connection: close",
  ];
  await connection.write(new TextEncoder().encode(`${head.join("\r\n")}\r\n\r\n${body}`));
  let answer = "";
  for await (const part of connection.readable.pipeThrough(new TextDecoderStream())) {
    answer += part;
    if (answer.includes("protocolVersion")) break;
  }
  assert.match(answer, /^HTTP\/1.1 200 /);
  assert.match(answer, /"protocolVersion":"2025-11-25"/);
});

Deno.test("only origins that the user named get CORS headers", async () => {
  await using ws = await makeAttackWorkspace();
  await using served = await servePml(ws, ["--allow-origin", ORIGIN]);
  const ask = async (init: RequestInit) => {
    const response = await served.fetch(init);
    await response.body?.cancel();
    return response;
  };
  const wanted = "authorization,mcp-param-city,mcp-param-,x-other";
  const preflight = (origin: string, more: Record<string, string> = {}) =>
    ask({
      method: "OPTIONS",
      headers: {
        origin,
        authorization: "",
        "access-control-request-method": "POST",
        "access-control-request-headers": wanted,
        ...more,
      },
    });
  const allowed = await preflight(ORIGIN, { "access-control-request-private-network": "true" });
  assert.equal(allowed.status, 204);
  assert.equal(allowed.headers.get("access-control-allow-origin"), ORIGIN);
  assert.equal(allowed.headers.get("access-control-allow-private-network"), "true");
  const listed = allowed.headers.get("access-control-allow-headers")?.split(", ") ?? [];
  assert.ok(listed.includes("authorization") && listed.includes("mcp-param-city"), `${listed}`);
  assert.ok(!listed.includes("x-other") && !listed.includes("mcp-param-"), `${listed}`);
  // Pages of this machine may send requests, but read answers only where the user named them.
  const local = await preflight("http://localhost:1");
  assert.deepEqual([local.status, local.headers.get("access-control-allow-origin")], [405, null]);
  assert.equal((await preflight("https://evil.example")).status, 403);
  const unsigned = await ask({
    method: "POST",
    body: JSON.stringify(INITIALIZE),
    headers: { origin: ORIGIN, authorization: "" },
  });
  assert.equal(unsigned.status, 401);
  assert.equal(unsigned.headers.get("access-control-allow-origin"), ORIGIN);
  assert.match(unsigned.headers.get("access-control-expose-headers") ?? "", /www-authenticate/);
  assert.match(unsigned.headers.get("vary") ?? "", /origin/i);
  const plain = await ask({ method: "POST", body: JSON.stringify(INITIALIZE) });
  assert.equal(plain.headers.get("access-control-allow-origin"), null);
  assert.match(plain.headers.get("vary") ?? "", /origin/i);
});

/** The program of the page: a session of 2025-11-25, with the headers that its answers expose. */
const PAGE = `async (url, token, initialize) => {
  const headers = {
    authorization: "Bearer " + token,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const opened = await fetch(url, { method: "POST", headers, body: JSON.stringify(initialize) });
  await opened.text();
  const session = {
    ...headers,
    "mcp-session-id": opened.headers.get("mcp-session-id"),
    "mcp-protocol-version": "2025-11-25",
  };
  const list = { jsonrpc: "2.0", id: 2, method: "tools/list" };
  const listed = await fetch(url, { method: "POST", headers: session, body: JSON.stringify(list) });
  return [opened.status, listed.status, await listed.text()];
}`;

Deno.test("a page of a named origin lists tools in a browser, and a page of another one cannot", async () => {
  const blank = () =>
    new Response("<title>page</title>", { headers: { "content-type": "text/html" } });
  const quiet = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  await using named = Deno.serve(quiet, blank);
  await using other = Deno.serve(quiet, blank);
  const [origin, foreign] = [named, other].map(({ addr }) => `http://127.0.0.1:${addr.port}`);
  await using ws = await makeAttackWorkspace();
  await using served = await servePml(ws, ["--allow-origin", origin ?? ""]);
  await using browser = await openChromium();
  const ask = async (from: string) => {
    const page = await browser.page(from);
    await page.go("/");
    const args = [served.url, served.token, INITIALIZE].map((one) => JSON.stringify(one));
    const { result, exceptionDetails } = await page.send("Runtime.evaluate", {
      expression: `(${PAGE})(${args})`,
      awaitPromise: true,
      returnByValue: true,
    });
    return exceptionDetails?.exception.description ?? result.value;
  };
  const [opened, listed, text] = await ask(origin ?? "");
  assert.deepEqual([opened, listed], [200, 200]);
  assert.match(text, /"name":"search"/);
  assert.match(await ask(foreign ?? ""), /Failed to fetch/);
});
