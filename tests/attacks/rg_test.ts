import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { FakeRegistry, manifestEntry, moduleEntry } from "../kit/fake_registry.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { runPml, runPmlOnTerminal } from "../kit/run.ts";
import { TcpSink } from "../kit/sinks.ts";
import { makeWorkspace, type Workspace } from "../kit/workspace.ts";
import { endWell, GOOD, textOf } from "./oracles.ts";
import { answerOf, outcomeOf, picked, questionOf, read } from "./questions.ts";

function moduleOf(name: string, permissions = {}): string {
  return `export const __meta__ = {
    name: "${name}", version: "1.0.0", permissions: ${JSON.stringify(permissions)},
    tools: { go: { description: "Goes", inputSchema: { type: "object" } } },
  };
  export function go() { return "${name} went"; }`;
}

const ASKS = { capabilities: { elicitation: {} } };

function called(tool: string) {
  return { name: "call", arguments: { tool, arguments: {} } };
}

/** Starts a registry with three modules, one of which declares less than its code does. */
async function openRegistry(): Promise<FakeRegistry> {
  const wide = await moduleEntry("wide", moduleOf("wide", { net: ["api.example.com"] }));
  const code = moduleOf("keyed", { env: ["KEYED_KEY"] })
    .replace('go() { return "keyed went"', 'go(_, host) { return host.env("KEYED_KEY") ?? "none"');
  const keyed = await moduleEntry("keyed", code);
  const manifest = JSON.parse(JSON.stringify(wide.manifest));
  manifest.permissions = {};
  for (const tool of manifest.tools) delete tool.permissions;
  return await FakeRegistry.open([
    await moduleEntry("named", moduleOf("named")),
    await moduleEntry("other", moduleOf("other")),
    await moduleEntry("mine", moduleOf("mine")),
    { ...wide, manifest },
    { ...keyed, manifest: { ...keyed.manifest, env_required: ["KEYED_KEY"] } },
  ]);
}

async function workspaceOf(registry: FakeRegistry): Promise<Workspace> {
  return await makeWorkspace({
    env: { PML_REGISTRIES: registry.url },
    files: { "mine.js": moduleOf("mine").replace("mine went", "my own went"), ...GOOD },
    pml: {
      version: 1,
      permissions: { allow: ["*", "named:*", "wide:*", "mine:*", "filesystem:*"] },
      private_mcps: { mine: { type: "deno", path: "mine.js" } },
    },
  });
}

Deno.test("a rule that names a listed server answers its first use; a bare * does not", async () => {
  await using registry = await openRegistry();
  await using ws = await workspaceOf(registry);
  await using pml = new RawStdio(ws, ASKS);
  await pml.open();
  assert.equal(textOf(await answerOf(pml, called("named:go"))), "named went");
  const question = await questionOf(pml, called("other:go"));
  assert.match(question.text, /Yes lets PML use "other"/);
  await read();
  assert.match(textOf(await question.answer(picked("No"))), /answered no/);
  assert.equal(textOf(await answerOf(pml, called("mine:go"))), "my own went");
  assert.ok(registry.paths.every((path) => !path.includes("mine")), "a private name was asked for");
  await endWell(ws, pml);
});

Deno.test("a module whose code requests more than its registry entry declares does not run (SE11)", async () => {
  await using registry = await openRegistry();
  await using ws = await workspaceOf(registry);
  await using pml = new RawStdio(ws, ASKS);
  await pml.open();
  const text = textOf(await answerOf(pml, called("wide:go")));
  assert.match(text, /^REGISTRY_BAD_RESPONSE: .*its code asks for net "api\.example\.com"/);
  await endWell(ws, pml);
});

Deno.test("a rule that names a server is not an approval before the user has seen the server", async () => {
  await using registry = await openRegistry();
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: registry.url },
    trusted: false,
    pml: { version: 1, permissions: { allow: ["named:*"] } },
  });
  const typed = [
    ["to trust exactly this", "trust"],
    [/A rule allows "named"[^]*to trust exactly this/, "no"],
  ] as const;
  assert.equal((await runPmlOnTerminal(ws, ["trust"], { typed })).code, 0);
  assert.match((await runPml(ws, ["why", "named:go"])).stdout, /named:go: runs/);
  await using pml = new RawStdio(ws, ASKS);
  await pml.open();
  const question = await questionOf(pml, called("named:go"));
  assert.match(question.text, /Yes lets PML use "named"/);
  await read();
  assert.equal(textOf(await question.answer(picked("Yes"))), "named went");
  assert.equal(textOf(await answerOf(pml, called("named:go"))), "named went");
  assert.equal((await pml.close()).code, 0);
});

