import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FakeCloud } from "../kit/fake_cloud.ts";
import { FakeRegistry, moduleEntry } from "../kit/fake_registry.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { runPml, runPmlOnTerminal } from "../kit/run.ts";
import { until } from "../kit/wait.ts";
import { makeWorkspace } from "../kit/workspace.ts";
import { textOf } from "./oracles.ts";
import { answerOf, picked, questionOf, read } from "./questions.ts";

const ASKS = { capabilities: { elicitation: {} } };
/** A name as a model invents it, with private information in it. */
const MADE_UP = "aws-key-akiaiosfodnn7example.leak";
const SECRET = /akia/i;

function entry(name: string) {
  return moduleEntry(
    name,
    `export const __meta__ = {
      name: "${name}", version: "1.0.0",
      tools: { go: { description: "Goes away", inputSchema: { type: "object" } } },
    };
    export function go() { return "${name} went"; }`,
  );
}

function called(tool: string) {
  return { name: "call", arguments: { tool, arguments: {} } };
}

Deno.test("a name that no registry offers is sent to none before a question that shows it (GW19)", async () => {
  await using hub = new FakeCloud();
  await using registry = await FakeRegistry.open([await entry("listed")]);
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: registry.url, PML_API_KEY: "account-key-canary" },
    pml: { version: 1, permissions: { ask: ["*"] }, cloud: { url: hub.url } },
  });
  await using pml = new RawStdio(ws, { era: "2026-07-28", ...ASKS });
  await pml.open();
  const named = () => registry.paths.filter((path) => SECRET.test(path));
  for (const call of [called(`${MADE_UP}:x`), called(`${MADE_UP}:@tools`)]) {
    const { text, answer } = await questionOf(pml, call);
    assert.ok(text.includes(`names a server "${MADE_UP}"`), text);
    assert.ok(text.includes(`registry "${registry.url}"`), text);
    await read();
    assert.match(textOf(await answer(picked("No"))), /answered no/);
    assert.deepEqual(named(), []);
  }
  const direct = await questionOf(pml, { name: `${MADE_UP}__x`, arguments: {} });
  assert.deepEqual(named(), []);
  await read();
  const response = await direct.answer(picked("Yes"));
  assert.match(JSON.stringify(response), /Cannot find the tool/);
  assert.equal(named().length, 1, "what the person let be told is told");
  // A name in a catalog is looked up at once: the only question is about the server itself.
  const listed = await questionOf(pml, called("listed:go"));
  assert.match(listed.text, /Yes lets PML use "listed"/);
  assert.equal(hub.received.length, 0, hub.text);
  assert.equal((await pml.close()).code, 0);
});

Deno.test("no other request sends a registry a name that none offers (GW19)", async () => {
  await using registry = await FakeRegistry.open([await entry("listed")]);
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: registry.url },
    pml: { version: 1, permissions: { allow: ["*"], deny: ["akia-denied:*"] } },
  });
  await using pml = new RawStdio(ws, { era: "2025-11-25" });
  await pml.open();
  assert.match(textOf(await answerOf(pml, called("akia-denied:x"))), /^PERMISSION_DENIED: /);
  assert.deepEqual(registry.paths, [], "a denied call asked a registry");
  // This client cannot ask the user.
  const alone = textOf(await answerOf(pml, called(`${MADE_UP}:x`)));
  assert.match(alone, /^APPROVAL_REQUIRED: /);
  const calls = [{ tool: `${MADE_UP}:x` }, { tool: `${MADE_UP}.b:x` }];
  // One question covers both.
  const batch = textOf(await pml.callTool("batch", { calls }));
  assert.match(batch, /^APPROVAL_REQUIRED: .*:x, .*\.b:x/);
  await pml.callTool("schema", { tools: [`${MADE_UP}:x`] });
  await pml.callTool("search", { query: MADE_UP, server: MADE_UP });
  await pml.request("prompts/get", { name: `${MADE_UP}__x` });
  await pml.request("resources/read", { uri: `pml://${MADE_UP}/file:///x` });
  const ref = { type: "ref/prompt", name: `${MADE_UP}__x` };
  await pml.request("completion/complete", { ref, argument: { name: "a", value: "b" } });
  assert.equal((await pml.close()).code, 0);
  for (const words of [["tools", MADE_UP], ["why", `${MADE_UP}:x`]]) await runPml(ws, words);
  const script = await runPml(ws, ["call", `${MADE_UP}:x`, "--json"]);
  assert.match(script.stdout + script.stderr, /APPROVAL_REQUIRED/);
  assert.deepEqual(registry.paths.filter((path) => SECRET.test(path)), []);
  const waiting = await runPml(ws, ["approve", "--json"]);
  assert.ok(waiting.stdout.includes(`names a server \\"${MADE_UP}\\"`), waiting.stdout);
});

