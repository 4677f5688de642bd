/**
 * Identities of `pml serve`: each has its own rules, tools, rates and questions.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import process from "node:process";
import { parse } from "yaml";
import { journalOf, ofKind, withoutMark } from "./attacks/oracles.ts";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { FakeRegistry } from "./kit/fake_registry.ts";
import { assertGolden } from "./kit/golden.ts";
import { repoFile } from "./kit/pml_command.ts";
import { connectHttp, type HttpClient, servePml } from "./kit/pml_serve.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";

const TOKENS = { ci: "token-of-the-ci-0001", bot: "token-of-the-bot-0002" } as const;
const hash = (text: string) => createHash("sha256").update(text).digest("hex");

const CONFIG = {
  toolsets: { reading: ["filesystem:read_file", "filesystem:list_directory"] },
  identities: {
    ci: { token: hash(TOKENS.ci), permissions: { allow: ["filesystem:read_file"] } },
    bot: {
      token: hash(TOKENS.bot),
      toolset: "reading",
      keys: false,
      permissions: { allow: ["filesystem:*"] },
      rates: { "filesystem:read_file": "2/hour" },
    },
  },
};
const PML = {
  version: 1,
  permissions: { allow: ["filesystem:*"], deny: ["filesystem:remove_file"] },
};

async function scenery(): Promise<Workspace> {
  const ws = await makeAttackWorkspace({ files: { "a.txt": "hello" }, pml: PML });
  await configure(ws, CONFIG);
  return ws;
}

async function configure(ws: Workspace, config: object): Promise<void> {
  await Deno.writeTextFile(`${ws.home}/config.yaml`, JSON.stringify(config));
}

async function call(
  { client }: HttpClient,
  tool: string,
  args: Record<string, unknown> = { path: "a.txt" },
): Promise<string> {
  const result = await client.callTool({ name: "call", arguments: { tool, arguments: args } });
  return JSON.stringify(result.content);
}

Deno.test("each identity has its own rules, tools and rates", async () => {
  await using ws = await scenery();
  await using served = await servePml(ws);
  const { url } = served;
  await using own = await served.connect({ era: "2026-07-28" });
  await using ci = await connectHttp({ url, token: TOKENS.ci }, { era: "2026-07-28" });
  await using bot = await connectHttp({ url, token: TOKENS.bot }, { era: "2026-07-28" });

  for (const one of [own, ci, bot]) {
    assert.match(await call(one, "filesystem:read_file"), /hello/);
  }
  // The user's deny applies to all; other identities do not see the tool at all.
  assert.match(await call(own, "filesystem:remove_file"), /PERMISSION_DENIED/);
  assert.match(await call(ci, "filesystem:remove_file"), /Cannot find|UNKNOWN/i);
  // A tool that is not in its tool set does not exist for it, whatever rules allow.
  const write = { path: "b.txt", content: "x" };
  assert.match(await call(bot, "filesystem:write_file", write), /Cannot find|UNKNOWN/i);
  const { content } = await bot.client.callTool({
    name: "search",
    arguments: { query: "write a file" },
  });
  assert.doesNotMatch(JSON.stringify(content), /write_file/);
  // Calls without a matching rule wait for the user, and no client is asked.
  assert.match(await call(ci, "filesystem:write_file", write), /APPROVAL_REQUIRED/);
  const { stdout } = await runPml(ws, ["approve", "--json"]);
  assert.match(stdout, /Asked by.*ci/);
  await assert.rejects(Deno.stat(ws.file("b.txt")), "nothing was written so far");
  assert.match(await call(own, "filesystem:write_file", write), /b\.txt|wrote|created/i);
  // Two calls in an hour, and no third.
  assert.match(await call(bot, "filesystem:read_file"), /hello/);
  assert.match(await call(bot, "filesystem:read_file"), /OVERLOADED/);
  assert.match(await call(own, "filesystem:read_file"), /hello/);
  const actors = ofKind(await journalOf(ws), "start").map((line) =>
    (line as unknown as { actor: string }).actor
  );
  assert.deepEqual(new Set(actors), new Set(["local", "ci", "bot"]));
  const { stdout: audit } = await runPml(ws, ["audit"]);
  const lines = audit.split("\n").filter((line) => line.includes("filesystem:"));
  const identities = lines.map((line) => / {2}by (\w+)$/.exec(line)?.[1] ?? "local");
  assert.deepEqual(new Set(identities), new Set(["local", "ci", "bot"]), audit);
});

Deno.test("a user's approval for an identity applies to its call only", async () => {
  await using ws = await scenery();
  await using served = await servePml(ws);
  await using ci = await connectHttp({ url: served.url, token: TOKENS.ci });
  await using bot = await connectHttp({ url: served.url, token: TOKENS.bot });
  const write = { path: "b.txt", content: "x" };
  assert.match(await call(ci, "filesystem:write_file", write), /APPROVAL_REQUIRED/);
  const { stdout } = await runPml(ws, ["approve", "--json"]);
  const { calls: [{ id }] } = JSON.parse(stdout);
  const typed = [["Approve exactly this call?", "y"]] as const;
  const approved = await runPmlOnTerminal(ws, ["approve", id.slice(0, 8)], { typed });
  assert.equal(approved.code, 0, approved.stdout);
  // The same call of another identity, or of the user, is a different call.
  assert.match(await call(bot, "filesystem:write_file", write), /Cannot find|UNKNOWN/i);
  const { stderr } = await runPml(ws, ["call", "shell:exec", "command=ls"]);
  assert.match(stderr, /APPROVAL_REQUIRED/);
  assert.doesNotMatch(await call(ci, "filesystem:write_file", write), /APPROVAL_REQUIRED/);
  assert.equal(await Deno.readTextFile(ws.file("b.txt")), "x");
  assert.match(await call(ci, "filesystem:write_file", write), /APPROVAL_REQUIRED/, "once");
});

Deno.test("the error for an unknown tool names no tool that is denied to an identity (PM15)", async () => {
  await using ws = await scenery();
  await using served = await servePml(ws);
  await using bot = await connectHttp({ url: served.url, token: TOKENS.bot });
  assert.match(await call(bot, "filesystem:read_file"), /hello/);
  // Its tool set has two tools.
  const tool = await call(bot, "filesystem:write_fil");
  assert.match(tool, /Cannot find the tool .*has read_file, list_directory\b/);
  assert.doesNotMatch(tool, /write_file|remove_file|Did you mean/);
  const near = await call(bot, "filesytem:read_file");
  assert.match(near, /Did you mean .*filesystem:read_file/);
  assert.doesNotMatch(await call(bot, "filesytem:write_file"), /Did you mean/);
});

Deno.test("a server without a usable tool is missing for an identity", async () => {
  const script = repoFile("tests/kit/script_server.ts");
  const args = ["run", "-A", "--no-config", "--quiet", script, "./ledger"];
  const program = { command: process.execPath, args };
  await using ws = await makeAttackWorkspace({
    files: { ledger: "" },
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:read_file"], deny: ["denied:*"] },
      mcpServers: {
        hidden: program,
        denied: program,
        broken: { command: "/hidden/program" },
        keyed: { ...program, env: { WORD: "${HIDDEN_KEY}" } },
        off: { command: "/hidden/program", disabled: true },
      },
    },
  });
  const { reading } = CONFIG.toolsets;
  const bot = { ...CONFIG.identities.bot, toolset: "reading" };
  const ci = { token: hash(TOKENS.ci) };
  await configure(ws, { toolsets: { reading }, identities: { bot, ci } });
  await using served = await servePml(ws);
  const { url } = served;
  await using client = await connectHttp({ url, token: TOKENS.bot }, { era: "2025-11-25" });
  const { contents } = await client.client.readResource({ uri: "pml://servers" });
  const found = await client.client.callTool({ name: "search", arguments: { query: "run" } });
  const text = JSON.stringify([
    ...[client.client.getInstructions(), contents, found, await client.client.listTools()],
    ...[await call(client, "hidden:run"), await call(client, "off:run", {})],
  ]);
  assert.match(text, /filesystem/);
  assert.doesNotMatch(text, /denied|broken|keyed|HIDDEN_KEY|shell|sqlite|hidden(?!:run)/);
  assert.doesNotMatch(text, /\.pml\.json/);
  assert.equal(await Deno.readTextFile(ws.file("ledger")), "", "nothing was started for it");
  // Servers without a rule are listed, and their calls wait for the user; denied servers are not
  // listed.
  await using other = await connectHttp({ url, token: TOKENS.ci }, { era: "2025-11-25" });
  const all = JSON.stringify(await other.client.readResource({ uri: "pml://servers" }));
  assert.match(all, /hidden/);
  assert.doesNotMatch(all, /denied/);
  await using own = await served.connect({ era: "2025-11-25" });
  const ofOwner = JSON.stringify(await own.client.readResource({ uri: "pml://servers" }));
  assert.match(ofOwner, /hidden/);
  assert.doesNotMatch(ofOwner, /denied/, "a client of the owner does not see it either");
});

for (const state of ["reachable", "offline"] as const) {
  Deno.test(`a denied and an unknown server answer alike for an identity, with a registry ${state}`, async () => {
    await using registry = await FakeRegistry.open([]);
    const script = repoFile("tests/kit/script_server.ts");
    const args = ["run", "-A", "--no-config", "--quiet", script, "./ledger"];
    await using ws = await makeAttackWorkspace({
      files: { ledger: "" },
      pml: {
        version: 1,
        permissions: { allow: ["filesystem:read_file"], deny: ["denied:*"] },
        mcpServers: {
          denied: { command: process.execPath, args },
          closed: { command: process.execPath, args },
        },
      },
    });
    const ci = { token: hash(TOKENS.ci), permissions: { deny: ["closed:*"] } };
    const url = state === "offline" ? "http://127.0.0.1:9/" : registry.url;
    await configure(ws, {
      identities: { ci },
      registries: [url],
      gateway: { tools_exposure: "full_proxy" },
    });
    await using served = await servePml(ws, [], { env: { PML_REGISTRIES: url } });
    await using connection = await connectHttp({ url: served.url, token: TOKENS.ci }, {
      era: "2025-11-25",
    });
    const { client } = connection;
    const plan = (tool: string) => ({ plan: { tasks: [{ id: "t", tool, arguments: {} }] } });
    const told = async (work: () => Promise<unknown>) =>
      JSON.stringify(await work().catch(({ code, message, data }) => ({ code, message, data })));
    const meta = (name: string, args: Record<string, unknown>) => () =>
      client.callTool({ name, arguments: args });
    const all = (name: string) => [
      meta(`${name}__run`, {}),
      meta("call", { tool: `${name}:run` }),
      meta("call", { tool: `${name}:run`, arguments: { a: 1 } }),
      meta("schema", { tools: [`${name}:run`] }),
      meta("search", { server: name }),
      meta("batch", { calls: [{ tool: `${name}:run`, arguments: {} }] }),
      meta("execute_workflow", plan(`${name}:run`)),
      meta("execute_code", { code: `return await mcp.${name}.run({});` }),
      () => client.readResource({ uri: `pml://${name}/test://a` }),
      () => client.getPrompt({ name: `${name}__p` }),
    ];
    const answers: string[][] = [];
    for (const name of ["nosuch", "denied", "closed"]) {
      const texts: string[] = [];
      for (const work of all(name)) {
        const text = withoutMark(await told(work)).replaceAll(name, "NAME");
        texts.push(text.replace(/"pml\/run":"[^"]*"/, ""));
      }
      answers.push(texts);
    }
    const [unknown, ...denied] = answers;
    for (const texts of denied) assert.deepEqual(texts, unknown);
    const { stdout } = await runPml(ws, ["approve", "--json"]);
    assert.deepEqual(JSON.parse(stdout).calls, []);
    assert.ok(!registry.paths.some((path) => /nosuch|denied|closed/.test(path)), "a name left PML");
  });
}

Deno.test("a revoked identity loses access at once, with its sessions", async () => {
  await using ws = await scenery();
  await using served = await servePml(ws);
  await using ci = await connectHttp({ url: served.url, token: TOKENS.ci });
  assert.match(await call(ci, "filesystem:read_file"), /hello/);
  const { code, stderr } = await runPml(ws, ["token", "revoke", "ci"]);
  assert.equal(code, 0, stderr);
  await until(async () => {
    const response = await served.fetch({
      method: "POST",
      body: "{}",
      headers: { authorization: `Bearer ${TOKENS.ci}` },
    });
    await response.text();
    return response.status === 401;
  });
  await assert.rejects(call(ci, "filesystem:read_file"));
  // Its rules stay for a later token.
  const { identities } = parse(await Deno.readTextFile(`${ws.home}/config.yaml`));
  const { token: _, ...rules } = CONFIG.identities.ci;
  assert.deepEqual(identities, { ...CONFIG.identities, ci: rules });
  assert.match((await runPml(ws, ["token", "list"])).stdout, /^ci: no token, so no access$/m);
  const again = await runPml(ws, ["token", "revoke", "ci"]);
  assert.match(again.stderr, /Cannot revoke "ci": it has no token/);
});

Deno.test("pml token new asks, and shows the token once", async () => {
  await using ws = await makeAttackWorkspace();
  const refused = await runPml(ws, ["token", "new", "ci"]);
  assert.match(refused.stderr, /terminal/);
  const { stdout } = await runPmlOnTerminal(ws, ["token", "new", "ci"], {
    typed: [['Type "write"', "write"]],
  });
  const [made = ""] = /[\w-]{43}/.exec(stdout.replace(/\+.*/g, "")) ?? [];
  const config = await Deno.readTextFile(`${ws.home}/config.yaml`);
  assert.ok(!config.includes(made) && config.includes(hash(made)), config);
  const { stdout: listed } = await runPml(ws, ["token", "list"]);
  assert.match(listed, /^ci$/m);
  await using served = await servePml(ws);
  await using ci = await connectHttp({ url: served.url, token: made });
  assert.ok((await ci.client.listTools()).tools.length > 0);
});

