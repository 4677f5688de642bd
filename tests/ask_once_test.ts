/**
 * `pml init --ask-once` has clients allow PML's tools, in the user's own files only, and nowhere that
 * another program could use the permission.
 *
 * @module
 */

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { parse as parseJsonc } from "jsonc-parser";
import { parse as parseToml } from "smol-toml";
import type { SetupStep } from "../src/cli/_client_setup.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace, type Workspace, writeFiles } from "./kit/workspace.ts";

const SETTINGS = ".claude/settings.local.json";
/** The members of PML's entry in the user's own file, by client. */
const OWN: Readonly<Record<string, readonly [file: string, members: Record<string, unknown>]>> = {
  codex: [".codex/config.toml", {
    default_tools_approval_mode: "approve",
    supports_parallel_tool_calls: true,
  }],
  gemini: [".gemini/settings.json", { trust: true }],
  qwen: [".qwen/settings.json", { trust: true }],
};

function project(files: Readonly<Record<string, string>> = {}): Promise<Workspace> {
  return makeWorkspace({ files: { "package.json": "{}", ...files } });
}

/** Runs `pml init` and returns its steps. */
async function init(ws: Workspace, ...args: readonly string[]): Promise<readonly SetupStep[]> {
  const ran = await runPml(ws, ["init", ...args, "--yes", "--json"]);
  assert.equal(ran.code, 0, ran.stderr);
  return JSON.parse(ran.stdout).steps;
}

async function entryIn(path: string): Promise<Record<string, unknown>> {
  const text = await Deno.readTextFile(path);
  const whole = JSON.parse(JSON.stringify(
    path.endsWith(".toml") ? parseToml(text) : parseJsonc(text),
  ));
  return (whole.mcpServers ?? whole.mcp_servers).pml;
}

async function assertNoFile(path: string): Promise<void> {
  await assert.rejects(Deno.stat(path), Deno.errors.NotFound);
}

Deno.test("pml init --ask-once adds PML's tools to the personal settings of Claude Code, and --undo restores them byte for byte", async () => {
  const before =
    '{\n  // mine\n  "permissions": {\n    "allow": ["Bash(ls)"], // few\n    "deny": ["Read(.env)"]\n  }\n}\n';
  await using ws = await project({ [SETTINGS]: before });
  const steps = await init(ws, "--ask-once");
  assert.deepEqual(steps.filter(({ path }) => path === ws.file(SETTINGS)).length, 1);
  const text = await Deno.readTextFile(ws.file(SETTINGS));
  assert.deepEqual(parseJsonc(text).permissions, {
    allow: ["Bash(ls)", "mcp__pml"],
    deny: ["Read(.env)"],
  });
  for (const comment of ["// mine", "// few"]) assert.ok(text.includes(comment), text);
  const again = await init(ws, "--ask-once");
  assert.ok(again.every(({ changed }) => !changed), JSON.stringify(again));
  assert.equal(await Deno.readTextFile(ws.file(SETTINGS)), text);
  const undone = await runPml(ws, ["init", "--undo", "--yes"]);
  assert.equal(undone.code, 0, undone.stderr);
  assert.equal(await Deno.readTextFile(ws.file(SETTINGS)), before);
  await assertNoFile(ws.file(".mcp.json"));
});

Deno.test("pml init without --ask-once changes no permission, and names the command", async () => {
  await using ws = await project();
  const ran = await runPml(ws, ["init", "--yes"]);
  assert.match(ran.stderr, /`pml init --ask-once`/);
  await assertNoFile(ws.file(".claude"));
  const dry = await runPml(ws, ["init", "--ask-once", "--dry-run"]);
  assert.match(dry.stdout, /\+ .*"mcp__pml"/);
  await assertNoFile(ws.file(".claude"));
  await init(ws, "--ask-once");
  assert.equal(((await Deno.stat(ws.file(SETTINGS))).mode ?? 0) & 0o777, 0o600);
  const after = await runPml(ws, ["init", "--yes"]);
  assert.doesNotMatch(after.stderr, /--ask-once|--allowedTools/);
  await runPml(ws, ["init", "--undo", "--yes"]);
  await assertNoFile(ws.file(".claude"));
});

