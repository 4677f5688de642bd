/**
 * Calls over a reused connection that are abandoned, or whose connection breaks: the server gets
 * each once, and PML ends at once.
 *
 * @module
 */

import assert from "node:assert/strict";
import { makeScene, type Scene } from "./attacks/stage.ts";
import type { Era } from "./kit/json_rpc.ts";
import { faultyAnswer, type Json, serveHttp } from "./kit/odd_server.ts";
import { waitUntil } from "./kit/wait.ts";

const TOOLS = ["done", "held", "broken"];

/** Starts a server: `done` answers, `held` does not, and `broken` breaks the connection. */
async function listen(isModern: boolean) {
  /** The names of the called tools. */
  const calls: string[] = [];
  const server = await serveHttp((message, response) => {
    const say = (said: unknown) => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(said));
    };
    const { id, method, params } = message;
    if (method === "tools/list") {
      const tools = TOOLS.map((name) => ({ name, inputSchema: { type: "object" } }));
      return say({ jsonrpc: "2.0", id, result: { tools } });
    }
    if (method !== "tools/call") {
      return say(faultyAnswer(message, { fault: "result is {}", isModern }));
    }
    const name = String((params as Json).name);
    calls.push(name);
    if (name === "done") say({ jsonrpc: "2.0", id, result: { content: [] } });
    if (name === "broken") response.destroy();
  });
  return { ...server, calls };
}

async function open(era: Era, url: string): Promise<Scene> {
  const scene = await makeScene({
    era,
    capabilities: {},
    pml: {
      version: 1,
      permissions: { allow: ["far:*"] },
      mcpServers: { far: { type: "http", url } },
    },
  });
  // The next request reuses its connection.
  await done(scene);
  return scene;
}

async function done({ pml }: Scene): Promise<void> {
  const params = { name: "call", arguments: { tool: "far:done", arguments: {} } };
  const { result } = await pml.request("tools/call", params);
  assert.notEqual(result?.isError, true, JSON.stringify(result));
}

function begin({ pml }: Scene, tool: string) {
  const params = { name: "call", arguments: { tool: `far:${tool}`, arguments: {} } };
  return pml.begin("tools/call", params);
}

for (const [kind, era] of [["legacy", "2026-07-28"], ["modern", "2025-11-25"]] as const) {
  const who = `${kind} for ${era}`;

  Deno.test(`a call under way over HTTP does not delay the end of PML, ${who}`, async () => {
    using server = await listen(kind === "modern");
    await using scene = await open(era, server.url);
    begin(scene, "held").answer.catch(() => {}); // no test waits for it
    assert.ok(await waitUntil(() => server.calls.includes("held"), 20_000));
    const { code } = await scene.pml.close();
    assert.equal(code, 0);
    assert.deepEqual(server.calls, ["done", "held"]);
  });

  Deno.test(`a cancelled call over HTTP is sent once, ${who}`, async () => {
    using server = await listen(kind === "modern");
    await using scene = await open(era, server.url);
    const { id, answer } = begin(scene, "held");
    answer.catch(() => {}); // a cancelled call has no answer
    assert.ok(await waitUntil(() => server.calls.includes("held"), 20_000));
    await scene.pml.notify("notifications/cancelled", { requestId: id });
    for (let times = 0; times < 3; times++) await done(scene);
    assert.deepEqual(server.calls, ["done", "held", "done", "done", "done"]);
  });

  Deno.test(`a call whose connection breaks is sent once, ${who}`, async () => {
    using server = await listen(kind === "modern");
    await using scene = await open(era, server.url);
    const { result } = await begin(scene, "broken").answer;
    assert.match(JSON.stringify(result), /UPSTREAM_DOWN/);
    await done(scene);
    assert.deepEqual(server.calls, ["done", "broken", "done"]);
  });
}