Deno.test("pml token new shows which calls run: those of the identity's allow rules, never those of the user's", async () => {
  await using ws = await scenery();
  const make = async (name: string) => {
    const typed = [['Type "write"', "write"]] as const;
    const { stdout } = await runPmlOnTerminal(ws, ["token", "new", name], { typed });
    const [made = ""] = /[\w-]{43}/.exec(stdout.replace(/[+-] .*/g, "")) ?? [];
    const lines = stdout.split("\n").filter((line) => line.includes(`identities.${name}`));
    return { made, text: lines.join("\n").trim() };
  };
  const fresh = await make("fresh");
  const ci = await make("ci");
  assertGolden("token/an identity without rules", fresh.text);
  assertGolden("token/an identity with an allow rule", ci.text);
  await using served = await servePml(ws);
  const { url } = served;
  await using own = await served.connect();
  await using asFresh = await connectHttp({ url, token: fresh.made });
  await using asCi = await connectHttp({ url, token: ci.made });
  const path = { path: "." };
  assert.doesNotMatch(await call(own, "filesystem:list_directory", path), /APPROVAL_REQUIRED/);
  assert.match(await call(asFresh, "filesystem:list_directory", path), /APPROVAL_REQUIRED/);
  assert.match(await call(asFresh, "filesystem:read_file"), /APPROVAL_REQUIRED/);
  assert.match(await call(asCi, "filesystem:list_directory", path), /APPROVAL_REQUIRED/);
  assert.match(await call(asCi, "filesystem:read_file"), /hello/);
});

