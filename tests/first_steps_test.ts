/**
 * The first steps of a user: commands in any folder, mistyped names, and reports about the set-up.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { HAS_ACCOUNTS, pmlOfAccount } from "./kit/account.ts";
import { assertGolden } from "./kit/golden.ts";
import { ERAS, type Message } from "./kit/json_rpc.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const FROM_TOP = { cwd: "/" } as const;
const LIST = { tool: "filesystem:list_directory", arguments: { path: "." } };

function textOf({ result, error }: Message): string {
  if (error !== undefined) return JSON.stringify(error);
  return (result?.content as unknown as { text: string }[]).map(({ text }) => text).join("\n");
}

function errorOf({ result }: Message): { code?: string; message?: string } {
  return (result?.structuredContent as { error?: object } | undefined)?.error ?? {};
}

/** Returns the folder that PML creates where no other one is configured. */
function ownFolder(ws: Workspace): string {
  return join(dirname(ws.home), "pml-workspace");
}

async function listedFromTop(
  ws: Workspace,
  roots: readonly string[] | undefined,
): Promise<{ readonly text: string; readonly stderr: string }> {
  await using pml = new RawStdio(ws, {
    ...FROM_TOP,
    ...roots && {
      capabilities: { roots: {} },
      answer: (method) => {
        assert.equal(method, "roots/list");
        return { roots: roots.map((uri) => ({ uri })) };
      },
    },
  });
  await pml.open();
  const text = textOf(await pml.callTool("call", LIST));
  assert.equal((await pml.close()).code, 0);
  return { text, stderr: pml.stderr };
}

