/**
 * Servers that hang, behind a spawned PML: which calls wait for them, and how often PML connects.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Scripted } from "../src/servers/http/_stage_test.ts";
import { call, toldCode } from "./attacks/evil_servers.ts";
import { endWell } from "./attacks/oracles.ts";
import { makeScene } from "./attacks/stage.ts";
import { TcpSink } from "./kit/sinks.ts";
import { freePort } from "./kit/free_port.ts";
import { until } from "./kit/wait.ts";

const START_MS = 6_000;

Deno.test("calls wait once for a hung server over HTTP, share one attempt, and find it again later", async () => {
  const port = freePort();
  const hole = new TcpSink({ port });
  await using scene = await makeScene({
    limits: { start_ms: START_MS },
    pml: {
      version: 1,
      permissions: { allow: ["docs:*", "filesystem:*"] },
      mcpServers: { docs: { type: "http", url: `http://127.0.0.1:${port}/mcp` } },
    },
  });
  const { ws, pml } = scene;
  assert.equal(toldCode(await call(pml, "docs:t")), "TIMED_OUT");
  const { length } = hole.received;
  const since = performance.now();
  const all = await Promise.all(Array.from({ length: 10 }, () => call(pml, "docs:t")));
  const took = performance.now() - since;
  assert.deepEqual(new Set(all.map(toldCode)), new Set(["TIMED_OUT"]));
  assert.ok(took < START_MS / 2, `they waited ${took} ms`);
  // An immediate error means that no call waited for the attempt, which continues.
  await until(() => hole.received.length > length);
  assert.equal(hole.received.length, length + 1, "one look was made for all");
  await hole[Symbol.asyncDispose]();
  await using _back = new Scripted(undefined, { port });
  await until(async () => toldCode(await call(pml, "docs:t")) === undefined);
  await endWell(ws, pml);
});

Deno.test("a server over HTTP that moved is contacted at its new address while the old one hangs", async () => {
  await using there = new Scripted();
  const port = freePort();
  const write = (home: string, url: string) =>
    writeFile(
      join(home, "config.yaml"),
      `limits:\n  start_ms: 60000\nmcpServers:\n  docs:\n    type: http\n    url: ${url}\n`,
    );
  await using scene = await makeScene({
    pml: { version: 1, permissions: { allow: ["docs:*", "filesystem:*"] } },
    prepare: ({ home }) => write(home, `http://127.0.0.1:${port}/mcp`),
  });
  const { ws, pml } = scene;
  assert.equal(toldCode(await call(pml, "docs:t")), "UPSTREAM_DOWN");
  // The port accepts connections and answers none, so that the attempt continues.
  const hole = Deno.listen({ hostname: "127.0.0.1", port });
  try {
    assert.equal(toldCode(await call(pml, "docs:t")), "UPSTREAM_DOWN");
    await write(ws.home, there.url);
    await until(async () => toldCode(await call(pml, "docs:t")) === undefined);
  } finally {
    hole.close();
  }
  await endWell(ws, pml);
});
