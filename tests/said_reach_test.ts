/**
 * Servers that cannot be reached in the way that PML tries: the reason in the error, and the next
 * step.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { textOf } from "./attacks/oracles.ts";
import { makeScene } from "./attacks/stage.ts";
import { call } from "./full_scene.ts";
import { runPml } from "./kit/run.ts";

const EVENTS = { headers: { "content-type": "text/event-stream" } };

/** Starts a server with an open stream of events that begins like this; a `POST` to it fails. */
function streaming(begins: string, status: number) {
  const requests: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    requests.push(`${request.method} ${new URL(request.url).pathname}`);
    if (request.method !== "GET") return new Response("<h1>no</h1>", { status });
    const body = new ReadableStream({
      start: (stream) => stream.enqueue(new TextEncoder().encode(begins)),
    });
    return new Response(body, EVENTS);
  });
  return { asked: requests, server, url: `http://127.0.0.1:${server.addr.port}/sse` };
}

Deno.test("the error of an address that accepts no message contains its status", async () => {
  const begins = ": hello\r\n\r\nevent: endpoint\r\ndata: /messages?id=1\r\n\r\n";
  const servers = {
    older: streaming(begins, 404),
    typed: streaming(begins.replaceAll("\r", ""), 405),
    other: streaming("event: message\ndata: {}\n\n".repeat(1_000), 404),
    silent: streaming("", 404),
  };
  const { older, typed, other, silent } = servers;
  await using scene = await makeScene({
    era: "2025-11-25",
    pml: {
      version: 1,
      permissions: { allow: ["older:*", "typed:*", "other:*", "silent:*"] },
      mcpServers: {
        older: { url: older.url },
        typed: { type: "sse", url: typed.url },
        other: { type: "sse", url: other.url },
        silent: { url: silent.url },
      },
    },
  });
  const { ws, pml } = scene;
  const names = Object.keys(servers);
  const told = await Promise.all(names.map((name) => call(pml, `${name}:go`)));
  for (const [at, name] of names.entries()) {
    const status = name === "typed" ? 405 : 404;
    const text = textOf(told[at] ?? {});
    assert.ok(text.startsWith(`UPSTREAM_PROTOCOL: Cannot use "${name}": it answered`), text);
    assert.match(
      text,
      new RegExp(`status ${status}\nCheck `),
    );
  }
  const result = await runPml(ws, ["tools", "older"]);
  assert.match(result.stderr, /the status 404/);
  // If the definition names the type, that type is tried first.
  assert.deepEqual(typed.asked.slice(0, 2), ["GET /sse", "POST /messages"]);
  assert.deepEqual(older.asked.slice(0, 4), [
    "POST /sse",
    "POST /sse",
    "GET /sse",
    "POST /messages",
  ]);
  for (const { server } of Object.values(servers)) await server.shutdown();
});

Deno.test("the error of a slow start names the setting that allows more time", async () => {
  const args = ["eval", "for await (const _ of Deno.stdin.readable);"];
  await using scene = await makeScene({
    era: "2026-07-28",
    limits: { start_ms: 1_000 },
    pml: {
      version: 1,
      permissions: { allow: ["slow:*"] },
      mcpServers: { slow: { command: process.execPath, args } },
    },
  });
  const { ws, pml } = scene;
  const text = textOf(await call(pml, "slow:go"));
  assert.match(text, /^TIMED_OUT: Cannot start "slow": no answer within 1 s/);
  assert.ok(text.includes(`set start_ms under limits in "${ws.home}/config.yaml"`), text);
  assert.ok(text.includes('"start_ms: 4000"'), text);
});
