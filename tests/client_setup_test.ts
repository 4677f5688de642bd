/**
 * `pml init --client` connects clients, in files as they exist on users' machines, and disconnects
 * them again.
 *
 * @module
 */

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { parse as parseToml } from "smol-toml";
import { parse as parseYaml } from "yaml";
import { canUseHttp, createForm } from "../src/cli/_client_form.ts";
import { type ClientName, CLIENTS } from "../src/config/clients.ts";
import { LIMITS } from "../src/config/limits.ts";
import { assertError } from "./cli_greeter.ts";
import { claudeCode, HOME_FILES, KEYS } from "./client_files.ts";
import { assertGolden } from "./kit/golden.ts";
import { pmlCommand } from "./kit/pml_command.ts";
import { servePml } from "./kit/pml_serve.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace, type Workspace, writeFiles } from "./kit/workspace.ts";

/** Example files of the clients that `client_files.ts` does not contain. */
const MORE_FILES: Readonly<Record<string, string>> = {
  ".config/zed/settings.json": `// Zed settings
{
  "theme": "One Dark",
  "context_servers": {
    "figma": { "enabled": true, "settings": { "token": "${KEYS.random}" } }, // an extension
    "docs": {
      "source": "custom",
      "command": "npx",
      "args": ["-y", "docs"],
      "env": { "DOCS_TOKEN": "${KEYS.github}" },
    },
    "old": { "command": { "path": "old-server", "args": ["-v"], "env": {} }, "settings": {} },
  },
}
`,
  ".config/opencode/opencode.json": `{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "here": {
      "type": "local", "command": ["npx", "-y", "here"], "environment": { "A": "{env:HERE_A}" }
    },
    "there": { "type": "remote", "url": "https://there.example/mcp", "enabled": false },
    "timeout": 5000
  }
}`,
  ".cline/data/settings/cline_mcp_settings.json":
    `{ "mcpServers": { "far": { "type": "streamableHttp", "url": "https://far.example/mcp" } } }`,
  ".continue/config.yaml": `name: Mine
version: 1.0.0
schema: v1
mcpServers: # those of work
    - name: notes # indented by four
      command: npx
      args: ["-y", "notes"]

rules:
  - Be brief
`,
  ".copilot/mcp-config.json":
    `{ "mcpServers": { "near": { "type": "local", "command": "near", "args": [], "tools": ["*"] } } }`,
  ".qwen/settings.json": `{ "mcpServers": {}, "mcp": { "excluded": [] } }`,
};

/** Every client: the user's own file, and the keys that lead to its servers. */
const OWN: Readonly<Record<ClientName, readonly [file: string, ...at: string[]]>> = {
  "claude-code": [".claude.json", "mcpServers"],
  "claude-desktop": [".config/Claude/claude_desktop_config.json", "mcpServers"],
  cline: [".cline/data/settings/cline_mcp_settings.json", "mcpServers"],
  codex: [".codex/config.toml", "mcp_servers"],
  continue: [".continue/config.yaml", "mcpServers"],
  copilot: [".copilot/mcp-config.json", "mcpServers"],
  cursor: [".cursor/mcp.json", "mcpServers"],
  gemini: [".gemini/settings.json", "mcpServers"],
  opencode: [".config/opencode/opencode.json", "mcp"],
  qwen: [".qwen/settings.json", "mcpServers"],
  vscode: [".config/Code/User/mcp.json", "servers"],
  windsurf: [".codeium/windsurf/mcp_config.json", "mcpServers"],
  zed: [".config/zed/settings.json", "context_servers"],
};

/** The files of a project. */
const SHARED: Readonly<Record<string, string>> = {
  "claude-code": ".mcp.json",
  codex: ".codex/config.toml",
  cursor: ".cursor/mcp.json",
  gemini: ".gemini/settings.json",
  opencode: "opencode.json",
  qwen: ".qwen/settings.json",
  vscode: ".vscode/mcp.json",
  zed: ".zed/settings.json",
};

function homeOf(ws: Workspace): string {
  return dirname(ws.home);
}

