/**
 * The data of a user's work that reaches a hub, recorded on the wire between a spawned PML and a
 * spawned hub: nothing of a call that runs here.
 *
 * @module
 */

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { answerOf, picked, questionOf, read } from "./attacks/questions.ts";
import { call } from "./attacks/evil_servers.ts";
import { textOf } from "./attacks/oracles.ts";
import { moduleOffer, put, sendRequest, spawnHub } from "./kit/hub.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const GREET = {
  name: "call",
  arguments: { tool: "hello:greet", arguments: { who: "argument-canary-4711" } },
};

/** Starts a relay to a port that is set later, which records all that is sent to it. */
async function wire() {
  const kept = { text: "", connections: 0, port: 0 };
  const sockets = new Set<{ destroy(): unknown }>();
  const server = createServer((client) => {
    kept.connections++;
    const upstream = connect(kept.port, "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {}); // the other side has disconnected
      socket.on("close", () => [client, upstream].forEach((each) => each.destroy()));
    }
    client.on("data", (data) => kept.text += data.toString("latin1"));
    client.pipe(upstream);
    upstream.pipe(client);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    kept,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    [Symbol.asyncDispose]: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}

Deno.test("nothing of a call that runs here reaches the hub, and a yanked version still runs", async () => {
  await using hub = await spawnHub();
  await using between = await wire();
  const { kept } = between;
  // A hub answers requests for the address that clients use.
  await using named = await hub.again("--url", between.url);
  kept.port = named.port;
  const { key } = await hub.key("acme");
  assert.equal((await put(hub.url, key, moduleOffer("hello", "1.0.0"))).status, 201);
  await using ws = await makeWorkspace({
    files: { "secret.txt": "file-canary-4712" },
    env: { PML_REGISTRIES: between.url, OTHER_SECRET: "environment-canary-4713" },
    pml: { version: 1, permissions: { allow: ["*"] } },
  });
  await using pml = new RawStdio(ws, {
    era: "2026-07-28",
    answer: undefined,
    capabilities: { elicitation: {} },
  });
  await pml.open();
  assert.match(textOf(await pml.callTool("search", { query: "greets" })), /hello:greet/);
  const question = await questionOf(pml, GREET);
  await read();
  assert.equal(textOf(await question.answer(picked("Yes"))), "hello argument-canary-4711");
  // Finding and approving it sent its name, and nothing of the call.
  assert.ok(kept.connections > 0 && kept.text.includes("/mcp/hello"));
  assert.ok(!kept.text.includes("canary"), kept.text);
  const before = kept.text.length;
  for (let at = 0; at < 5; at++) {
    assert.equal(textOf(await answerOf(pml, GREET)), "hello argument-canary-4711");
    const file = await call(pml, "filesystem:read_file", { path: "secret.txt" });
    assert.match(textOf(file), /file-canary-4712/);
  }
  assert.equal(kept.text.length, before, kept.text.slice(before));
  const yank = { method: "POST", key, body: { reason: "old" } };
  assert.equal((await sendRequest(`${hub.url}/hello@1.0.0/yank`, yank)).status, 200);
  assert.equal(textOf(await answerOf(pml, GREET)), "hello argument-canary-4711");
  assert.equal((await pml.close()).code, 0);
  // Without an approval, a workspace no longer finds it.
  await using other = await makeWorkspace({
    env: { PML_REGISTRIES: between.url },
    pml: { version: 1, permissions: { allow: ["*"] } },
  });
  const result = await runPml(other, ["search", "greets"]);
  assert.ok(!result.stdout.includes("hello:greet"), result.stdout);
  assert.ok(!kept.text.includes("canary"));
});
