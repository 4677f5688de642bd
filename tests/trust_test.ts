/**
 * Trust in files at a terminal and its revocation, the answers that a waiting call can get, and their
 * records in the journal.
 *
 * @module
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, eventsOf, textOf } from "./attacks/oracles.ts";
import { assertGolden } from "./kit/golden.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml, runPmlOnTerminal, type TerminalInput } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const CRM = { command: "node", args: ["crm.mjs"] };
const FILES = { "crm.mjs": tinyServer('"fine"'), "good.txt": "good\n" };
const TRUST: TerminalInput = ["to trust exactly this", "trust"];

function makeScene(more: Readonly<Record<string, unknown>> = {}): Promise<Workspace> {
  const permissions = { allow: ["crm:*", "filesystem:read_file"] };
  const pml = { version: 1, permissions, mcpServers: { crm: CRM }, ...more };
  return makeWorkspace({ files: FILES, pml, trusted: false });
}

async function trustIt(ws: Workspace, cwd = ws.path): Promise<string> {
  const result = await runPmlOnTerminal(ws, ["trust"], { typed: [TRUST], cwd });
  assert.equal(result.code, 0, result.stdout);
  return result.stdout;
}

async function isTrusted(ws: Workspace, cwd = ws.path): Promise<boolean> {
  return JSON.parse((await runPml(ws, ["trust", "--json"], { cwd })).stdout).trusted;
}

Deno.test("pml approve offers Always, which also applies to the client that waits", async () => {
  await using ws = await makeScene();
  await trustIt(ws);
  await using pml = new RawStdio(ws, { era: "2026-07-28" });
  await pml.open();
  const write = (content: string) =>
    pml.callTool("filesystem__write_file", { path: "new.txt", content });
  assert.equal(codeOf(await write("one")), "APPROVAL_REQUIRED");
  const file = ws.file(".pml.json");
  const approved = await runPmlOnTerminal(ws, ["approve"], {
    typed: [[/Approve exactly this call\? \[y\] once {2}\[a\] always {2}\[N\] no/, "a"]],
  });
  assert.equal(approved.code, 0, approved.stdout);
  assert.ok(
    approved.stdout.includes(`"always" writes the rule filesystem:write_file in ${file}`),
    approved.stdout,
  );
  assert.equal(textOf(await write("one")).includes("APPROVAL"), false);
  await until(async () => codeOf(await write("another")) === undefined);
  assert.equal(await readFile(ws.file("new.txt"), "utf8"), "another");
  assert.deepEqual(JSON.parse(await readFile(file, "utf8")).permissions.allow, [
    "filesystem:write_file",
    "crm:*",
    "filesystem:read_file",
  ]);
  assert.ok(await isTrusted(ws), "what PML wrote stays trusted");
  assert.equal((await pml.close()).code, 0);
  assert.ok((await eventsOf(ws)).includes("always"));
});

Deno.test("pml approve names that a yes also trusts the workspace file", async () => {
  await using ws = await makeScene();
  const call = () => runPml(ws, ["call", "crm:tell"]);
  assert.match((await call()).stderr, /WORKSPACE_UNTRUSTED/);
  const { stdout } = await runPmlOnTerminal(ws, ["approve"], {
    typed: [[/y\] trust the file/, "y"]],
  });
  assert.match(stdout, /trusts the file/);
  assert.equal(await isTrusted(ws), false);
  assert.equal((await call()).code, 0);
  assert.ok(await isTrusted(ws));
});

Deno.test("pml approve offers no Always where another workspace or other rules apply", async () => {
  await using ws = await makeScene();
  await trustIt(ws);
  await runPml(ws, ["call", "filesystem:write_file", "path=new.txt", "content=hi"]);
  const other = join(ws.root, "other");
  await mkdir(other);
  const [elsewhere, later] = [{ cwd: other }, {}];
  const left = async (options: { readonly cwd?: string }) => {
    const result = await runPmlOnTerminal(ws, ["approve"], {
      ...options,
      typed: [[/this call\?.*\[N\] no/, "\x03"]],
    });
    assert.doesNotMatch(result.stdout, /always/);
    assert.equal(result.code, 130, result.stdout);
  };
  await left(elsewhere);
  await runPmlOnTerminal(ws, ["ask", "filesystem:write_file"], {
    typed: [["exactly this", "write"]],
  });
  await left(later);
});

Deno.test("a call approved before its workspace lost its trust does not run, and pml approve asks again", async () => {
  await using ws = await makeScene();
  await trustIt(ws);
  const write = ["call", "filesystem:write_file", "path=new.txt", "content=hi"];
  const approve = async (...more: readonly TerminalInput[]) => {
    const typed: TerminalInput[] = [[/this call\?.*\[N\] no/, "y"], ...more];
    return (await runPmlOnTerminal(ws, ["approve"], { typed })).stdout;
  };
  await runPml(ws, write);
  assert.match(await approve(), /Approved once\./);
  await runPml(ws, ["call", "filesystem:write_file", "path=other.txt", "content=hi"]);
  assert.equal((await runPml(ws, ["trust", "--revoke"])).code, 0);
  const text = await approve([/Not approved.*this call\?.*\[N\] no/s, "n"]);
  assert.doesNotMatch(text, /Approved once/);
  for (const path of ["new.txt", "other.txt"]) {
    const result = await runPml(ws, [
      "call",
      "filesystem:write_file",
      `path=${path}`,
      "content=hi",
    ]);
    assert.match(result.stderr, /APPROVAL_REQUIRED/, path);
  }
});

Deno.test("pml approve approves nothing if the workspace lost its trust while the user answered, also in another workspace", async () => {
  await using ws = await makeScene();
  const other = join(ws.root, "other");
  await mkdir(other);
  await writeFile(join(other, "package.json"), "{}");
  const file = ws.file(".pml.json");
  const text = await readFile(file, "utf8");
  const losses = [
    async (_: number) => assert.equal((await runPml(ws, ["trust", "--revoke"])).code, 0),
    (at: number) => writeFile(file, text + "\n".repeat(2 * at + 1)),
  ];
  const cases = [ws.path, other].flatMap((cwd) => losses.map((loss) => ({ cwd, loss })));
  for (const [at, { cwd, loss }] of cases.entries()) {
    await writeFile(file, text + "\n".repeat(2 * at));
    await trustIt(ws);
    await runPml(ws, ["call", "filesystem:write_file", `path=${at}.txt`, "content=hi"]);
    const { stdout } = await runPmlOnTerminal(ws, ["approve"], {
      cwd,
      typed: [[/this call\?.*\[N\] no/, () => loss(at)], ["", "y"], [
        /Not approved.*\[N\] no/s,
        "n",
      ]],
    });
    assert.doesNotMatch(stdout, /Approved once/);
  }
});

Deno.test("pml trust shows additions and removals since the last yes", async () => {
  await using ws = await makeScene();
  assert.doesNotMatch(await trustIt(ws), /Since you trusted/);
  const other = { ...CRM, args: ["other.mjs"] };
  const permissions = { allow: ["crm:*"] };
  const pml = { version: 1, permissions, mcpServers: { crm: CRM, other } };
  await writeFile(ws.file(".pml.json"), JSON.stringify(pml));
  assert.equal(await isTrusted(ws), false);
  const text = await trustIt(ws);
  const [, news = "", same = ""] =
    /Since you trusted .*\(\+ new, - gone\):([^]*)You trusted these before:([^]*)/
      .exec(text) ?? [];
  assert.match(news, /^\+ server "other": runs the command .*other\.mjs/m);
  assert.match(news, /^- runs unasked: filesystem:read_file/m);
  assert.match(same, /^server "crm": runs the command .*crm\.mjs/m);
  assert.match(same, /^runs unasked: crm:\*/m);
  // The first yes showed everything, the second one the differences, and both are in the journal.
  assert.equal((await eventsOf(ws)).filter((event) => event === "trusted").length, 2);
});