Deno.test("a client that starts PML in / gets its first root as the workspace, with the rules in it", async () => {
  await using ws = await makeWorkspace({
    files: { "here.txt": "x" },
    pml: { permissions: { deny: ["filesystem:list_directory"] } },
    trusted: false,
  });
  const home = dirname(ws.home);
  const root = pathToFileURL(ws.path).href;
  const denied = await listedFromTop(ws, [root]);
  assert.match(denied.text, /^PERMISSION_DENIED: /);
  await rm(ws.file(".pml.json"));
  // Homes, the top folder and paths that are no folder are skipped.
  const odd = ["file:///", pathToFileURL(home).href, "file:///%zz", "file:///gone"];
  const { text, stderr } = await listedFromTop(ws, [...odd, root]);
  assert.match(text, /here\.txt/);
  assert.doesNotMatch(stderr, /is not a project/);
  const none = await listedFromTop(ws, odd);
  assert.doesNotMatch(none.text, /here\.txt/);
  assert.match(none.stderr, /"\/" is not a project, .*\/pml-workspace"/);
});

for (const era of ERAS) {
  Deno.test(`a client without roots that starts PML in / works in PML's own folder, on ${era}`, async () => {
    await using ws = await makeWorkspace();
    await mkdir(ownFolder(ws));
    await writeFile(join(ownFolder(ws), "mine.txt"), "x");
    await using pml = new RawStdio(ws, { ...FROM_TOP, era });
    await pml.open();
    assert.match(textOf(await pml.callTool("call", LIST)), /mine\.txt/);
    assert.equal((await pml.close()).code, 0);
    assert.match(pml.stderr, /is not a project.*PML_WORKSPACE/);
  });
}

Deno.test("a client that declares roots and never lists them delays its calls for at most two seconds", async () => {
  await using ws = await makeWorkspace();
  await using pml = new RawStdio(ws, { ...FROM_TOP, capabilities: { roots: {} } });
  await pml.open();
  const since = performance.now();
  assert.equal(textOf(await pml.callTool("call", LIST)), "The folder is empty");
  assert.ok(performance.now() - since < 20_000);
  await using gone = new RawStdio(ws, { ...FROM_TOP, capabilities: { roots: {} } });
  await gone.open();
  gone.begin("tools/call", { name: "call", arguments: LIST });
  const { code } = await gone.close().catch(() => ({ code: undefined }));
  assert.equal(code, 0, "a client that leaves meanwhile ends PML");
});

Deno.test("pml init does not warn that the current folder is not a project", async () => {
  await using ws = await makeWorkspace();
  const warning = /^warning: No workspace found/m;
  assert.match((await runPml(ws, ["list"])).stderr, warning);
  const dry = await runPml(ws, ["init", "--http", "--dry-run"]);
  assert.doesNotMatch(dry.stderr, warning);
  // No line follows the last step.
  assert.match(dry.stderr, /start your client$/m);
  const wrong = await runPml(ws, ["init", "--port", "3103", "--yes"]);
  assert.equal(wrong.code, 2, wrong.stderr);
});

Deno.test("a command in / uses PML's own folder and reports it; init requires a project", async () => {
  await using ws = await makeWorkspace();
  const result = await runPml(ws, ["call", "filesystem:write_file", "path=a", "content=b"], {
    cwd: "/",
  });
  assert.match(result.stderr, /warning: "\/" is not a project/);
  const doctor = await runPml(ws, ["doctor"], { cwd: "/" });
  assert.match(doctor.stdout, /^ok {3}workspace: .*\/pml-workspace, PML's own folder$/m);
  assert.match(doctor.stdout, /^warn configuration: "\/" is not a project/m);
  const init = await runPml(ws, ["init", "--yes"], { cwd: "/" });
  assert.equal(init.code, 2);
  assertGolden("init/a folder that is not a project", init.stderr);
  // A link to a home is not used.
  await rm(ownFolder(ws), { recursive: true });
  await Deno.symlink(dirname(ws.home), ownFolder(ws));
  const linked = await runPml(ws, ["tools"], { cwd: "/" });
  assert.equal(linked.code, 2);
  assert.match(linked.stderr, /CONFIG_INVALID: .*PML_WORKSPACE/s);
});

Deno.test({
  name: "a client that starts PML in the user's home works in PML's own folder there",
  ignore: !HAS_ACCOUNTS,
  fn: async () => {
    await using ws = await makeWorkspace();
    const home = dirname(ws.home);
    const command = pmlOfAccount(ws);
    const result = await runPml(ws, ["doctor"], { cwd: home, command });
    assert.match(result.stdout, /^ok {3}workspace: .*\/home\/pml-workspace, PML's own folder$/m);
  },
});

Deno.test("the error of a mistyped name contains the nearest name, also where no registry is reachable", async () => {
  // No process listens at this port.
  await using ws = await makeWorkspace({ env: { PML_REGISTRIES: "http://127.0.0.1:9/mcp" } });
  await using pml = new RawStdio(ws, { era: "2025-11-25" });
  await pml.open();
  const called = async (tool: string) =>
    errorOf(await pml.callTool("call", { tool, arguments: { path: "a" } }));
  const server = await called("filesytem:read_file");
  assert.equal(server.code, "UNKNOWN_TOOL");
  assert.match(server.message ?? "", /Did you mean "filesystem:read_file"\?$/);
  const tool = await called("filesystem:red_file");
  assert.equal(tool.code, "UNKNOWN_TOOL");
  assert.match(tool.message ?? "", /Did you mean "filesystem:read_file"\?$/);
  assert.equal((await called("weather:today")).code, "REGISTRY_OFFLINE");
  // A suggestion exists: a tool of the nearest server, or else the server.
  const texts = [(await called("filesytem:unlike_any_tool")).message];
  for (const name of ["red_file", "filesytem", "mcp__pml__git__statu"]) {
    const { error } = await pml.callTool(name, {});
    assert.equal(error?.code, -32602);
    texts.push(error?.message);
  }
  assertGolden("call/names that do not exist", texts.join("\n"));
  assert.equal((await pml.close()).code, 0);
});

Deno.test("search takes a text or a list of texts, each under its own name", async () => {
  await using ws = await makeWorkspace();
  await using pml = new RawStdio(ws, { era: "2026-07-28" });
  await pml.open();
  const { result } = await pml.request("tools/list", {});
  const tools = result?.tools as unknown as {
    name: string;
    inputSchema: { properties: object };
  }[];
  const schema = tools.find(({ name }) => name === "search")?.inputSchema;
  assert.doesNotMatch(JSON.stringify(schema), /anyOf|oneOf/);
  const found = async (args: Record<string, unknown>) =>
    textOf(await pml.callTool("search", { limit: 20, ...args }));
  assert.match(await found({ query: "read a file" }), /^filesystem:read_file/m);
  const both = await found({ query: "read a file", queries: ["list branches"] });
  assert.match(both, /^filesystem:read_file/m);
  assert.match(both, /^git:branches/m);
  for (const args of [{}, { queries: [] }]) {
    assert.match(await found(args), /^BAD_ARGUMENTS: .*Missing argument: query/);
  }
  assert.match(await found({ query: ["read"] }), /^BAD_ARGUMENTS: /);
  assert.match(await found({ query: "filesystem:read_file" }), /^filesystem:read_file\(/);
  assert.equal((await pml.close()).code, 0);
});

Deno.test("pml://servers reports in a fresh process the same as pml doctor", async () => {
  await using ws = await makeWorkspace();
  await using pml = new RawStdio(ws, { era: "2025-11-25" });
  await pml.open();
  const { result } = await pml.request("resources/read", { uri: "pml://servers" });
  const [{ text = "" } = {}] = result?.contents as unknown as { text?: string }[];
  const states = JSON.parse(text) as { name: string; state: string; tools: number }[];
  assert.equal((await pml.close()).code, 0);
  const { stdout } = await runPml(ws, ["doctor"]);
  for (const { name, state, tools } of states) {
    const count = `${tools} tool${tools === 1 ? "" : "s"}`;
    assert.ok(stdout.includes(`ok   server ${name}: builtin, ${state}: ${count}\n`), name);
  }
  assert.equal(states.length, 4);
});

const MODULE = (body: string) =>
  `export const __meta__ = { name: "m", description: "M", tools: { a: { description: "A" } } };
  export function a() { return ${JSON.stringify(body)}; }`;

Deno.test("warnings distinguish rules that match nothing, a replaced built-in, pending trust and changed code", async () => {
  await using ws = await makeWorkspace({
    files: { "m.ts": MODULE("one") },
    pml: {
      permissions: {
        allow: ["m:*", "m:b", "filesytem:*"],
        ask: ["elsewhere:*", "pml:*"],
      },
      mcpServers: { git: { command: "true" } },
      private_mcps: { m: { type: "deno", path: "m.ts" } },
    },
  });
  const first = await runPml(ws, ["call", "m:a"]);
  assert.match(first.stdout, /one/);
  const mistyped = /"filesytem:\*" in ".*\.pml\.json" .*Did you mean "filesystem"\?/;
  assert.doesNotMatch(first.stderr, /filesytem|elsewhere/, "not with each command");
  const listed = JSON.parse((await runPml(ws, ["rules", "--json"])).stdout).rules;
  const noteOf = (rule: string) =>
    listed.find((row: { readonly rule: string }) => row.rule === rule)?.note;
  assert.match(noteOf("filesytem:*"), /"filesystem"\?$/);
  assert.match(noteOf("elsewhere:*"), /registry/);
  assert.equal(noteOf("pml:*"), undefined);
  const { stdout } = await runPml(ws, ["doctor"]);
  assert.match(stdout, mistyped);
  assert.match(
    stdout,
    /^warn rule: The rule "m:b" in .* names no tool of "m"\. Did you mean "m:a"\?$/m,
  );
  assert.match(stdout, /^warn rule: The rule "elsewhere:\*" .* A registry may have it$/m);
  assert.doesNotMatch(stdout, /"pml:\*"/, "the cloud's own tools have this name");
  assert.match(stdout, /^warn server git: .*built-in/m);
  await writeFile(ws.file("m.ts"), MODULE("two"));
  const changed = await runPml(ws, ["call", "m:a"]);
  assert.equal(changed.code, 1);
  assert.match(
    changed.stderr,
    /APPROVAL_STALE: .*the code of "m" in ".*m\.ts" has changed: it is sha256-\w+, approved was sha256-/,
  );
  const untrusted = await runPml(ws, ["doctor"], { env: { PML_TRUST: "" } });
  assert.match(untrusted.stdout, /^warn trust: not trusted yet$/m);
  assert.match(untrusted.stdout, /^warn server m: private, blocked: /m);
  const trust = await runPml(ws, ["trust", "--json"], { env: { PML_TRUST: "" } });
  assert.match(trust.stdout, /\\"git\\" replaces the built-in server of PML/);
});

Deno.test("doctor asks each registry, and warns about an unreachable one with the reason", async () => {
  await using ws = await makeWorkspace({ env: { PML_REGISTRIES: "http://127.0.0.1:9/mcp" } });
  const result = await runPml(ws, ["doctor"]);
  assert.equal(result.code, 0);
  assert.match(
    result.stdout,
    /^warn registry http:\/\/127\.0\.0\.1:9\/mcp: Cannot reach the registry/m,
  );
});

Deno.test("a name that may contain secrets is closed for reading, and the hint is the grant that opens it (GW18)", async () => {
  const secret = "npm_0123456789";
  const names = [".npmrc", ".netrc", ".mcp.json", ".cursor/mcp.json", "deep/.pypirc", ".Npmrc"];
  const files = Object.fromEntries(names.map((name) => [name, secret]));
  await using ws = await makeWorkspace({ files, pml: {} });
  for (const path of Object.keys(files)) {
    const refused = await runPml(ws, ["call", "filesystem:read_file", `path=${path}`]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /PATH_PROTECTED: Cannot read ".*": it is protected/);
    assert.doesNotMatch(refused.stdout + refused.stderr, /npm_/);
    const [, grants = ""] = /trusted \.pml\.json: ("grants": .*)/.exec(refused.stderr) ?? [];
    await writeFile(ws.file(".pml.json"), `{ ${grants} }`);
    const opened = await runPml(ws, ["call", "filesystem:read_file", `path=${path}`]);
    assert.equal(opened.stdout.trim(), secret, opened.stderr);
    await writeFile(ws.file(".pml.json"), "{}");
  }
});

Deno.test("errors of a module name the line of its file, at load, in a call and in pml check", async () => {
  const meta = (name: string, schema = "{}") =>
    `export const __meta__ = { name: "${name}", description: "M",\n` +
    `  tools: { a: { description: "A", inputSchema: ${schema} } } };\n`;
  const typo = '{ type: "object", properties: { city: { type: "strng" } }, required: ["cty"] }';
  const files = {
    "syntax.ts": `${meta("syntax")}export function a() {\n  const x = ;\n}\n`,
    "broken.ts": `${meta("broken")}interface T { readonly name: string }\n` +
      "export function a() {\n  const it = undefined as unknown as T;\n  return it.name;\n}\n",
    "says.ts": `${meta("says")}export function a() { throw new Error("There is no such city"); }\n`,
    "typo.ts": `${meta("typo", typo)}export function a() { return 1; }\n`,
    "open.ts": `${meta("open")}export function a() {\n  return ((1;\n}\n`,
  };
  const names = ["syntax", "broken", "says", "typo", "open"];
  const private_mcps = Object.fromEntries(
    names.map((name) => [name, { type: "deno", path: `${name}.ts` }]),
  );
  const allow = names.map((name) => `${name}:*`);
  await using ws = await makeWorkspace({ files, pml: { permissions: { allow }, private_mcps } });
  const syntax = await runPml(ws, ["call", "syntax:a"]);
  assert.match(syntax.stderr, /module ".*syntax\.ts:4:13": syntax error: /);
  assert.match(syntax.stderr, / in line 4/);
  const open = await runPml(ws, ["call", "open:a"]);
  assert.match(open.stderr, /module ".*open\.ts:4:13": syntax error: /);
  const broken = await runPml(ws, ["call", "broken:a"]);
  assert.match(broken.stderr, /TypeError: Cannot read properties .* \(broken\.ts:6:\d+\)/);
  // An error that an author throws is a message for users, and stays as it is.
  const says = await runPml(ws, ["call", "says:a"]);
  assert.match(says.stderr, /^There is no such city$/m);
  const checked = await runPml(ws, ["check", "syntax.ts"]);
  assert.match(checked.stdout, /: syntax\.ts:4:13: Expression expected\n +Fix .* in line 4/);
  const opened = await runPml(ws, ["check", "open.ts"]);
  assert.match(opened.stdout, /: open\.ts:4:13: Expected ',', got ';'\n +Fix the syntax/);
  const misspelt = await runPml(ws, ["check", "typo.ts"]);
  assert.equal(misspelt.code, 1);
  assert.match(misspelt.stdout, /has the unknown type "strng"\n +Write "string"/);
  assert.match(
    misspelt.stdout,
    /"cty", .*\n +Did you mean "city"\?/,
  );
});