Deno.test("pml trust shows the servers that rules name, and a yes answers their first use", async () => {
  await using registry = await openRegistry();
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: registry.url },
    trusted: false,
    pml: { version: 1, permissions: { allow: ["named:*", "*", "nowhere:*"] } },
  });
  const typed = [
    ["to trust exactly this", "trust"],
    [/Yes lets PML use "named"[^]*to trust exactly this/, "trust"],
  ] as const;
  const result = await runPmlOnTerminal(ws, ["trust"], { typed });
  assert.equal(result.code, 0, result.stdout);
  assert.doesNotMatch(result.stdout, /"other"/, "a bare * names nobody");
  await using pml = new RawStdio(ws, ASKS);
  await pml.open();
  assert.equal(textOf(await answerOf(pml, called("named:go"))), "named went");
  assert.equal((await pml.close()).code, 0);
});

Deno.test("a batch asks about the first use of a server before any of its calls runs", async () => {
  await using registry = await openRegistry();
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: registry.url },
    pml: { version: 1, permissions: { allow: ["*", "filesystem:*"] } },
  });
  await using pml = new RawStdio(ws, ASKS);
  await pml.open();
  const calls = [
    { tool: "filesystem:write_file", arguments: { path: "made.txt", content: "made" } },
    { tool: "other:go" },
  ];
  const batch = { name: "batch", arguments: { calls } };
  const refused = await questionOf(pml, batch);
  assert.match(refused.text, /Yes lets PML use "other"/);
  await assert.rejects(readFile(ws.file("made.txt")), "it ran before the answer");
  await read();
  await refused.answer(picked("No"));
  await assert.rejects(readFile(ws.file("made.txt")), "it ran after a no");
  const question = await questionOf(pml, batch);
  await read();
  assert.match(textOf(await question.answer(picked("Yes"))), /other went/);
  assert.equal(await readFile(ws.file("made.txt"), "utf8"), "made");
  assert.equal((await pml.close()).code, 0);
});

Deno.test("PML does not connect to a private address that a registry names (NI4)", async () => {
  await using sink = new TcpSink();
  const url = `https://127.0.0.1:${sink.port}/mcp`;
  await using registry = await FakeRegistry.open([
    manifestEntry("inner", { type: "http", url }),
    manifestEntry("cloudy", { type: "cloud", proxy_to: url, tools: ["go"] }),
  ]);
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: registry.url, PML_API_KEY: "k" },
  });
  await using pml = new RawStdio(ws, { ...ASKS, door: "http", era: "2026-07-28" });
  await pml.open();
  for (const tool of ["inner:@tools", "cloudy:go"]) {
    const question = await questionOf(pml, called(tool));
    await read();
    assert.match(
      textOf(await question.answer(picked("Yes"))),
      /127\.0\.0\.1.* (?:private|public)/,
      tool,
    );
  }
  sink.assertSilent();
  assert.equal((await pml.close()).code, 0);
});

Deno.test("a module gets the variables that its question shows, and PML does not ask about it without them", async () => {
  await using registry = await openRegistry();
  await using ws = await workspaceOf(registry);
  {
    await using without = new RawStdio(ws, ASKS);
    await without.open();
    const text = textOf(await answerOf(without, called("keyed:go")));
    assert.match(text, /^KEY_MISSING: .*"keyed": it requires KEYED_KEY/);
    assert.equal((await without.close()).code, 0);
  }
  await using pml = new RawStdio(ws, { ...ASKS, env: { KEYED_KEY: "the value" } });
  await pml.open();
  const question = await questionOf(pml, called("keyed:go"));
  assert.match(question.text, /It reads the variable KEYED_KEY/);
  await read();
  assert.equal(textOf(await question.answer(picked("Yes"))), "the value");
  await endWell(ws, pml);
});

Deno.test("a lock from a clone approves nothing, and is not ignored (RG2, RG11)", async () => {
  await using registry = await openRegistry();
  await using ws = await workspaceOf(registry);
  {
    await using first = new RawStdio(ws, ASKS);
    await first.open();
    assert.equal(textOf(await answerOf(first, called("named:go"))), "named went");
    assert.equal((await first.close()).code, 0);
  }
  const lock = await readFile(ws.file("pml.lock"), "utf8");
  const { servers } = JSON.parse(lock);
  assert.equal(servers.named.source, registry.url);
  const elsewhere = { env: { PML_HOME: `${ws.root}/another-home` }, ...ASKS };
  const asks = async (text: string, expected: RegExp) => {
    await writeFile(ws.file("pml.lock"), text);
    await using pml = new RawStdio(ws, elsewhere);
    await pml.open();
    const outcome = await outcomeOf(pml, called("named:go"));
    assert.equal(outcome.kind, "asked", JSON.stringify(outcome));
    if (outcome.kind === "asked") assert.match(outcome.asked.text, expected);
    assert.equal((await pml.close()).code, 0);
  };
  const other = `sha256-${"0".repeat(64)}`;
  await asks(lock.replaceAll(servers.named.integrity, other), /integrity: was "sha256-0{64}", is /);
  await asks(
    lock.replaceAll(registry.url, "https://other.example/mcp"),
    /source: was "https:\/\/other\.example\/mcp", is /,
  );
});