Deno.test("pml trust --list and --revoke show and revoke trust, also for a running PML", async () => {
  await using ws = await makeScene();
  const none = await runPml(ws, ["trust", "--list"]);
  assert.deepEqual([none.code, none.stdout], [0, ""]);
  assertGolden("trust/no file is trusted", none.stderr);
  await trustIt(ws);
  await using pml = new RawStdio(ws);
  await pml.open();
  assert.equal(textOf(await pml.callTool("crm__tell", {})), '"fine"');
  const listed = await runPml(ws, ["trust", "--list"]);
  assert.equal(listed.stdout, `trusted        ${ws.file(".pml.json")}\n`);
  const revoked = await runPml(ws, ["trust", "--revoke"]);
  assert.equal(revoked.stdout, `No longer trusted: ${ws.file(".pml.json")}\n`, revoked.stderr);
  await until(async () => codeOf(await pml.callTool("crm__tell", {})) === "WORKSPACE_UNTRUSTED");
  assert.equal(codeOf(await pml.callTool("filesystem__list_directory", { path: "." })), undefined);
  const again = await runPml(ws, ["trust", "--revoke"]);
  assert.equal(again.code, 2);
  assert.match(again.stderr, /revoke the trust .*: .*not trusted/);
  assert.equal((await pml.close()).code, 0);
  assert.deepEqual(
    (await eventsOf(ws)).filter((event) => event.startsWith("trust")),
    ["trusted", "trust revoked"],
  );
});