async function house(files: Readonly<Record<string, string>> = {}): Promise<Workspace> {
  const ws = await makeWorkspace({ files: { "package.json": "{}", ...files } });
  const desktop = ".config/Claude/claude_desktop_config.json";
  await writeFiles(homeOf(ws), {
    ...HOME_FILES,
    ...MORE_FILES,
    ".claude.json": claudeCode(ws),
    [desktop]: `{"mcpServers": {"gh": {"command": "gh", "env": {"T": "${KEYS.other}"}}}}\n`,
  });
  return ws;
}

async function serversIn(path: string, at: readonly string[]): Promise<Record<string, unknown>> {
  const text = await Deno.readTextFile(path);
  if (path.endsWith(".yaml")) {
    const { mcpServers } = parseYaml(text) as { mcpServers: readonly { readonly name: string }[] };
    return Object.fromEntries(mcpServers.map((one) => [one.name, one]));
  }
  const whole: unknown = path.endsWith(".toml")
    ? JSON.parse(JSON.stringify(parseToml(text)))
    : (await import("jsonc-parser")).parse(text);
  return at.reduce((so, key) => (so as Record<string, never>)[key] ?? {}, whole) as Record<
    string,
    unknown
  >;
}

/** Returns the command and the arguments that a client's entry starts. */
function startedBy(entry: unknown): readonly string[] {
  const { command, args = [] } = entry as { command: string | string[]; args?: string[] };
  return [command, args].flat();
}

