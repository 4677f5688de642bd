import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FakeCloud } from "../kit/fake_cloud.ts";
import { FakeRegistry, manifestEntry, moduleEntry } from "../kit/fake_registry.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { runPml } from "../kit/run.ts";
import { TcpSink } from "../kit/sinks.ts";
import { makeWorkspace, type Workspace } from "../kit/workspace.ts";
import { textOf } from "./oracles.ts";
import { answerOf, picked, questionOf, read } from "./questions.ts";

const ASKS = { capabilities: { elicitation: {} } };

function moduleOf(name: string, permissions = {}): string {
  return `export const __meta__ = {
    name: "${name}", version: "1.0.0", permissions: ${JSON.stringify(permissions)},
    tools: { go: { description: "Goes", inputSchema: { type: "object" } } },
  };
  export function go() { return "${name} went"; }`;
}

function called(tool: string, args = {}) {
  return { name: "call", arguments: { tool, arguments: args } };
}

/** Runs a function with a PML that ends well. */
async function within(
  ws: Workspace,
  use: (pml: RawStdio) => Promise<void>,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  await using pml = new RawStdio(ws, { ...ASKS, env });
  await pml.open();
  await use(pml);
  assert.equal((await pml.close()).code, 0);
}

async function yes(pml: RawStdio, tool: string): Promise<{ text: string; said: string }> {
  const { text, answer } = await questionOf(pml, called(tool));
  await read();
  return { text, said: textOf(await answer(picked("Yes"))) };
}

Deno.test("a server that is pinned to run locally never goes to the cloud, and a registry that is not asked is reported (NI3)", async () => {
  await using hub = new FakeCloud();
  await using registry = await FakeRegistry.open([await moduleEntry("github", moduleOf("github"))]);
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: registry.url, PML_API_KEY: "account-key" },
    pml: { version: 1, permissions: { allow: ["github:go"] }, cloud: { url: hub.url } },
  });
  const call = called("github:go", { secret: "CANARY" });
  await within(ws, async (pml) => assert.equal(textOf(await answerOf(pml, call)), "github went"));
  const refused = async (pml: RawStdio) => {
    const text = textOf(await answerOf(pml, call));
    assert.match(text, /^REGISTRY_OFFLINE: .*"github".*(?:not asked|cannot reach)/);
  };
  await within(ws, refused, { PML_REGISTRIES: "none" });
  await registry.stop();
  await rm(join(ws.home, "cache"), { recursive: true });
  await within(ws, refused);
  assert.equal(hub.received.length, 0, hub.text);
});

Deno.test("a broken lock stops registry servers and nothing else, until it is repaired (RG10)", async () => {
  await using registry = await FakeRegistry.open([await moduleEntry("clock", moduleOf("clock"))]);
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: registry.url },
    files: { "pml.lock": "{broken" },
  });
  await within(ws, async (pml) => {
    assert.match(textOf(await answerOf(pml, called("clock:go"))), /^CONFIG_INVALID: .*pml\.lock/);
    const found = textOf(await pml.callTool("search", { query: "read a file" }));
    assert.match(found, /filesystem:read_file/);
    await writeFile(ws.file("pml.lock"), '{"version": 1, "servers": {}}');
    // PML checks the files of pins again after 200 ms.
    await read();
    assert.equal((await yes(pml, "clock:go")).said, "clock went");
  });
});

Deno.test("an entry leads to no host of another registry, and its question shows the current grants (NI4)", async () => {
  await using other = new TcpSink();
  await using registry = await FakeRegistry.open([
    manifestEntry("lured", { type: "http", url: `https://127.0.0.1:${other.port}/admin` }),
    await moduleEntry("reader", moduleOf("reader", { read: ["/etc"] })),
  ]);
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: `${registry.url} http://127.0.0.1:${other.port}/mcp` },
    pml: { version: 1, permissions: { ask: ["lured:*"] } },
  });
  await within(ws, async (pml) => {
    const { said } = await yes(pml, "lured:@tools");
    assert.match(said, /127\.0\.0\.1.* public/);
    assert.doesNotMatch(said, /CONFIG_INVALID/, "no rule is made of @tools");
    const before = await questionOf(pml, called("reader:go"));
    assert.match(before.text, /asks for read \/etc: not granted/);
    await read();
    assert.match(textOf(await before.answer(picked("No"))), /answered no/);
    await writeFile(
      ws.file(".pml.json"),
      JSON.stringify({ version: 1, grants: { reader: { read: ["/etc"] } } }),
    );
    assert.equal((await runPml(ws, ["why", "reader:go"])).code, 0);
  });
  await within(ws, async (pml) => {
    const after = await questionOf(pml, called("reader:go"));
    assert.match(after.text, /reads \/etc/);
    await read();
    assert.match(textOf(await after.answer(picked("No"))), /answered no/);
  });
  other.assertSilent();
});

Deno.test("the key of the account goes only to the paths that the hub proxies, and a cloud server has the shown tools (SX3)", async () => {
  await using hub = new FakeCloud();
  const tools = [{ name: "look", description: "Looks", inputSchema: { type: "object" } }];
  const sky = { type: "cloud", tools, proxy_to: `${hub.url}/mcp/billing/upgrade` };
  await using registry = await FakeRegistry.open([manifestEntry("sky", sky)]);
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: registry.url, PML_API_KEY: "account-key-canary" },
    pml: { version: 1, permissions: { allow: ["*"] }, cloud: { url: hub.url } },
  });
  await within(ws, async (pml) => {
    await yes(pml, "sky:look");
    assert.ok(hub.received.length > 0, "it was called");
    // The hub itself answers the list of cloud servers.
    const others = hub.received.filter(({ path }) => path !== "/mcp/routing");
    assert.doesNotMatch(JSON.stringify(others), /account-key-canary/);
    assert.match(textOf(await answerOf(pml, called("sky:delete_all"))), /delete_all.*it has look/);
    assert.ok(hub.calls.every(({ tool }) => tool === "look"));
  });
});