Deno.test("pml trust --revoke takes a file of another folder, and --list shows its state", async () => {
  await using ws = await makeScene();
  await trustIt(ws);
  const file = ws.file(".pml.json");
  await writeFile(file, JSON.stringify({ version: 1 }));
  const shown = JSON.parse((await runPml(ws, ["trust", "--list", "--json"])).stdout);
  assert.deepEqual(shown, { files: [{ path: file, state: "changed since" }] });
  const other = join(ws.root, "other");
  await mkdir(other);
  const result = await runPml(ws, ["trust", "--revoke", file], { cwd: other });
  assert.equal(result.code, 0, result.stderr);
  assert.deepEqual(JSON.parse((await runPml(ws, ["trust", "--list", "--json"])).stdout).files, []);
});

Deno.test("pml, pml doctor and pml trust --list agree on a trusted file whose code has changed", async () => {
  const code = (text: string) =>
    `export const __meta__ = { name: "words", tools: { say: { inputSchema: {} } } };
export const say = () => ${JSON.stringify(text)};\n`;
  await using ws = await makeWorkspace({
    files: { "words.ts": code("one") },
    pml: { version: 1, private_mcps: { words: { type: "deno", path: "./words.ts" } } },
    trusted: false,
  });
  await trustIt(ws);
  await writeFile(ws.file("words.ts"), code("two"));
  for (const args of [[], ["doctor"], ["trust", "--list"]]) {
    const { stdout } = await runPml(ws, args);
    assert.ok(stdout.includes("code of words changed"), stdout);
  }
});

/** Returns the code of a module with these tools, and with a function for each. */
function wordsCode(tools: Readonly<Record<string, object>>, text = ""): string {
  const functions = Object.keys(tools).map((name) => `export const ${name} = () => "${text}";`);
  return `export const __meta__ = ${JSON.stringify({ name: "words", tools })};\n` +
    functions.join("\n");
}

Deno.test("pml lock --check passes directly after pml trust of changed code", async () => {
  const say = { inputSchema: {} };
  await using ws = await makeWorkspace({
    files: { "words.ts": wordsCode({ say }) },
    pml: {
      version: 1,
      private_mcps: { words: { type: "deno", path: "./words.ts" } },
      permissions: { allow: ["words:say"] },
    },
    trusted: false,
  });
  const lock = () => readFile(ws.file("pml.lock"), "utf8");
  await trustIt(ws);
  assert.equal((await runPml(ws, ["call", "words:say"])).code, 0);
  const first = await lock();
  await writeFile(ws.file("words.ts"), wordsCode({ say }, "two"));
  assert.equal((await runPml(ws, ["lock", "--check"])).code, 1);
  // Without trust in the new code, its pin stays.
  await runPmlOnTerminal(ws, ["trust"], { typed: [[/Type "trust".*: $/, "no"]] });
  assert.equal(await lock(), first);
  const shown = await trustIt(ws);
  assert.ok(shown.includes(`${ws.file("pml.lock")}: `), shown);
  assert.equal((await runPml(ws, ["lock", "--check"])).code, 0);
  const second = await lock();
  assert.notEqual(second, first);
  assert.equal((await runPml(ws, ["call", "words:say"])).stdout, "two\n");
  assert.equal(await lock(), second);
});