Deno.test("approving a server name does not approve the server found under it (GW19)", async () => {
  await using registry = await FakeRegistry.open([await entry("unlisted")]);
  // This registry has no catalog.
  registry.fault("/mcp", { status: 404 });
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: registry.url },
    pml: { version: 1, permissions: { allow: ["*"] } },
  });
  await using pml = new RawStdio(ws, ASKS);
  await pml.open();
  const first = await questionOf(pml, called("unlisted:go"));
  assert.match(first.text, /names a server "unlisted"/);
  assert.doesNotMatch(first.text, /sha256/);
  await read();
  const before = pml.messages.length;
  const over = first.answer(picked("Yes"));
  const second = () =>
    pml.messages.slice(before).find(({ method }) => method === "elicitation/create");
  await until(() => second() !== undefined);
  assert.match(JSON.stringify(second()), /Yes lets PML use \\"unlisted\\"/);
  await read();
  await pml.sendJson({ jsonrpc: "2.0", id: second()?.id, result: picked("Yes") });
  assert.equal(textOf(await over), "unlisted went");
  assert.equal((await pml.close()).code, 0);
});

Deno.test("names that the user wrote are looked up unasked: in a rule or at a terminal (GW19)", async () => {
  await using registry = await FakeRegistry.open([await entry("ruled"), await entry("typed")]);
  registry.fault("/mcp", { status: 404 });
  const env = { PML_REGISTRIES: registry.url };
  await using ws = await makeWorkspace({
    env,
    trusted: false,
    // The file of a clone does not speak for the user.
    pml: { version: 1, permissions: { ask: ["cloned:*"], allow: ["cloned:x"] } },
  });
  await writeFile(join(ws.home, "config.yaml"), 'permissions:\n  ask: ["ruled:*"]\n');
  await using pml = new RawStdio(ws, ASKS);
  await pml.open();
  const ruled = await questionOf(pml, called("ruled:go"));
  assert.match(ruled.text, /Yes lets PML use "ruled"/);
  const cloned = await questionOf(pml, called("cloned:x"));
  assert.match(cloned.text, /names a server "cloned"/);
  assert.ok(!registry.paths.some((path) => path.includes("cloned")));
  assert.equal((await pml.close()).code, 0);
  const typed = [[/Yes lets PML use "typed"[^]*\[N\] no/, "no"]] as const;
  const result = await runPmlOnTerminal(ws, ["call", "typed:go"], { typed });
  assert.doesNotMatch(result.stdout, /names a server/);
});

const OFF = { command: "npx", args: ["-y", "secret-project"], disabled: true };
/** Places where the workspace or the user can disable a server. */
const PLACES = {
  "in the format of clients": { pml: { mcpServers: { "Secret Project": OFF } } },
  "by an untrusted file": {
    pml: { mcpServers: { "secret-project": OFF } },
    trusted: false,
  },
  "by the user": {
    pml: {},
    person: 'mcpServers:\n  secret-project: { url: "https://x.example", disabled: true }\n',
  },
  "in a folder above": { pml: {}, above: { mcpServers: { "secret-project": OFF } } },
};

