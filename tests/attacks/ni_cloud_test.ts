import assert from "node:assert/strict";
import { FakeCloud } from "../kit/fake_cloud.ts";
import { assertNoLeak } from "../kit/sinks.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { SocketWatch } from "../kit/socket_watch.ts";
import { until } from "../kit/wait.ts";
import { call, toldCode } from "./evil_servers.ts";
import { assertServes, endWell, textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

const KEY = "account-key-0123456789";
const LOCAL = "local-only-text-0123456789";
// `exa` is in the list of the cloud, and `memory` is a local name.
const ROUTING = { version: 1, cloud: ["newcomer", "exa", "filesystem", "memory"] };
const MODULE = `
  export const __meta__ = { name: "exa", tools: { run: { inputSchema: { type: "object" } } } };
  export const run = ({ text }) => "here: " + text;`;

Deno.test("local servers open no socket and reach no cloud, even if the cloud offers their tools (NI3)", async () => {
  await using hub = new FakeCloud(({ path }) =>
    path === "/mcp/routing" ? Response.json(ROUTING) : undefined
  );
  const servers = ["filesystem", "exa", "tavily", "newcomer", "memory"];
  await using scene = await makeScene({
    // The test watches the sockets of PML alone.
    ownProcess: true,
    pml: {
      version: 1,
      permissions: { allow: servers.map((name) => `${name}:*`) },
      private_mcps: { exa: { type: "deno", path: "exa.js" } },
      cloud: { url: hub.url },
    },
    files: { "exa.js": MODULE },
    env: { PML_API_KEY: KEY },
  });
  const { ws, pml } = scene;
  const local = () => callLocally(pml);
  const quiet = new SocketWatch(pml.pid);
  await local();
  await quiet[Symbol.asyncDispose]();
  assert.deepEqual([...quiet.seen], [], "a local call opened a socket");
  assert.ok(quiet.looks > 2, `it looked ${quiet.looks} times`);
  assert.deepEqual(hub.received, []);
  assert.equal(toldCode(await call(pml, "newcomer:run")), "UNKNOWN_TOOL");
  assert.deepEqual(hub.received, []);

  const loud = new SocketWatch(pml.pid);
  assert.equal(textOf(await call(pml, "tavily:search", { query: "far" })), "tavily__search ran");
  await until(() => hub.received.some(({ path }) => path === "/mcp/routing"));
  await loud[Symbol.asyncDispose]();
  const port = hub.port.toString(16).toUpperCase().padStart(4, "0");
  assert.ok([...loud.seen].some((seen) => seen.endsWith(`:${port}`)), "the watch sees sockets");
  assert.equal(hub.calls[0]?.headers.authorization, `Bearer ${KEY}`);
  const added = async () => textOf(await call(pml, "newcomer:run")) === "newcomer__run ran";
  await until(added);

  // The list of the hub moves no local server to the cloud.
  const before = hub.received.length;
  await local();
  assert.equal(hub.received.length, before);
  assertNoLeak(LOCAL, { cloud: hub.text });

  // PML asks about a call without an allow rule before it sends anything.
  assert.equal(toldCode(await call(pml, "airtable:list", { text: LOCAL })), "APPROVAL_REQUIRED");
  assert.equal(hub.received.length, before);

  await failFar(hub, pml);
  await local();
  await endWell(ws, pml, { secrets: [KEY] });
});

/** Calls local tools through each entry point, with valid and invalid arguments. */
async function callLocally(pml: RawStdio): Promise<void> {
  await assertServes(pml);
  assert.equal(textOf(await call(pml, "exa:run", { text: LOCAL })), `here: ${LOCAL}`);
  await call(pml, "exa:run", { text: { [LOCAL]: 1 } });
  await call(pml, "filesystem:read_file", { path: LOCAL });
  await call(pml, "filesystem:no_such_tool", { path: LOCAL });
  assert.equal(toldCode(await call(pml, "memory:run", { text: LOCAL })), "UNKNOWN_TOOL");
  await pml.callTool("search", { query: LOCAL });
  await pml.callTool("schema", { tools: ["exa:run"] });
}

/** Lets the hub refuse the key, and then stop. */
async function failFar(hub: FakeCloud, pml: RawStdio): Promise<void> {
  hub.script = ({ headers }) => Response.json({ error: headers.authorization }, { status: 401 });
  const rejected = await call(pml, "tavily:search");
  assert.equal(toldCode(rejected), "CLOUD_KEY_REJECTED");
  assert.match(textOf(rejected), /found in the environment/);

  await hub[Symbol.asyncDispose]();
  assert.equal(toldCode(await call(pml, "tavily:search")), "UPSTREAM_DOWN");
  const since = performance.now();
  for (const name of ["tavily", "newcomer"]) {
    const down = await call(pml, `${name}:run`);
    assert.equal(toldCode(down), "UPSTREAM_DOWN");
    assert.match(textOf(down), /out of reach .*\n?.*this machine/);
  }
  assert.ok(performance.now() - since < 8_000, "the second failure is known");
}