Deno.test("pml trust shows the tools, definitions and permissions that changed with the code", async () => {
  const say = { description: "Says a word", inputSchema: {} };
  const old = { description: "Counts", inputSchema: {} };
  await using ws = await makeWorkspace({
    files: { "words.ts": wordsCode({ say, old }) },
    pml: {
      version: 1,
      private_mcps: { words: { type: "deno", path: "./words.ts" } },
      grants: { words: { net: ["api.example.com"] } },
    },
    trusted: false,
  });
  await trustIt(ws);
  // Lists the tools of the approved code.
  assert.equal((await runPml(ws, ["tools", "words"])).code, 0);
  const changed = { ...say, description: "Says a word loudly" };
  const send = { inputSchema: {}, permissions: { net: ["api.example.com"], read: ["docs"] } };
  await writeFile(ws.file("words.ts"), wordsCode({ say: changed, send }));
  const shown = await runPmlOnTerminal(ws, ["trust"], { typed: [[/Type "trust".*: $/, "no"]] });
  assert.equal(shown.code, 1, shown.stdout);
  assertGolden("trust/changed code of a module", shown.stdout);
  const { code: [change] } = JSON.parse((await runPml(ws, ["trust", "--json"])).stdout);
  assert.deepEqual([change.server, change.path], ["words", ws.file("words.ts")]);
  assert.notEqual(change.was, change.is);
  assert.ok(change.lines.some((line: string) => line.includes('- the tool "old"')));
  await trustIt(ws);
  assert.equal(JSON.parse((await runPml(ws, ["trust", "--json"])).stdout).trusted, true);

  // The same tools, in a file whose own content changed, too.
  await writeFile(ws.file("words.ts"), wordsCode({ say: changed, send }, "two"));
  const content = JSON.parse(await readFile(ws.file(".pml.json"), "utf8"));
  await writeFile(ws.file(".pml.json"), JSON.stringify({ ...content, intent: "Words" }));
  const both = await runPmlOnTerminal(ws, ["trust"], { typed: [[/Type "trust".*: $/, "no"]] });
  assertGolden("trust/a changed file with changed code", both.stdout);
});

Deno.test("pml trust shows all tools of a module whose code was never approved", async () => {
  await using ws = await makeWorkspace({
    pml: { version: 1, private_mcps: { words: { type: "deno", path: "./words.ts" } } },
    trusted: false,
  });
  await trustIt(ws);
  // The file does not exist until after the trust.
  const say = { description: "Says a word", inputSchema: {} };
  await writeFile(ws.file("words.ts"), wordsCode({ say }));
  const shown = await runPmlOnTerminal(ws, ["trust"], { typed: [[/Type "trust".*: $/, "no"]] });
  assert.equal(shown.code, 1, shown.stdout);
  assertGolden("trust/code that was never approved", shown.stdout);
  const { code: [change] } = JSON.parse((await runPml(ws, ["trust", "--json"])).stdout);
  assert.deepEqual([change.server, change.was], ["words", undefined]);
});

Deno.test("pml trust reports changed code that does not load, and tools that PML does not know", async () => {
  await using ws = await makeWorkspace({
    files: { "words.ts": wordsCode({ say: { inputSchema: {} } }) },
    pml: { version: 1, private_mcps: { words: { type: "deno", path: "./words.ts" } } },
    trusted: false,
  });
  await trustIt(ws);
  const linesOf = async (code: string): Promise<string> => {
    await writeFile(ws.file("words.ts"), code);
    return JSON.parse((await runPml(ws, ["trust", "--json"])).stdout).code[0].lines.join("\n");
  };
  assert.match(await linesOf(wordsCode({ tell: {} })), /\+ the tool "tell"/);
  assert.match(await linesOf("export const ("), /cannot be read/);
  // Texts of a module cannot imitate lines of PML.
  const evil = await linesOf(wordsCode({ say: { description: "x\n- the tool \u202e" } }));
  assert.ok(!evil.includes("\u202e"), evil);
  assert.doesNotMatch(evil, /^\s*- the tool/m);
});