Deno.test("pml init --client adds PML to each client's own file, and --undo restores the file byte for byte", async () => {
  await using ws = await house();
  const bin = join(ws.root, "bin");
  await writeFiles(bin, { pml: "" });
  const env = { PATH: `${bin}:${Deno.env.get("PATH")}` };
  const pathOf = (client: ClientName) => join(homeOf(ws), OWN[client][0]);
  const textsOf = (clients: readonly ClientName[]) =>
    Promise.all(clients.map((client) => Deno.readTextFile(pathOf(client))));
  const untouched = await textsOf(CLIENTS);
  const whole = { http: false, command: join(bin, "pml") };
  // Over HTTP, the entry replaces the one before.
  for (const more of [[], ["--http"], ["--http", "--port", "3103"]]) {
    const http = more.length > 0;
    const port = Number(more[2] ?? 3003);
    const clients = CLIENTS.filter((client) => !http || canUseHttp(client));
    const before = await textsOf(clients);
    const others = clients.map((client) => serversIn(pathOf(client), OWN[client].slice(1)));
    const set = ["init", "--client", clients.join(","), "--user", "--yes", ...more];
    const result = await runPml(ws, set, { env });
    assert.equal(result.code, 0, result.stderr);
    assert.equal(
      result.stdout.match(/PML(?: was added|'s entry was replaced); .*\.backup(?:\.\d)?$/gm)
        ?.length,
      clients.length,
    );
    const after = await textsOf(clients);
    for (const [at, client] of clients.entries()) {
      const { pml, ...rest } = await serversIn(pathOf(client), OWN[client].slice(1));
      const { entry, input } = createForm(client, { ...whole, http, port, isOwn: true });
      assert.equal(JSON.stringify(entry).includes(`127.0.0.1:${port}/mcp`), http);
      assert.deepEqual(pml, entry);
      const { pml: earlier, ...there } = await others[at] ?? {};
      assert.equal(earlier === undefined, !http, client);
      assert.deepEqual(rest, there);
      if (http && input) assert.match(after[at] ?? "", /"id": ?"pml-token"/);
      // All lines of the old file are still there, in their order.
      const lines = before[at]?.split("\n").filter((each) => /^\s*\/\/|"theme"/.test(each)) ?? [];
      for (const line of lines) assert.ok(after[at]?.includes(line), line);
    }
    const again = await runPml(ws, set, { env });
    assert.equal(again.stdout.match(/has PML already$/gm)?.length, clients.length, again.stdout);
    assert.deepEqual(await textsOf(clients), after);
    const { skip } = JSON.parse((await runPml(ws, ["import", "--json"])).stdout);
    const own = skip.filter(({ name }: { name: string }) => name === "pml");
    assert.equal(own.length, CLIENTS.length);
    for (const { client, why } of own) assert.equal(why, "it is PML itself", client);
  }
  // One undo takes back all edits of each file.
  const { stdout } = await runPml(ws, ["init", "--undo", "--yes"]);
  assert.equal(stdout.match(/: as it was .*$/gm)?.length, CLIENTS.length);
  assert.deepEqual(await textsOf(CLIENTS), untouched);
  for (const client of CLIENTS) {
    await assert.rejects(Deno.stat(`${pathOf(client)}.backup`), Deno.errors.NotFound);
  }
  const none = await runPml(ws, ["init", "--client", "zed", "--http", "--yes"]);
  assertError(none, { code: "USAGE", exit: 2 });
  assertGolden("init/a client whose file would contain the token", none.stderr);
});

Deno.test("pml init names the preset that costs less only if another one is set", async () => {
  for (const exposure of ["meta_only", "full_proxy"]) {
    const gateway = { tools_exposure: exposure };
    await using ws = await makeWorkspace({ pml: { version: 1, gateway } });
    const { stdout, stderr } = await runPml(ws, ["init", "--yes"]);
    assert.equal(/--preset meta_only/.test(stdout + stderr), exposure === "full_proxy", stderr);
  }
});

Deno.test("pml init --client creates the files of a project, and --undo removes them", async () => {
  await using ws = await house();
  const names = Object.keys(SHARED);
  const result = await runPml(ws, ["init", "--client", names.join(","), "--yes"]);
  assert.equal(result.code, 0, result.stderr);
  for (const [client, file] of Object.entries(SHARED)) {
    const [, ...at] = OWN[client as ClientName];
    const { pml } = await serversIn(ws.file(file), at);
    assert.deepEqual(startedBy(pml), ["pml", "stdio"], client);
    assert.deepEqual(pml, createForm(client as ClientName, { http: false, command: "pml" }).entry);
    assert.equal(((await Deno.stat(ws.file(file))).mode ?? 0) & 0o777, 0o644, client);
  }
  const text = await Deno.readTextFile(ws.file(".pml.json"));
  assert.match(JSON.parse(text).$schema, /pml\.schema\.json$/);
  const shown = await runPml(ws, ["init", "--undo", "--yes", "--dry-run"]);
  assert.equal(shown.code, 0, shown.stderr);
  for (const file of Object.values(SHARED)) {
    assert.ok(shown.stdout.includes(file), file);
    await Deno.stat(ws.file(file)); // still exists
  }
  const undone = await runPml(ws, ["init", "--undo", "--yes"]);
  assert.equal(undone.code, 0, undone.stderr);
  for (const file of Object.values(SHARED)) {
    await assert.rejects(Deno.stat(ws.file(file)), Deno.errors.NotFound, file);
  }
  const none = await runPml(ws, ["init", "--undo", "--yes"]);
  assertError(none, { code: "USAGE", exit: 2 });
});

Deno.test("pml init --undo and pml uninstall name the effect of all edits of a file", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  const shown = async (command: readonly string[], question: RegExp) => {
    const { stdout } = await runPmlOnTerminal(ws, command, { typed: [[question, "n"]] });
    return stdout.split(/\r?\n/).filter((line) => line.startsWith(ws.file(".mcp.json")))
      .map((line) => line.replaceAll(ws.root, "<ROOT>")).join("\n");
  };
  const init = ["init", "--client", "claude-code", "--yes"];
  await runPml(ws, init);
  await runPml(ws, [...init, "--http"]);
  assertGolden("init/undo of two edits of a new file", await shown(["init", "--undo"], /Continue/));
  const copy = await shown(["uninstall"], /Remove all of this/);
  assertGolden("uninstall/the file of a client", copy);
  const { undone } = JSON.parse((await runPml(ws, ["uninstall", "--json"])).stdout);
  assert.deepEqual(undone, [ws.file(".mcp.json")]);
  await runPml(ws, ["init", "--undo", "--yes"]);
  await assert.rejects(Deno.stat(ws.file(".mcp.json")), Deno.errors.NotFound);
  // The user changes the file between the two edits.
  await runPml(ws, init);
  const file = JSON.parse(await Deno.readTextFile(ws.file(".mcp.json")));
  await Deno.writeTextFile(ws.file(".mcp.json"), JSON.stringify({ ...file, own: true }));
  await runPml(ws, [...init, "--http"]);
  const between = await shown(["init", "--undo"], /Continue/);
  assertGolden("init/undo of two edits with another change between them", between);
  await runPml(ws, ["init", "--undo", "--yes"]);
  const { own, mcpServers } = JSON.parse(await Deno.readTextFile(ws.file(".mcp.json")));
  assert.deepEqual([own, mcpServers?.pml], [true, undefined]);
});

Deno.test("pml init --undo names the option for one client if it changed the files of several", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  await runPml(ws, ["init", "--client", "cursor,gemini", "--yes"]);
  const no = await runPmlOnTerminal(ws, ["init", "--undo"], { typed: [[/Continue\?/, "n"]] });
  const lines = no.stdout.split(/\r?\n/).filter((line) => line.includes("--client"));
  assertGolden("init/undo of several clients", lines.join("\n"));
  await runPml(ws, ["init", "--undo", "--client", "gemini", "--yes"]);
  const none = await runPml(ws, ["init", "--undo", "--client", "gemini", "--yes"]);
  assertGolden("init/undo of a client without a record", none.stderr);
  const one = await runPmlOnTerminal(ws, ["init", "--undo"], { typed: [[/Continue\?/, "y"]] });
  assert.equal(one.code, 0, one.stdout);
  assert.doesNotMatch(one.stdout, /--client/);
});