for (const [where, place] of Object.entries(PLACES)) {
  Deno.test(`a server that is disabled ${where} keeps its name: no registry is asked for it (GW9)`, async () => {
    const { pml: said, trusted = true, person = "", above } = {
      trusted: true,
      person: "",
      above: undefined,
      ...place,
    };
    await using registry = await FakeRegistry.open([await entry("secret-project")]);
    await using ws = await makeWorkspace({
      env: { PML_REGISTRIES: registry.url },
      trusted,
      pml: { version: 1, permissions: { allow: ["*", "secret-project:*"] }, ...said },
    });
    if (person !== "") await writeFile(join(ws.home, "config.yaml"), person);
    let cwd = ws.path;
    if (above !== undefined) {
      cwd = ws.file("inner");
      await mkdir(cwd);
      await mkdir(ws.file(".git"));
      await writeFile(ws.file(".pml.json"), JSON.stringify({ version: 1, ...above }));
      await writeFile(join(cwd, ".pml.json"), JSON.stringify({ version: 1 }));
    }
    const env = { PML_TRUST: trusted ? join(cwd, ".pml.json") : "" };
    await using pml = new RawStdio(ws, { ...ASKS, cwd, env });
    await pml.open();
    const answer = textOf(await answerOf(pml, called("secret-project:go")));
    assert.match(answer, /^UNKNOWN_TOOL: .*"secret-project" is disabled in ".*(?:json|yaml)"/);
    const found = textOf(await pml.callTool("search", { query: "goes away" }));
    assert.doesNotMatch(found, /secret-project/);
    const text = textOf(await pml.callTool("schema", { tools: ["secret-project:go"] }));
    assert.match(text, /is disabled in/);
    assert.equal((await pml.close()).code, 0);
    const typed = await runPml(ws, ["call", "secret-project:go"], { cwd, env });
    assert.match(typed.stderr, /is disabled in/);
    assert.deepEqual(registry.paths.filter((path) => path.includes("secret")), []);
  });
}

Deno.test("a registry server that is disabled here is no longer used, and returns when it is enabled (GW9)", async () => {
  await using registry = await FakeRegistry.open([await entry("clock")]);
  const rules = { version: 1, permissions: { allow: ["clock:*"] } };
  await using ws = await makeWorkspace({ env: { PML_REGISTRIES: registry.url }, pml: rules });
  await using pml = new RawStdio(ws, ASKS);
  await pml.open();
  const tell = async () => textOf(await answerOf(pml, called("clock:go")));
  assert.equal(await tell(), "clock went");
  const asked = registry.paths.length;
  const off = { ...rules, mcpServers: { clock: { command: "clock", disabled: true } } };
  await writeFile(ws.file(".pml.json"), JSON.stringify(off));
  await until(async () => /is disabled in/.test(await tell()));
  assert.equal(registry.paths.length, asked);
  await writeFile(ws.file(".pml.json"), JSON.stringify(rules));
  await until(async () => await tell() === "clock went");
  assert.equal((await pml.close()).code, 0);
});

Deno.test("a disabled server is not called in the cloud either (GW9)", async () => {
  await using hub = new FakeCloud();
  await using ws = await makeWorkspace({
    env: { PML_API_KEY: "account-key-canary" },
    pml: {
      version: 1,
      permissions: { allow: ["github:*"] },
      cloud: { url: hub.url },
      mcpServers: { github: { command: "github", disabled: true } },
    },
  });
  await using pml = new RawStdio(ws);
  await pml.open();
  const answer = textOf(await answerOf(pml, called("github:create_issue")));
  assert.match(answer, /^UNKNOWN_TOOL: .*"github" is disabled in/);
  assert.equal(hub.received.length, 0, hub.text);
  assert.equal((await pml.close()).code, 0);
});