Deno.test("the trust in a file applies in the linked worktrees of its repository, and nowhere else", async () => {
  await using ws = await makeScene();
  await trustIt(ws);
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@example.com", ...args], {
      cwd: ws.path,
      env: ws.env,
    });
  git("init", "-q");
  git("add", "-A");
  git("commit", "-q", "-m", "first");
  const linked = join(ws.root, "linked");
  git("worktree", "add", "-q", linked);
  assert.ok(await isTrusted(ws, linked));
  // It claims to be a worktree that git does not list.
  const fake = join(ws.root, "fake");
  await mkdir(fake);
  await writeFile(join(fake, ".git"), await readFile(join(linked, ".git")));
  await writeFile(join(fake, ".pml.json"), await readFile(ws.file(".pml.json")));
  assert.equal(await isTrusted(ws, fake), false);
  // Its own repository claims that the trusted folder is one of its worktrees.
  const own = join(ws.root, "own");
  await mkdir(join(own, ".git", "worktrees", "x"), { recursive: true });
  await writeFile(join(own, ".git", "worktrees", "x", "gitdir"), `${ws.path}/.git\n`);
  await writeFile(join(own, ".pml.json"), await readFile(ws.file(".pml.json")));
  assert.equal(await isTrusted(ws, own), false);
  // A changed text asks again, and a revocation applies in all of them.
  await writeFile(join(linked, ".pml.json"), JSON.stringify({ version: 1, mcpServers: {} }));
  assert.equal(await isTrusted(ws, linked), false);
  await writeFile(join(linked, ".pml.json"), await readFile(ws.file(".pml.json")));
  assert.ok(await isTrusted(ws, linked));
  assert.equal((await runPml(ws, ["trust", "--revoke"])).code, 0);
  assert.deepEqual([await isTrusted(ws), await isTrusted(ws, linked)], [false, false]);
});

Deno.test("the journal records written files, changed configurations, unknown tools and overload", async () => {
  await using ws = await makeScene({
    mcpServers: {
      slow: { command: "node", args: ["slow.mjs"] },
    },
    permissions: { allow: ["slow:*", "filesystem:*"] },
  });
  await writeFile(
    ws.file("slow.mjs"),
    tinyServer("new Promise((done) => setTimeout(done, 60_000))"),
  );
  await writeFile(
    join(ws.home, "config.yaml"),
    "limits:\n  concurrent_calls: 1\n  queued_calls: 0\n",
  );
  await trustIt(ws);
  await using pml = new RawStdio(ws);
  await pml.open();
  assert.match(JSON.stringify(await pml.callTool("filesystem__nonsense", {})), /Cannot find/);
  const waits = pml.begin("tools/call", { name: "slow__tell", arguments: {} });
  waits.answer.catch(() => {}); // it ends with PML
  await until(async () =>
    codeOf(await pml.callTool("filesystem__read_file", { path: "good.txt" })) === "OVERLOADED"
  );
  const set = await runPmlOnTerminal(ws, ["config", "set", "limits.queued_calls", "4"], {
    typed: [["exactly this", "write"]],
  });
  assert.equal(set.code, 0, set.stdout);
  await until(async () => (await eventsOf(ws)).includes("configuration changed"));
  const events = await eventsOf(ws);
  for (const event of ["unknown tool", "overloaded", "file written", "configuration changed"]) {
    assert.ok(events.includes(event), `${event} is not among ${events}`);
  }
});