Deno.test("the command of a client's entry starts PML", async () => {
  await using ws = await house();
  const bin = join(ws.root, "bin");
  const words = pmlCommand().map((word) => `'${word}'`).join(" ");
  await writeFiles(bin, { pml: `#!/bin/sh\nexec ${words} "$@"\n` });
  await Deno.chmod(join(bin, "pml"), 0o755);
  const env = { PATH: `${bin}:${Deno.env.get("PATH")}` };
  await runPml(ws, ["init", "--client", "codex", "--user", "--yes"], { env });
  const { pml } = await serversIn(join(homeOf(ws), ".codex/config.toml"), ["mcp_servers"]);
  const [program = "", ...args] = startedBy(pml);
  const hello = {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "codex", version: "1" },
    },
  };
  const result = await runPml(ws, args, {
    command: [program],
    stdin: `${JSON.stringify(hello)}\n`,
  });
  assert.equal(JSON.parse(result.stdout.split("\n")[0] ?? "").result.serverInfo.name, "pml");
});

Deno.test("pml init --client without names adds all installed clients; --dry-run changes nothing and shows no key", async () => {
  await using ws = await house();
  const result = await runPml(ws, ["init", "--client", "--user", "--dry-run"]);
  assert.equal(result.code, 0, result.stderr);
  assert.match(result.stderr, /^Nothing was changed/m);
  for (const [file] of Object.values(OWN)) assert.ok(result.stdout.includes(file), file);
  for (const key of Object.values(KEYS)) {
    assert.ok(!(result.stdout + result.stderr).includes(key), key);
  }
  assert.match(result.stdout, /^ {2}\+ .*"pml"/m);
  await assert.rejects(Deno.stat(ws.file(".pml.json")), Deno.errors.NotFound);
  await using bare = await makeWorkspace({ files: { "package.json": "{}" } });
  const none = await runPml(bare, ["init", "--client", "--yes"]);
  assertError(none, { code: "USAGE", exit: 2 });
  assertGolden("init/no client is installed", none.stderr);
});

