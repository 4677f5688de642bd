import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { parse as parseYaml } from "yaml";
import { assertError } from "./cli_greeter.ts";
import { claudeCode, HOME_FILES, KEYS } from "./client_files.ts";
import { assertGolden } from "./kit/golden.ts";
import { repoFile } from "./kit/pml_command.ts";
import { type CommandResult, runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace, type Workspace, writeFiles } from "./kit/workspace.ts";

async function house(
  options: Parameters<typeof makeWorkspace>[0] = { files: { "package.json": "{}" } },
): Promise<Workspace> {
  const ws = await makeWorkspace(options);
  await writeFiles(dirname(ws.home), { ...HOME_FILES, ".claude.json": claudeCode(ws) });
  return ws;
}

async function plan(ws: Workspace, ...args: string[]) {
  const result = await runPml(ws, ["import", "--json", ...args]);
  assertNoKey(result);
  assert.equal(result.code, 0, result.stderr);
  const { take, skip, path } = JSON.parse(result.stdout);
  type Each = { name: string; definition: unknown; why: string };
  return {
    path,
    take: Object.fromEntries(take.map((each: Each) => [each.name, each.definition])),
    skip: Object.fromEntries(skip.map((each: Each) => [each.name, each.why])),
    json: JSON.parse(result.stdout),
  };
}

function assertNoKey({ stdout, stderr }: CommandResult): void {
  assertClean(stdout + stderr, "what was said");
}

function assertClean(text: string, what: string): void {
  for (const [name, key] of Object.entries(KEYS)) {
    assert.ok(!text.includes(key), `${what} holds the key ${name}`);
  }
}

/** Asserts that no file that PML may have written contains a key. */
async function assertNoFileHoldsKey(ws: Workspace, folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    for await (const { name, isFile, isDirectory } of Deno.readDir(folder)) {
      const path = join(folder, name);
      if (isDirectory) await assertNoFileHoldsKey(ws, [path]);
      if (isFile) assertClean(new TextDecoder("latin1").decode(await Deno.readFile(path)), path);
    }
  }
}

function take(ws: Workspace, ...args: string[]): Promise<CommandResult> {
  return runPmlOnTerminal(ws, ["import", ...args], {
    typed: [[/Import .*\?.*\[y\]/s, "yes"]],
    ifAsked: [/(?:Store .* in PML, |Start th.* now, ).*\?.*\[N\] no/, "n"],
  });
}

Deno.test("pml import reads Claude's two formats, nearest first", async () => {
  await using ws = await house();
  const code = await plan(ws, "claude-code");
  assert.deepEqual(code.take, {
    everywhere: { command: "npx", args: ["-y", "everywhere"] },
    twice: { command: "of-project" },
  });
  assert.match(code.skip.twice, /already, with another definition/);
  assert.equal(code.path, join(ws.home, "config.yaml"));

  const desktop = await plan(ws, "claude-desktop");
  assert.deepEqual(desktop.take, {
    GitHub: {
      command: "docker",
      args: ["run", "-e", "GITHUB_TOKEN=${GITHUB_TOKEN}", "image"],
      env: { GITHUB_TOKEN: "${GITHUB_TOKEN}", LANG: "C" },
    },
    "Second GitHub": {
      command: "x",
      env: { GITHUB_TOKEN: "${SECOND_GITHUB_GITHUB_TOKEN}" },
    },
  });
  const names = ["***", "filesystem", "github", "mine", "pml", "socket"];
  assert.deepEqual(Object.keys(desktop.skip).sort(), names);
  const reasons = names.map((name) => `${name}: ${desktop.skip[name]}`);
  assertGolden("import/servers that are skipped", reasons.join("\n"));
});

