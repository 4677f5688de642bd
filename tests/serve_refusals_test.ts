/**
 * The journal of `pml serve` records refused requests, and a flood of them does not fill it.
 *
 * @module
 */

import assert from "node:assert/strict";
import { journalOf } from "./attacks/oracles.ts";
import { objectOf } from "../src/core/json.ts";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { servePml, type TestServer } from "./kit/pml_serve.ts";
import { rawHttp } from "./kit/raw_http.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";

interface Refusal {
  readonly status?: number;
  readonly why?: string;
  readonly more?: number;
}

/** Returns the journal's records of refused requests. */
async function refusals(ws: Workspace): Promise<readonly Refusal[]> {
  return (await journalOf(ws)).filter(({ event }) => event === "request refused")
    .map(({ about }) => objectOf(about));
}

async function statusOf(served: TestServer, init: RequestInit, path?: string): Promise<number> {
  const response = await served.fetch({ method: "POST", body: "{}", ...init }, path);
  await response.body?.cancel();
  return response.status;
}

Deno.test("each refused request is in the journal with its reason, and without its token", async () => {
  await using ws = await makeAttackWorkspace({ limits: { input_bytes: 65_536 } });
  await using served = await servePml(ws);
  const port = Number(new URL(served.url).port);
  const secret = "a-wrong-token-of-somebody";
  const lost = { headers: { "mcp-session-id": "none" }, body: `{"jsonrpc":"2.0","method":"x"}` };
  const statuses = [
    await statusOf(served, { headers: { authorization: `Bearer ${secret}` } }),
    await statusOf(served, { headers: { origin: "https://evil.example" } }),
    await statusOf(served, {}, "/elsewhere"),
    await statusOf(served, { method: "PUT" }),
    await statusOf(served, { headers: { "content-type": "text/plain" } }),
    await statusOf(served, { body: " ".repeat(70_000) }),
    await statusOf(served, lost),
    await statusOf(served, { body: "no JSON" }),
    (await rawHttp(port, ["nonsense\r\n\r\n"])).status,
    (await rawHttp(port, [`GET /mcp HTTP/1.1\r\nX: ${"x".repeat(20_000)}\r\n\r\n`])).status,
  ];
  assert.deepEqual(statuses, [401, 403, 404, 405, 415, 413, 404, 400, 400, 431]);
  await until(async () => (await refusals(ws)).length === statuses.length);
  const told = await refusals(ws);
  assert.deepEqual(told.map(({ status }) => status), statuses);
  for (const { why = "" } of told) assert.match(why, /^\w[\w /,.-]{10,}$/);
  const text = JSON.stringify(await journalOf(ws)) + served.stderr;
  for (const token of [secret, served.token]) assert.ok(!text.includes(token));
});

Deno.test("the journal counts a flood of refused requests", async () => {
  await using ws = await makeAttackWorkspace();
  // A signal ends it.
  const served = await servePml(ws, [], { ownProcess: true });
  const wrong = { headers: { authorization: "Bearer wrong" } };
  for (let at = 0; at < 10; at++) {
    const all = await Promise.all(Array.from({ length: 20 }, () => statusOf(served, wrong)));
    assert.ok(all.every((status) => status === 401));
  }
  served.kill("SIGTERM");
  assert.equal(await served.ended, 0);
  const told = await refusals(ws);
  const one = told.filter(({ status }) => status === 401).length;
  assert.ok(one < 100, `${one} lines`);
  assert.equal(one + told.reduce((sum, { more = 0 }) => sum + more, 0), 200);
});