Deno.test("pml init --client shows the lines and asks; then it offers to import the client's other servers", async () => {
  await using ws = await house();
  const path = join(homeOf(ws), ".cursor/mcp.json");
  const before = await Deno.readTextFile(path);
  const set = ["init", "--client", "cursor", "--user"];
  const typed = [[/\+ .*"pml".*Add PML to .*\[N\] no/s, "n"]] as const;
  const no = await runPmlOnTerminal(ws, set, {
    typed: [...typed, [/Import .*\[N\] no/s, "n"], ["PML_API_KEY", ""]],
  });
  assert.match(no.stdout, /cursor does not start PML yet/);
  assert.equal(await Deno.readTextFile(path), before);
  const yes = await runPmlOnTerminal(ws, set, {
    typed: [
      [/\+ .*"pml".*Add PML to .*\[N\] no/s, "y"],
      [/cursor starts 2 servers itself.*Import these 2 servers into .*\[N\] no/s, "y"],
    ],
    ifAsked: [/(?:Store .* in PML, |Start th.* now, ).*\?.*\[N\] no/, "n"],
  });
  assert.equal(yes.code, 0, yes.stdout);
  const offer = yes.stdout.split(/\r?\n/).find((line) => line.startsWith("cursor starts"));
  assertGolden("init/a client with other servers", offer);
  const tools = JSON.parse((await runPml(ws, ["list", "--json"])).stdout);
  assert.match(JSON.stringify(tools), /"db"/);
  for (const key of Object.values(KEYS)) assert.ok(!yes.stdout.includes(key), key);
});