Deno.test("the handle of a question is useless to another identity, and its owner can still use it (HT17)", async () => {
  await using ws = await scenery();
  await Deno.writeTextFile(
    ws.file(".pml.json"),
    JSON.stringify({ version: 1, permissions: { ask: ["filesystem:*"] } }),
  );
  await using served = await servePml(ws);
  const args = { path: "b.txt", content: "x" };
  const call = { name: "call", arguments: { tool: "filesystem:write_file", arguments: args } };
  const ask = async (token: string, more: object = {}) => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } },
    };
    const params = { ...call, ...more, _meta };
    const response = await served.fetch({
      method: "POST",
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
      headers: {
        authorization: `Bearer ${token}`,
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "call",
      },
    });
    return await response.json();
  };
  const { result: { requestState, inputRequests } } = await ask(served.token);
  assert.ok(inputRequests.approval, "the owner is asked");
  const inputResponses = { approval: { action: "accept", content: { answer: "Yes" } } };
  const stolen = await ask(TOKENS.ci, { requestState, inputResponses });
  assert.doesNotMatch(JSON.stringify(stolen), /"text":"(Wrote|Created)/);
  await assert.rejects(Deno.stat(ws.file("b.txt")), "nothing was written");
  await ask(served.token, { requestState, inputResponses });
  assert.equal(await Deno.readTextFile(ws.file("b.txt")), "x");
});

Deno.test("a missing tool set is reported, and has no tools", async () => {
  await using ws = await makeAttackWorkspace();
  await configure(ws, { gateway: { toolset: "gone" }, client_toolsets: { cursor: "lost" } });
  const { stdout, stderr } = await runPml(ws, ["why", "filesystem:read_file"]);
  assert.match(stderr, /tool set "gone"/);
  assert.match(stderr, /tool set "lost"/);
  assert.match(stdout, /denied/);
});