Deno.test("pml init on a terminal offers it once: a no leaves the file, a yes writes it", async () => {
  await using ws = await project({ ".pml.json": '{"version": 1}' });
  const question = /mcp__pml.*unasked\?.*\[N\] no/s;
  const no = await runPmlOnTerminal(ws, ["init"], { typed: [[question, "n"]] });
  assert.equal(no.code, 0, no.stdout);
  await assertNoFile(ws.file(".claude"));
  // Later runs only name the command.
  const later = await runPmlOnTerminal(ws, ["init"]);
  assert.match(later.stdout, /--ask-once/);
  const yes = await runPmlOnTerminal(ws, ["init", "--ask-once"], { typed: [[question, "y"]] });
  assert.equal(yes.code, 0, yes.stdout);
  const { permissions } = JSON.parse(await Deno.readTextFile(ws.file(SETTINGS)));
  assert.deepEqual(permissions, { allow: ["mcp__pml"] });
});

Deno.test("pml init --user --ask-once adds the members to the entry of Codex, Gemini CLI and Qwen Code, and --undo removes them", async () => {
  await using ws = await project();
  const home = dirname(ws.home);
  const codex =
    '[mcp_servers.pml]\r\ncommand = "pml"\r\nargs = ["stdio"]\r\n\r\n[tui]\r\nx = 1\r\n';
  const gemini = '{ "mcpServers": { "pml": { "command": "pml", "args": ["stdio"] } } }';
  const texts = { ".codex/config.toml": codex, ".gemini/settings.json": gemini };
  await writeFiles(home, texts);
  const clients = Object.keys(OWN).join(",");
  const dry = await runPml(ws, ["init", "--client", clients, "--user", "--ask-once", "--dry-run"]);
  for (const [, members] of Object.values(OWN)) {
    for (const name of Object.keys(members)) assert.ok(dry.stdout.includes(name), dry.stdout);
  }
  for (const [file, text] of Object.entries(texts)) {
    assert.equal(await Deno.readTextFile(join(home, file)), text, file);
  }
  await init(ws, "--client", clients, "--user", "--ask-once");
  for (const [client, [file, members]] of Object.entries(OWN)) {
    const { command, args, required: _, ...rest } = await entryIn(join(home, file));
    assert.ok(String(command).endsWith("pml"), client);
    assert.deepEqual(args, ["stdio"], client);
    assert.deepEqual(rest, members, client);
  }
  const toml = await Deno.readTextFile(join(home, ".codex/config.toml"));
  assert.ok(toml.endsWith("\r\n\r\n[tui]\r\nx = 1\r\n"), toml);
  // An entry for `pml serve` takes the permission over.
  await init(ws, "--client", "gemini,codex", "--user", "--http");
  const over = await entryIn(join(home, ".gemini/settings.json"));
  assert.deepEqual([over.trust, over.command], [true, undefined]);
  const undone = await runPml(ws, ["init", "--undo", "--yes"]);
  assert.equal(undone.code, 0, undone.stderr);
  for (const [file, text] of Object.entries(texts)) {
    assert.equal(await Deno.readTextFile(join(home, file)), text, file);
  }
  await assertNoFile(join(home, ".qwen/settings.json"));
});

Deno.test("pml init --ask-once writes no permission into a file that a team shares", async () => {
  await using ws = await project();
  const steps = await init(ws, "--client", Object.keys(OWN).join(","), "--ask-once");
  const refused = steps.filter(({ message }) =>
    /--user --ask-once|cannot set this|a team shares it/.test(message)
  );
  assert.equal(refused.length, Object.keys(OWN).length);
  for (const [client, [file, members]] of Object.entries(OWN)) {
    const entry = await entryIn(ws.file(file));
    for (const name of Object.keys(members)) assert.equal(entry[name], undefined, client);
  }
});

