import assert from "node:assert/strict";
import type { HubRequest } from "../http/exchange.ts";
import { openProxy } from "./proxy.ts";

/** The streams that one organisation may have open at once, by the hub's documentation. */
const STREAMS = 256;

Deno.test("openProxy() counts a request until its answer was read", async () => {
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    (request) => {
      const type = request.method === "GET" ? "text/event-stream" : "application/json";
      // The answer never ends by itself.
      return new Response(new ReadableStream({ start: (to) => to.enqueue(new Uint8Array([32])) }), {
        headers: { "content-type": type },
      });
    },
  );
  using proxy = openProxy({
    store: storeOf(`http://127.0.0.1:${server.addr.port}/mcp`),
    privateHosts: new Set([`127.0.0.1:${server.addr.port}`]),
  });
  const open: Response[] = [];
  const pass = async (method: string) => {
    const answer = await proxy.pass(requestOf(method));
    if (answer.status === 200) open.push(answer as Response);
    return answer.status;
  };
  for (let index = 0; index < STREAMS; index++) assert.equal(await pass("GET"), 200);
  assert.equal(await pass("GET"), 503);
  await open.pop()?.body?.cancel();
  assert.equal(await pass("GET"), 200);
  for (let index = 0; index < 32; index++) assert.equal(await pass("POST"), 200);
  assert.equal(await pass("POST"), 503);
  await open.pop()?.body?.cancel();
  assert.equal(await pass("POST"), 200);
  await Promise.all(open.map(({ body }) => body?.cancel()));
});

Deno.test("openProxy() passes on the answer of a request that ran while all streams are in use", async () => {
  let calls = 0;
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    (request) => {
      if (request.method === "POST") calls++;
      return new Response(new ReadableStream({ start: (to) => to.enqueue(new Uint8Array([32])) }), {
        headers: { "content-type": "text/event-stream" },
      });
    },
  );
  using proxy = openProxy({
    store: storeOf(`http://127.0.0.1:${server.addr.port}/mcp`),
    privateHosts: new Set([`127.0.0.1:${server.addr.port}`]),
  });
  const open: Response[] = [];
  const pass = async (method: string) => {
    const answer = await proxy.pass(requestOf(method));
    if (answer.status === 200) open.push(answer as Response);
    return answer.status;
  };
  for (let index = 0; index < STREAMS; index++) assert.equal(await pass("GET"), 200);
  for (let index = 0; index < 32; index++) assert.equal(await pass("POST"), 200);
  assert.equal(await pass("POST"), 503);
  assert.equal(calls, 32, "no refused request reached the server");
  await Promise.all(open.map(({ body }) => body?.cancel()));
  assert.equal(await pass("POST"), 200);
  await Promise.all(open.map(({ body }) => body?.cancel().catch(() => {})));
});

function storeOf(url: string) {
  const manifest = {
    ...{ fqdn: "slow", type: "cloud", version: "1.0.0", description: "Never ends" },
    ...{ url, tools: [], env_required: [], warnings: [], routing: "cloud" },
  };
  const entry = { name: "slow", version: "1.0.0", owner: "acme", manifest };
  const store = {
    entry: () => Promise.resolve(entry),
    dates: () => Promise.resolve(new Map([["1.0.0", "2026-11-01"]])),
    stamp: () => Promise.resolve("1"),
  };
  return store as never;
}

function requestOf(method: string): HubRequest {
  return {
    method,
    target: "/mcp/proxy/slow",
    headers: { "content-type": "application/json" },
    body: () => Promise.resolve(new TextEncoder().encode("{}")),
    signal: new AbortController().signal,
  } as unknown as HubRequest;
}
