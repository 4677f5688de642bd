/**
 * Servers that cannot be reached the way that PML reaches them: what is told of why, and what to do.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { textOf } from "./attacks/oracles.ts";
import { makeScene } from "./attacks/stage.ts";
import { call } from "./full_scene.ts";
import { ERAS } from "./kit/json_rpc.ts";
import { runPml } from "./kit/run.ts";

const OLDER = /speaks HTTP\+SSE, an older transport of MCP that PML does not speak yet/;
const EVENTS = { headers: { "content-type": "text/event-stream" } };

/** A server whose stream of events begins so, and stays open; it takes no `POST` where it streams. */
function streaming(begins: string, status: number) {
  const asked: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    asked.push(`${request.method} ${request.headers.get("accept")}`);
    if (request.method !== "GET") return new Response("<h1>no</h1>", { status });
    const body = new ReadableStream({
      start: (stream) => stream.enqueue(new TextEncoder().encode(begins)),
    });
    return new Response(body, EVENTS);
  });
  return { asked, server, url: `http://127.0.0.1:${server.addr.port}/sse` };
}

for (const era of ERAS) {
  Deno.test(`An address of HTTP+SSE is told to be one, with its type and without, on ${era}`, async () => {
    const begins = ": hello\r\n\r\nevent: endpoint\r\ndata: /messages?id=1\r\n\r\n";
    const older = streaming(begins, 404);
    const typed = streaming(begins.replaceAll("\r", ""), 405);
    const other = streaming("event: message\ndata: {}\n\n".repeat(1_000), 404);
    const silent = streaming("", 404);
    await using scene = await makeScene({
      era,
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
    for (const name of ["older", "typed"]) {
      const text = textOf(await call(pml, `${name}:go`));
      assert.match(text, new RegExp(`^UPSTREAM_PROTOCOL: Cannot use "${name}": it `));
      assert.match(text, OLDER);
      assert.match(text, /Streamable HTTP.*\/mcp/);
    }
    const told = await runPml(ws, ["tools", "older"]);
    assert.match(told.stderr, OLDER);
    // The usual way is tried first, and a stream that is another's is given up.
    for (const name of ["other", "silent"]) {
      assert.match(textOf(await call(pml, `${name}:go`)), /the status 404/);
    }
    for (const { asked } of [older, typed, other, silent]) {
      assert.ok(asked.indexOf("GET text/event-stream") > 0, asked.join());
    }
    for (const { server } of [older, typed, other, silent]) await server.shutdown();
  });
}

for (const era of ERAS) {
  Deno.test(`A start that takes too long says where to give it longer, on ${era}`, async () => {
    const args = ["eval", "for await (const _ of Deno.stdin.readable);"];
    await using scene = await makeScene({
      era,
      limits: { start_ms: 1_000 },
      pml: {
        version: 1,
        permissions: { allow: ["slow:*"] },
        mcpServers: { slow: { command: process.execPath, args } },
      },
    });
    const { ws, pml } = scene;
    const text = textOf(await call(pml, "slow:go"));
    assert.match(text, /^TIMED_OUT: Cannot start "slow": no answer in 1000 ms/);
    assert.ok(text.includes(`set start_ms under limits in "${ws.home}/config.yaml"`), text);
    assert.ok(text.includes('"start_ms: 4000"'), text);
  });
}