Deno.test("pml init --ask-once changes nothing where PML's rules allow every call", async () => {
  const others = [{}, { ask: ["filesystem:remove_file"] }, { deny: ["git:*"] }];
  for (const permissions of others) {
    await using ws = await makeWorkspace({
      files: { "package.json": "{}" },
      pml: { version: 1, permissions: { allow: ["*"], ...permissions } },
    });
    const steps = await init(ws, "--ask-once");
    assert.ok(steps.some(({ message }) => message.includes("rules")), JSON.stringify(steps));
    await assertNoFile(ws.file(".claude"));
  }
  await using some = await makeWorkspace({
    pml: { version: 1, permissions: { allow: ["filesystem:*", "git:*"] } },
  });
  await init(some, "--ask-once");
  await Deno.stat(some.file(SETTINGS));
});

Deno.test("pml init --ask-once allows no shared entry that could start another program", async () => {
  const entries = [
    { command: "/tmp/elsewhere/pml", args: ["stdio"] },
    { command: "npx", args: ["-y", "@casys/pml", "stdio"] },
    { command: "pml", args: ["stdio"], env: { PATH: "./bin" } },
    { command: "pml", args: ["stdio"], cwd: "./bin" },
    { command: "./evil" },
  ];
  for (const entry of entries) {
    await using ws = await project({ ".mcp.json": JSON.stringify({ mcpServers: { pml: entry } }) });
    await init(ws, "--ask-once");
    await assertNoFile(ws.file(".claude"));
  }
});

Deno.test("pml init --ask-once keeps an answer that the user gave the client", async () => {
  const rules = [{ ask: ["mcp__pml__call"] }, { deny: ["mcp__pml"] }];
  for (const permissions of rules) {
    const text = JSON.stringify({ permissions });
    await using ws = await project({ [SETTINGS]: text });
    await init(ws, "--ask-once");
    assert.equal(await Deno.readTextFile(ws.file(SETTINGS)), text);
  }
  await using ws = await project();
  const path = join(dirname(ws.home), ".gemini/settings.json");
  const text = '{"mcpServers": {"pml": {"command": "pml", "args": ["stdio"], "trust": false}}}';
  await writeFiles(dirname(path), { "settings.json": text });
  await init(ws, "--client", "gemini", "--user", "--ask-once");
  assert.equal(await Deno.readTextFile(path), text);
});

Deno.test("pml init --ask-once writes no change that the user declined before", async () => {
  await using ws = await project({ ".pml.json": '{"version": 1}' });
  const path = join(dirname(ws.home), ".gemini/settings.json");
  const text = '{"mcpServers": {"pml": {"command": "pml", "args": ["stdio"]}}}';
  await writeFiles(dirname(path), { "settings.json": text });
  const args = ["init", "--client", "gemini", "--user", "--http", "--ask-once"];
  const answers = [[/Replace PML's entry.*\[N\] no/s, "n"], [/unasked\?.*\[N\] no/s, "y"]] as const;
  const { code, stdout } = await runPmlOnTerminal(ws, args, { typed: answers });
  assert.equal(code, 0, stdout);
  const entry = await entryIn(path);
  assert.deepEqual(entry, { command: "pml", args: ["stdio"], trust: true });
});

Deno.test("pml init --ask-once connects the client where its settings cannot be edited", async () => {
  const wrong = ["{", '{"permissions": []}', '{"permissions": {"allow": "all"}}', "\ufeff[1]"];
  for (const text of wrong) {
    await using ws = await project({ [SETTINGS]: text });
    const steps = await init(ws, "--ask-once");
    assert.ok(steps.some(({ path, changed }) => changed && path === ws.file(".mcp.json")));
    assert.equal(await Deno.readTextFile(ws.file(SETTINGS)), text);
  }
  await using odd = await project({ ".claude": "a file" });
  const steps = await init(odd, "--ask-once");
  assert.ok(steps.some(({ path, changed }) => changed && path === odd.file(".mcp.json")));
  await using ws = await project();
  await Deno.symlink(dirname(ws.outside), ws.file(".claude"));
  await init(ws, "--ask-once");
  await ws.assertCanaries();
});

Deno.test("pml init --ask-once reports a client that has no such setting", async () => {
  await using ws = await project();
  const steps = await init(ws, "--client", "zed,cursor", "--ask-once");
  assert.equal(steps.filter(({ message }) => message.includes("cannot set this")).length, 2);
});