Deno.test("pml import reads Cursor's file, with comments and keys of every kind", async () => {
  await using ws = await house();
  const cursor = await plan(ws, "cursor");
  assert.deepEqual(cursor.take, {
    db: {
      command: "npx",
      args: [
        "-y",
        "pg",
        "postgresql://me:${DB_SECRET}@db.example/x",
        "--password",
        "${DB_PASSWORD}",
      ],
      env: { A: "${SOME_VAR}", TRACE: "true", NOTE: "${NOTE}" },
      cwd: "${workspaceFolder}",
    },
    remote: {
      url: "https://mcp.example.com/sse?api_key=${REMOTE_KEY}",
      headers: { Authorization: "Bearer ${REMOTE_TOKEN}", "X-API-Key": "${REMOTE_API_KEY}" },
    },
  });
});

Deno.test("pml import reads VS Code's inputs and variables", async () => {
  await using ws = await house();
  const vscode = await plan(ws, "vscode");
  assert.deepEqual(vscode.take, {
    perplexity: {
      command: "npx",
      args: ["-y", "ppx", "--root=${workspaceFolder}/src"],
      env: { PERPLEXITY_API_KEY: "${PERPLEXITY_KEY}" },
      envFile: "${workspaceFolder}/.env",
    },
  });
  assert.deepEqual(vscode.json.take[0].left, []);
  assert.match(vscode.skip.strange, /\bcommand\b/);
});

Deno.test("pml import reads Codex's TOML", async () => {
  await using ws = await house();
  const codex = await plan(ws, "codex");
  assert.deepEqual(codex.take, {
    linear: {
      url: "https://mcp.linear.example/mcp",
      headers: { "X-Session": "${LINEAR_SESSION}", Authorization: "Bearer ${LINEAR_TOKEN}" },
    },
    ctx: {
      command: "npx",
      args: ["-y", "ctx"],
      env: { CTX_REGION: "${CTX_REGION}" },
      tools: ["resolve"],
    },
  });
  assert.deepEqual(codex.skip, { off: "it is disabled" });
  const [left] = codex.json.take.flatMap((each: { left: unknown[] }) => each.left);
  assert.equal(left.key, "startup_timeout_sec");
  assert.match(left.why, /limits\.start_ms/);
});

Deno.test("pml import reads Windsurf's file", async () => {
  await using ws = await house();
  const windsurf = await plan(ws, "windsurf");
  assert.deepEqual(windsurf.take, {
    surf: { url: "https://surf.example/mcp", headers: { A: "b" } },
  });
  assert.deepEqual(windsurf.skip, { gone: "it is disabled" });
});

Deno.test("pml import reads Gemini's settings", async () => {
  await using ws = await house();
  const gemini = await plan(ws, "gemini");
  assert.deepEqual(gemini.take, {
    gem: { url: "https://gem.example/mcp", headers: { "X-Token": "${GEM_TOKEN}" } },
    loose: { command: "x", env: { KEY: "${LOOSE_KEY}" } },
  });
  assert.deepEqual(gemini.skip, { quiet: "it is disabled" });
});