Deno.test("pml init --client writes nothing into a file that it cannot edit, and reports why", async () => {
  const wrong: readonly (readonly [client: string, text: string, why: RegExp])[] = [
    ["cursor", '{\n  "mcpServers": \n', /mcp\.json:3:1": found invalid JSON/],
    ["cursor", '{"mcpServers": []}', /"mcpServers" is not an object/],
    ["codex", "a = 1\nb = = 2\n", /config\.toml:2:5": it is not TOML/],
    ["codex", 'mcp_servers = { a = { command = "x" } }\n', /edited without another/],
    ["codex", "mcp_servers = 1\n", /"mcp_servers" is not an object/],
    ["zed", '{"context_servers": 1}', /"context_servers" is not an object/],
  ];
  for (const [client, text, why] of wrong) {
    const file = SHARED[client] ?? "";
    await using ws = await makeWorkspace({ files: { "package.json": "{}", [file]: text } });
    // A valid file of another client stays as it is, too.
    const result = await runPml(ws, ["init", "--client", `gemini,${client}`, "--yes"]);
    assertError(result, { code: "CONFIG_INVALID", exit: 2 });
    assert.match(result.stderr, why);
    assert.equal(await Deno.readTextFile(ws.file(file)), text);
    await assert.rejects(Deno.stat(ws.file(".gemini")), Deno.errors.NotFound);
  }
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  await Deno.symlink(ws.outside, ws.file(".cursor"));
  const out = await runPml(ws, ["init", "--client", "cursor", "--yes"]);
  assertError(out, { code: "CONFIG_INVALID", exit: 2 });
  assert.match(out.stderr, /it lies elsewhere/);
  await ws.assertCanaries();
  const name = await runPml(ws, ["init", "--client", "cursr", "--yes"]);
  assertError(name, { code: "USAGE", exit: 2 });
  assertGolden("init/an unknown client", name.stderr);
  assert.match(name.stderr, /"cursor"/);
});

Deno.test("pml init --undo restores nothing if one file cannot be read since, and names that file", async () => {
  await using ws = await house();
  await runPml(ws, ["init", "--client", "cursor,zed", "--yes"]);
  // In a file that is no JSON, PML cannot tell its own entry from others.
  const text = (await Deno.readTextFile(ws.file(".zed/settings.json"))) + "}\n";
  await Deno.writeTextFile(ws.file(".zed/settings.json"), text);
  const result = await runPml(ws, ["init", "--undo", "--yes"]);
  assertError(result, { code: "CONFIG_INVALID", exit: 2 });
  assertGolden("init/undo after a change", result.stderr);
  assert.match(result.stderr, /\.zed\/settings\.json": .*changed/);
  await Deno.stat(ws.file(".cursor/mcp.json"));
  const one = await runPml(ws, ["init", "--undo", "--client", "cursor", "--yes"]);
  assert.equal(one.code, 0, one.stderr);
});

Deno.test("pml doctor lists the clients that start PML, and the servers that they start without it", async () => {
  await using ws = await house();
  await runPml(ws, ["init", "--client", "zed,vscode", "--user", "--yes"]);
  const { stdout } = await runPml(ws, ["doctor"]);
  assert.match(stdout, /^warn client zed: starts PML, and past it: "figma", "docs", "old";/m);
  assert.match(
    stdout,
    /^warn client cursor: starts past PML: "db", "remote"\n.*init --client cur/m,
  );
  for (const key of Object.values(KEYS)) assert.ok(!stdout.includes(key), key);
});

Deno.test("pml import reads the forms of Zed and opencode", async () => {
  await using ws = await house({
    "deep.json": '{"mcp": {"servers": {"deep": {"type": "local", "command": ["x", "{file:k}"]}}}}',
  });
  const taken = async (from: string) => {
    const { stdout } = await runPml(ws, ["import", from, "--json"]);
    const { take, skip } = JSON.parse(stdout);
    const definitions = take.map((one: { name: string; definition: object }) => [
      one.name,
      one.definition,
    ]);
    const why = skip.map((one: { name: string; why: string }) => [one.name, one.why]);
    return { take: Object.fromEntries(definitions), skip: Object.fromEntries(why) };
  };
  const zed = await taken("zed");
  assert.deepEqual(zed.take, {
    docs: { command: "npx", args: ["-y", "docs"], env: { DOCS_TOKEN: "${DOCS_TOKEN}" } },
    old: { command: "old-server", args: ["-v"] },
  });
  assert.match(zed.skip.figma, /extension of the client/);
  const open = await taken("opencode");
  assert.deepEqual(open.take, {
    here: { command: "npx", args: ["-y", "here"], env: { A: "${HERE_A}" } },
  });
  assert.match(open.skip.there, /disabled/);
  assert.match(
    (await taken(ws.file("deep.json"))).skip.deep,
    /\bfile\b/,
  );
});

Deno.test("pml init makes Claude Code and Codex wait for PML, Codex in the user's own file only", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  const home = homeOf(ws);
  const clients = "claude-code,codex";
  await runPml(ws, ["init", "--client", clients, "--yes"]);
  const claude = await serversIn(ws.file(".mcp.json"), ["mcpServers"]);
  assert.equal((claude.pml as Record<string, unknown>).alwaysLoad, true);
  const shared = await Deno.readTextFile(ws.file(".codex/config.toml"));
  assert.doesNotMatch(shared, /required/);
  await runPml(ws, ["init", "--client", clients, "--user", "--yes"]);
  assert.match(await Deno.readTextFile(join(home, ".codex/config.toml")), /^required = true$/m);
  const own = await serversIn(join(home, ".claude.json"), ["mcpServers"]);
  assert.equal((own.pml as Record<string, unknown>).alwaysLoad, true);
});

Deno.test("pml init --http connects to the pml serve of this workspace on any port", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  const written = async (...more: readonly string[]) => {
    const result = await runPml(ws, ["init", "--http", "--yes", ...more]);
    assert.equal(result.code, 0, result.stderr);
    return JSON.parse(await Deno.readTextFile(ws.file(".mcp.json"))).mcpServers.pml.url;
  };
  {
    await using serving = await servePml(ws);
    assert.notEqual(new URL(serving.url).port, "3003");
    assert.equal(await written(), serving.url);
    assert.equal(await written("--port", "3103"), "http://127.0.0.1:3103/mcp");
    // Also in place of the entry for another port.
    assert.equal(await written(), serving.url);
  }
  assert.equal(await written(), "http://127.0.0.1:3003/mcp");
});

Deno.test("pml init --http shows the entry that it replaces before it asks", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  await runPml(ws, ["init", "--yes"]);
  const path = ws.file(".mcp.json");
  const before = await Deno.readTextFile(path);
  const shown = /- .*"stdio"[^]*\+ .*127\.0\.0\.1:3003[^]*Replace .*\[N\] no/;
  const dry = await runPml(ws, ["init", "--http", "--dry-run"]);
  assert.match(dry.stdout, /- .*"stdio"[^]*\+ .*127\.0\.0\.1:3003/);
  const no = await runPmlOnTerminal(ws, ["init", "--http"], { typed: [[shown, "n"]] });
  assert.equal(await Deno.readTextFile(path), before);
  // The earlier entry still starts PML.
  assert.match(no.stdout, /claude-code: start `claude`/);
  const yes = await runPmlOnTerminal(ws, ["init", "--http"], {
    typed: [[shown, "y"], [/run PML's tools unasked.*\[N\] no/, "n"]],
  });
  assert.equal(yes.code, 0, yes.stdout);
  assert.match(await Deno.readTextFile(path), /127\.0\.0\.1:3003/);
  const back = await runPmlOnTerminal(ws, ["init"], {
    typed: [
      [/- .*127\.0\.0\.1:3003[^]*\+ .*"stdio"[^]*Replace .*\[N\] no/, "y"],
      [/run PML's tools unasked.*\[N\] no/, "n"],
    ],
  });
  assert.equal(back.code, 0, back.stdout);
  assert.equal(await Deno.readTextFile(path), before);
});

Deno.test("pml init shows another server of its name without its secrets", async () => {
  const pml = {
    command: "other",
    args: ["--api-key", "hunter2-is-long", "--verbose"],
    env: { DOCS_TOKEN: KEYS.github, PASSWORD: "correct horse" },
  };
  const text = JSON.stringify({ mcpServers: { pml } });
  await using ws = await makeWorkspace({ files: { "package.json": "{}", ".mcp.json": text } });
  const { stdout } = await runPml(ws, ["init", "--yes"]);
  assert.match(stdout, /"command":"other".*--verbose/);
  for (const secret of ["hunter2", KEYS.github, "correct horse"]) {
    assert.ok(!stdout.includes(secret), secret);
  }
  assert.equal(await Deno.readTextFile(ws.file(".mcp.json")), text);
});

Deno.test("pml init makes Cline wait for longer than PML lets a call run", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  await runPml(ws, ["init", "--client", "cline", "--yes"]);
  const [file, ...at] = OWN.cline;
  const { pml } = await serversIn(join(homeOf(ws), file), at);
  const { timeout } = pml as { readonly timeout?: number };
  const [callMs] = LIMITS.callMs.values;
  assert.ok(Number(timeout) * 1_000 > callMs, `${timeout} seconds`);
});

Deno.test("pml init prints the next step for each client that it connected", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  const result = await runPml(ws, ["init", "--client", CLIENTS.join(","), "--yes"]);
  assert.equal(result.code, 0, result.stderr);
  for (const client of CLIENTS) assert.match(result.stderr, new RegExp(`^${client}: `, "m"));
  assert.match(result.stderr, /^claude-code: .* approve the server pml.*--allowedTools mcp__pml/m);
  const other = '{"mcpServers": {"pml": {"command": "./other"}}}';
  await Deno.writeTextFile(ws.file(".mcp.json"), other);
  const output = await runPml(ws, ["init", "--yes"]);
  assert.doesNotMatch(output.stderr, /^claude-code: start/m);
});

Deno.test("pml init creates Continue's file, keeps the content of an existing one, and --undo restores it", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  const path = join(homeOf(ws), ".continue/config.yaml");
  const set = ["init", "--client", "continue", "--yes"];
  assert.equal((await runPml(ws, set)).code, 0);
  const made = parseYaml(await Deno.readTextFile(path));
  assert.deepEqual([made.schema, made.mcpServers[0].name], ["v1", "pml"]);
  await runPml(ws, ["init", "--undo", "--client", "continue", "--yes"]);
  await assert.rejects(Deno.stat(path), Deno.errors.NotFound);
  const texts = [
    "schema: v1\nmcpServers: # none yet\n",
    "schema: v1 # mine\r\nmcpServers:\r\n- name: a\r\n  command: b # c\r\nrules: [x]\r\n",
    "schema: v1\nmcpServers: []\n",
    "schema: v1",
  ];
  for (const text of texts) {
    await writeFiles(dirname(path), { "config.yaml": text });
    const result = await runPml(ws, set);
    assert.equal(result.code, 0, result.stderr);
    const after = await Deno.readTextFile(path);
    assert.equal(parseYaml(after).mcpServers.at(-1).name, "pml", text);
    for (const word of text.match(/[a-z]+/g) ?? []) assert.ok(after.includes(word), word);
    assert.equal((await runPml(ws, set)).stdout.match(/has PML already/g)?.length, 1);
    await runPml(ws, ["init", "--undo", "--client", "continue", "--yes"]);
    assert.equal(await Deno.readTextFile(path), text);
  }
});