Deno.test("a refusal at pml approve, and a stored key, are in the journal", async () => {
  await using ws = await makeScene();
  await runPml(ws, ["call", "filesystem:write_file", "path=a", "content=b"]);
  await runPmlOnTerminal(ws, ["approve"], { typed: [[/this call\?.*no/, "n"]] });
  await runPml(ws, ["key", "set", "SOME_KEY", "--stdin"], { stdin: "hunter2-hunter2\n" });
  await runPml(ws, ["key", "remove", "SOME_KEY"]);
  const events = await eventsOf(ws);
  for (const event of ["declined", "key kept", "key removed"]) {
    assert.ok(events.includes(event), `${event} is not among ${events}`);
  }
  assert.ok(!(await runPml(ws, ["audit", "--json"])).stdout.includes("hunter2"));
});

Deno.test("pml why shows the state of the server, its approval, and the tokens", async () => {
  await using ws = await makeScene();
  await trustIt(ws);
  assert.equal((await runPml(ws, ["call", "crm:tell"])).stdout, '"fine"\n');
  const { stdout } = await runPml(ws, ["why", "crm:tell"]);
  assert.match(stdout, /^crm:tell: runs\n {2}by "crm:\*" in .*\n {2}the server: ready\n/);
  assert.match(stdout, /^ {2}approved tool: sha256-[0-9a-f]{64}\n {2}about \d+ tokens/m);
  const { state, approved, tokens } = JSON.parse(
    (await runPml(ws, ["why", "crm:tell", "--json"])).stdout,
  );
  assert.equal(state, "ready");
  assert.match(approved.tool, /^sha256-/);
  assert.ok(tokens > 5 && tokens < 100, tokens);
});

Deno.test("pml trust marks no rule as new that the user wrote with PML, and marks the others", async () => {
  await using ws = await makeScene();
  await trustIt(ws);
  const write: TerminalInput[] = [["exactly this", "write"]];
  await runPmlOnTerminal(ws, ["allow", "git:add", "--workspace"], { typed: write });
  await runPmlOnTerminal(ws, ["call", "filesystem:write_file", "path=a.txt", "content=x"], {
    typed: [[/May it run\?.*\[N\] no/, "a"]],
  });
  assert.ok(await isTrusted(ws));
  const file = ws.file(".pml.json");
  const content = JSON.parse(await readFile(file, "utf8"));
  assert.ok(content.permissions.allow.includes("filesystem:write_file"), "by the answer");
  content.permissions.allow.push("sqlite:execute");
  await writeFile(file, JSON.stringify(content));
  const { facts } = JSON.parse((await runPml(ws, ["trust", "--json"])).stdout);
  const marked = facts.filter((line: string) => /^[+-] /.test(line));
  assert.deepEqual(marked, ["+ runs unasked: sqlite:execute"]);
  assert.ok(facts.includes("runs unasked: git:add"));
  // PML edits no untrusted file, so its marks stay.
  await runPmlOnTerminal(ws, ["allow", "git:push", "--workspace"], { typed: [] });
  const again = JSON.parse((await runPml(ws, ["trust", "--json"])).stdout);
  assert.deepEqual(again.facts, facts);
});

Deno.test("pml trust reports an unreachable registry if the user configured it; pml doctor reports any", async () => {
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: "" },
    trusted: false,
    pml: { permissions: { allow: ["far:*"] } },
  });
  // No process listens at this port, so no registry is reached.
  const proxy = "network: { proxy: http://127.0.0.1:9 }\n";
  await writeFile(join(ws.home, "config.yaml"), proxy);
  const trust = () => runPmlOnTerminal(ws, ["trust"], { typed: [TRUST] });
  const quiet = await trust();
  assert.equal(quiet.code, 0, quiet.stdout);
  assert.doesNotMatch(quiet.stdout, /registry/);
  assert.match((await runPml(ws, ["doctor"])).stdout, /^warn registry .*Cannot reach/m);
  const named = `${proxy}registries: ["https://registry.example.com/mcp"]\n`;
  await writeFile(join(ws.home, "config.yaml"), named);
  assert.equal((await runPml(ws, ["trust", "--revoke"])).code, 0);
  const result = await trust();
  assert.match(result.stdout, /warning: a rule allows "far": .*cannot reach the registry/);
});