Deno.test("pml import without arguments lists the servers of clients, and imports nothing", async () => {
  await using ws = await house({
    files: { ".mcp.json": '{"mcpServers":{"here":{"command":"x"}}}' },
  });
  const result = await runPml(ws, ["import"]);
  assertNoKey(result);
  assert.equal(result.code, 0, result.stderr);
  for (const name of ["everywhere", "here", "GitHub", "perplexity", "linear", "surf", "gem"]) {
    assert.match(result.stdout, new RegExp(`^  take "${name}"`, "m"));
  }
  assert.doesNotMatch(result.stdout, /foreign/);
  assert.match(result.stdout, /take "GitHub" as "github": runs the command \["docker"/);
  assert.match(
    result.stdout,
    /GITHUB_TOKEN, .* in .*claude_desktop_config\.json, mcpServers\.GitHub\.args\[2\]/,
  );
  await assert.rejects(Deno.stat(join(ws.home, "config.yaml")), Deno.errors.NotFound);
});

Deno.test("pml import writes the servers into the user's configuration once, and PML serves them", async () => {
  await using ws = await house();
  const path = join(ws.home, "config.yaml");
  const before = "# mine\nlimits:\n    call_ms: 1000   # short\n";
  await Deno.writeTextFile(path, before);
  for (const client of ["claude-desktop", "cursor", "codex", "vscode", "gemini", "windsurf"]) {
    const result = await take(ws, client);
    assert.equal(result.code, 0, result.stdout);
    assertNoKey(result);
  }
  const after = await Deno.readTextFile(path);
  assert.match(after, /^# mine\nlimits:\n +call_ms: 1000 # short\n/);
  for (const client of ["claude-desktop", "cursor", "codex", "vscode", "gemini", "windsurf"]) {
    const again = await runPml(ws, ["import", client]);
    assert.match(again.stderr, /Nothing was changed/);
    assert.match(again.stdout, /the same definition/);
    assert.equal(again.code, 0);
  }
  assert.equal(await Deno.readTextFile(path), after);
  const tools = JSON.parse((await runPml(ws, ["tools", "--json"])).stdout);
  assert.ok(JSON.stringify(tools).includes('"second-github"'), JSON.stringify(tools));
  // The clients' own files next to them contain keys, as before.
  await assertNoFileHoldsKey(ws, [ws.home, ws.path]);
  const mode = (await Deno.stat(`${path}.backup`)).mode ?? 0;
  assert.equal(mode & 0o777, 0o600);
  assert.equal(await Deno.readTextFile(`${path}.backup`), before);
});

Deno.test("pml import recognizes keys by the value of their variable, and does not use that name for another value", async () => {
  await using ws = await house();
  const result = await runPml(ws, ["import", "--json", "claude-desktop"], {
    env: { GITHUB_TOKEN: KEYS.other },
  });
  assertNoKey(result);
  const [first, second] = JSON.parse(result.stdout).take;
  assert.deepEqual(first.variables.map(({ name }: { name: string }) => name), [
    "GITHUB_GITHUB_TOKEN",
  ]);
  const [{ name, isSet }] = second.variables;
  assert.deepEqual([name, isSet], ["GITHUB_TOKEN", true]);
});

Deno.test("pml import writes nothing without a terminal, after a no, or with --dry-run", async () => {
  await using ws = await house();
  assertError(await runPml(ws, ["import", "cursor"]), { code: "APPROVAL_REQUIRED", exit: 1 });
  const dry = await runPml(ws, ["import", "--dry-run", "cursor"]);
  assert.equal(dry.code, 0, dry.stderr);
  assert.match(dry.stdout, /take "db"/);
  const no = await runPmlOnTerminal(ws, ["import", "cursor"], {
    typed: [[/Import .*\[N\] no/, "n"]],
  });
  assert.equal(no.code, 1);
  await assert.rejects(Deno.stat(join(ws.home, "config.yaml")), Deno.errors.NotFound);
});

Deno.test("pml import asks about the rules of earlier servers of the same names", async () => {
  await using ws = await house();
  const config = join(ws.home, "config.yaml");
  await Deno.writeTextFile(config, "permissions: { allow: [db:query, git:log] }\n");
  const { code, stdout } = await runPmlOnTerminal(ws, ["import", "cursor"], {
    typed: [[/Import .*\[N\] no/, "y"], [/- .*db:query[^]*rules for.*db/, "y"]],
    ifAsked: [/(?:Store .* in PML, |Start th.* now, ).*\?.*\[N\] no/, "n"],
  });
  assert.equal(code, 0, stdout);
  const text = await Deno.readTextFile(config);
  assert.doesNotMatch(text, /db:query/);
  assert.match(text, /git:log[^]* db:/);
  const undone = await runPmlOnTerminal(ws, ["import", "--undo"], {
    typed: [[/come back:[^]*allow db:query[^]*Continue\?/, "y"], [/Remove these rules/, "n"]],
  });
  assert.equal(undone.code, 0, undone.stdout);
  assert.deepEqual(parseYaml(await Deno.readTextFile(config)).permissions.allow, [
    "git:log",
    "db:query",
  ]);
});

Deno.test("pml import reports the line of an error in a file, and imports the servers of the others", async () => {
  await using ws = await house({
    files: {
      ".mcp.json": `{\n  // a comment\n  "mcpServers": {"k": ${KEYS.github}}\n}`,
      ".codex/config.toml": `a = 1\nkey = ${KEYS.github}\n`,
      "linked.json": "{}",
    },
  });
  const code = await runPml(ws, ["import", "--dry-run", "claude-code"]);
  assertNoKey(code);
  assert.equal(code.code, 1);
  assert.match(code.stdout, /FAIL Cannot read ".*\.mcp\.json:3:\d+": /);
  assert.match(code.stdout, /take "everywhere"/);
  const codex = await runPml(ws, ["import", "--dry-run", "codex"]);
  assertNoKey(codex);
  assert.match(codex.stdout, /FAIL Cannot read ".*config\.toml:2:\d+": it is not TOML/);
  assert.match(codex.stdout, /take "linear"/);
});

Deno.test("pml import reads no client file that is a link, or is outside through one", async () => {
  const servers = '{"mcpServers": {"linked": {"command": "x"}}}';
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  await writeFiles(ws.root, { "away/mcp.json": servers });
  await Deno.symlink(join(ws.root, "away", "mcp.json"), ws.file(".mcp.json"));
  await Deno.symlink(join(ws.root, "away"), ws.file(".cursor"));
  for (
    const [client, why] of [["claude-code", /it is a link/], [
      "cursor",
      /it lies elsewhere/,
    ]] as const
  ) {
    const result = await runPml(ws, ["import", "--dry-run", client]);
    assert.equal(result.code, 1);
    assert.match(result.stdout, why);
    assert.doesNotMatch(result.stdout, /take/);
  }
});

Deno.test("pml import --workspace keeps the trust of a trusted file, and trusts no other file", async () => {
  await using ws = await house();
  const path = ws.file(".pml.json");
  const isTrusted = async () => JSON.parse((await runPml(ws, ["trust", "--json"])).stdout).trusted;
  const result = await take(ws, "--workspace", "windsurf");
  assert.equal(result.code, 0, result.stdout);
  assert.equal(await isTrusted(), true);
  // The state after a process was killed while it wrote the file.
  await Deno.writeTextFile(`${path}.0123456789abcdef.pml-tmp`, "half");
  const second = await take(ws, "--workspace", "codex");
  assert.equal(second.code, 0, second.stdout);
  assert.equal(await isTrusted(), true);
  const undo = (screen: RegExp) =>
    runPmlOnTerminal(ws, ["import", "--undo", "--workspace"], { typed: [[screen, "yes"]] });
  assert.equal((await undo(/restored as it was/)).code, 0);
  assert.equal(await isTrusted(), true);
  assert.deepEqual(Object.keys(JSON.parse(await Deno.readTextFile(path)).mcpServers), ["surf"]);
  assert.equal((await undo(/will be removed/)).code, 0);
  const left = (await Array.fromAsync(Deno.readDir(ws.path))).map(({ name }) => name);
  assert.deepEqual(left, ["package.json"]);
  await Deno.writeTextFile(path, '{"version": 1}');
  const into = await take(ws, "--workspace", "windsurf");
  assert.match(into.stdout, /it is not trusted/);
  assert.equal(await isTrusted(), false);
});

Deno.test("pml import --undo refuses a file, or a copy of it, that was changed since", async () => {
  await using ws = await house({ files: {}, pml: '{"version": 1}' });
  const path = ws.file(".pml.json");
  assert.equal((await take(ws, "--workspace", "windsurf")).code, 0);
  const after = await Deno.readTextFile(path);
  const undo = () => runPmlOnTerminal(ws, ["import", "--undo", "--workspace"]);
  await Deno.writeTextFile(path, `${after} `);
  assert.match((await undo()).stdout, /changed after the import/);
  await Deno.writeTextFile(path, after);
  await Deno.writeTextFile(`${path}.backup`, '{"version": 1, "permissions": {"allow": ["*"]}}');
  assert.match((await undo()).stdout, /not the file/);
  assert.equal(await Deno.readTextFile(path), after);
  const never = await runPml(ws, ["import", "--undo"]);
  assertError(never, { code: "USAGE", exit: 2 });
});

Deno.test("an imported server starts with the variables that its arguments name", async () => {
  const script = repoFile("tests/kit/evil_server.ts");
  const args = ["run", "-A", "--no-config", "--quiet", script, "good", "${env:LEDGER}"];
  const servers = { mcpServers: { good: { command: Deno.execPath(), args } } };
  await using ws = await makeWorkspace({ files: { "some.json": JSON.stringify(servers) } });
  await Deno.writeTextFile(join(ws.home, "config.yaml"), "permissions: {allow: ['good:*']}\n");
  const taken = await runPmlOnTerminal(ws, ["import", "some.json"], {
    typed: [
      [/Import .*\?.*\[y\]/s, "yes"],
      [/rules for .* good.*\?.*\[N\] no/, "n"],
      [/Start th.* now, .*\?.*\[N\] no/, "n"],
    ],
  });
  assert.equal(taken.code, 0, taken.stdout);
  const unset = await runPml(ws, ["call", "good:echo"]);
  assertError(unset, { code: "KEY_MISSING", exit: 1 });
  assert.match(unset.stderr, /it requires LEDGER/);
  const LEDGER = ws.file("by-variable.ledger");
  const called = await runPml(ws, ["call", "good:echo", "a:=1"], { env: { LEDGER } });
  assert.equal(called.code, 0, called.stderr);
  assert.match(await Deno.readTextFile(LEDGER), /start/);
});

Deno.test("pml import offers to store the keys of the client's file, and shows none of them", async () => {
  await using ws = await house();
  const result = await runPmlOnTerminal(ws, ["import", "cursor"], {
    typed: [
      [/Import .*\?.*\[N\] no/s, "y"],
      [/Store [A-Z_, ]+ in PML, .*\? \[y\] yes {2}\[N\] no/, "y"],
    ],
    ifAsked: [/Start th.* now, /, "n"],
  });
  assert.equal(result.code, 0, result.stdout);
  assertNoKey(result);
  const kept = await Deno.readTextFile(join(ws.home, "keys.env"));
  assert.ok(Object.values(KEYS).some((key) => kept.includes(key)), "it keeps what stood there");
  assertClean(await Deno.readTextFile(join(ws.home, "config.yaml")), "config.yaml");
  const { keys } = JSON.parse((await runPml(ws, ["key", "list", "--json"])).stdout);
  const of = (from: string | undefined) =>
    keys.filter((key: { from?: string; by: readonly string[] }) =>
      key.from === from && !key.by.includes("cloud tools")
    ).map(({ name }: { name: string }) => name);
  assert.ok(of("the key file").length > 0);
  // The user must set keys in the middle of a text, and keys without a known value.
  const names = [...result.stdout.matchAll(/^Run `pml key set (\w+)`/gm)].map(([, name]) => name);
  assert.deepEqual(names.sort(), of(undefined).sort());
});

Deno.test("pml import writes nothing if the user stops at a question, and offers keys again that are not stored", async () => {
  const server = { command: "gh", env: { GH_TOKEN: KEYS.github } };
  const files = {
    "mcp.json": JSON.stringify({ mcpServers: { gh: server } }),
    "package.json": "{}",
  };
  await using ws = await makeWorkspace({ files });
  const isThere = (path: string) => Deno.stat(join(ws.home, path)).then(() => true, () => false);
  for (const key of ["\x03", "\x04"]) {
    const stopped = await runPmlOnTerminal(ws, ["import", "mcp.json"], {
      typed: [[/Import .*\[N\] no/, "y"], [/Store GH_TOKEN/, key]],
    });
    assert.equal(stopped.code, key === "\x03" ? 130 : 1, stopped.stdout);
    assert.match(stopped.stdout, /CANCELLED/);
    assert.doesNotMatch(stopped.stdout, /Start th/);
    assert.ok(!await isThere("config.yaml"));
  }
  await runPmlOnTerminal(ws, ["import", "mcp.json"], {
    typed: [[/Import .*\[N\] no/, "y"], [/Store GH_TOKEN/, "n"], [/Start th/, "n"]],
  });
  const { stderr } = await runPml(ws, ["import", "mcp.json"]);
  assert.match(stderr, /GH_TOKEN/);
  const again = await runPmlOnTerminal(ws, ["import", "mcp.json"], {
    typed: [[/Store GH_TOKEN/, "y"]],
  });
  assert.equal(again.code, 0, again.stdout);
  assertNoKey(again);
  assert.match((await runPml(ws, ["key", "list"])).stdout, /GH_TOKEN/);
  assert.doesNotMatch((await runPml(ws, ["import", "mcp.json"])).stderr, /GH_TOKEN/);
});

Deno.test("pml import that is stopped after its change names the change", async () => {
  await using ws = await makeWorkspace({
    files: { "mcp.json": '{ "mcpServers": { "one": { "command": "first" } } }' },
  });
  const stopped = await runPmlOnTerminal(ws, ["import", "mcp.json"], {
    typed: [[/Import .*\[N\] no/, "y"], [/Start th/, "\x03"]],
  });
  assert.equal(stopped.code, 130);
  assert.match(stopped.stdout, /CANCELLED.*config\.yaml: created.*pml import --undo/s);
});

Deno.test("pml import offers to leave out one of two servers that do the same", async () => {
  const files = { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "."] };
  const other = { command: "node", args: ["other.mjs"] };
  const content = JSON.stringify({ mcpServers: { files, other } });
  const answers: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ["b", ["files", "other"], []],
    ["p", ["other"], []],
    ["i", ["files", "other"], ["filesystem:*"]],
  ];
  for (const [key, names, deny] of answers) {
    await using ws = await makeWorkspace({ files: { "clients.json": content } });
    const shown = JSON.parse((await runPml(ws, ["import", "clients.json", "--json"])).stdout);
    const doubles = shown.take.map((one: { same_as?: string }) => one.same_as ?? null);
    assert.deepEqual(doubles, ["filesystem", null]);
    const result = await runPmlOnTerminal(ws, ["import", "clients.json"], {
      typed: [
        [/Import these 2 servers into/, "y"],
        [/Which one do you want\?.*\[i\]/, key],
        [/Start .* now/, "n"],
      ],
    });
    assert.equal(result.code, 0, result.stdout);
    const config = parseYaml(await Deno.readTextFile(join(ws.home, "config.yaml")));
    assert.deepEqual(Object.keys(config.mcpServers), names);
    assert.deepEqual(config.permissions?.deny ?? [], deny);
    const { verdict } = JSON.parse(
      (await runPml(ws, ["why", "filesystem:read_file", "--json"])).stdout,
    );
    assert.equal(verdict === "denied", key === "i");
  }
});

Deno.test("pml import shows the time limit and the tools that it takes from a client", async () => {
  await using ws = await makeWorkspace();
  const toml = [
    "[mcp_servers.memo]",
    'command = "memo"',
    "tool_timeout_sec = 2",
    'disabled_tools = ["fail"]',
    "[mcp_servers.few]",
    'command = "few"',
    'enabled_tools = ["get"]',
  ];
  await writeFiles(dirname(ws.home), { ".codex/config.toml": toml.join("\n") });
  const { stdout } = await runPml(ws, ["import", "codex", "--dry-run"]);
  assertGolden("import/settings of a client", stdout.replaceAll(dirname(ws.home), "<HOME>"));
});
