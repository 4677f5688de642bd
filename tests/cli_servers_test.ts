/**
 * Reports of the command line about servers behind PML.
 *
 * @module
 */

import assert from "node:assert/strict";
import { appendFile, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { full, ledgerOf } from "./full_scene.ts";
import { assertGolden } from "./kit/golden.ts";
import { FakeNpm } from "./kit/fake_npm.ts";
import { followOutput } from "./kit/followed_output.ts";
import { pmlCommand } from "./kit/pml_command.ts";
import { runPml } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { until, waitUntil, within } from "./kit/wait.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const RULES = {
  version: 1,
  permissions: { allow: ["legacy:link"], deny: ["legacy:@prompts"] },
  mcpServers: { legacy: full("legacy") },
};

Deno.test("pml tools starts a server once, and again only with --refresh", async () => {
  await using ws = await makeWorkspace({ pml: RULES, trusted: true });
  const starts = async () =>
    (await ledgerOf(ws, "legacy")).filter((line) => line.startsWith("start")).length;
  for (const _ of [1, 2]) {
    const { code, stdout } = await runPml(ws, ["tools", "legacy"]);
    assert.equal(code, 0);
    assert.match(stdout, /legacy:link\s+runs/);
    assert.equal(await starts(), 1);
  }
  const again = await runPml(ws, ["tools", "--refresh", "legacy"]);
  assert.match(again.stdout, /legacy:link\s+runs/);
  assert.equal(await starts(), 2);
});

Deno.test("pml tools --refresh reports the error of each server, and lists the others", async () => {
  const lost = { ...full("lost"), env: { KEY: "${NO_SUCH_KEY_HERE}" } };
  const pml = { ...RULES, mcpServers: { legacy: full("legacy"), lost } };
  await using ws = await makeWorkspace({ pml, trusted: true });
  const { code, stdout } = await runPml(ws, ["tools", "--refresh"]);
  assert.equal(code, 0);
  assert.match(stdout, /lost \(private, stdio\) failed: .*NO_SUCH_KEY_HERE/);
  assert.match(stdout, /legacy:link/);
});

Deno.test("pml tools fails with a named server, names it and repeats its message", async () => {
  const args = ["eval", 'console.error("no licence here"); Deno.exit(3)'];
  const mcpServers = { legacy: full("legacy"), dead: { command: Deno.execPath(), args } };
  await using ws = await makeWorkspace({ pml: { ...RULES, mcpServers }, trusted: true });
  const message = 'Cannot reach "dead": its process ended with exit code 3';
  for (const more of [["--refresh"], []]) {
    const { code, stderr } = await runPml(ws, ["tools", ...more, "dead"]);
    assert.equal(code, 1);
    assert.ok(stderr.startsWith(`error: UPSTREAM_DOWN: ${message}`), stderr);
    assert.equal(stderr.split("no licence here").length, 2, stderr);
    const result = await runPml(ws, ["tools", ...more, "--json", "dead"]);
    assert.equal(result.code, 1);
    const { error } = JSON.parse(result.stdout);
    assert.ok(error.message.startsWith(message), error.message);
  }
  const all = await runPml(ws, ["tools", "--refresh"]);
  assert.equal(all.code, 0, "the others are there");
  assert.match(all.stdout, /dead \(private, stdio\) failed: .*"dead": /);
});

const INSTALLED = { tiny: { command: "npx", args: ["-y", "tiny@1.0.0"] } };

/** Creates a workspace with a server that npm installs from a registry. */
async function installing(npm: FakeNpm): Promise<Workspace> {
  const pml = { ...RULES, mcpServers: INSTALLED };
  return await makeWorkspace({ pml, trusted: true, env: { NPM_CONFIG_USERCONFIG: npm.settings } });
}

Deno.test("pml tools NAME waits until a package is installed; without a name it lists slow servers", async () => {
  const files = { "package.json": '{"bin":"main.js"}', "main.js": tinyServer("1") };
  await using npm = new FakeNpm({ tiny: { "1.0.0": files } });
  await using ws = await installing(npm);
  const tools = (...args: string[]) => runPml(ws, ["tools", ...args], { ms: 120_000 });
  const release = npm.hold();
  const named = tools("tiny");
  assert.ok(await waitUntil(() => npm.asked.length > 0, 60_000));
  const refreshed = tools("--refresh");
  assert.ok(await waitUntil(() => npm.asked.length > 1, 60_000));
  const doctor = runPml(ws, ["doctor"], { ms: 120_000 });
  assert.ok(await waitUntil(() => npm.asked.length > 2, 60_000));
  // The other servers start before this one, which waits for seconds.
  const all = await tools();
  release();
  assert.match(all.stdout, /stdio\) not ready yet\n/);
  assert.match(
    all.stderr,
    / tiny\. `pml tools --refresh`/,
  );
  for (const { code, stdout } of await Promise.all([named, refreshed])) {
    assert.equal(code, 0);
    assert.match(stdout, /tiny:tell/);
  }
  assert.match((await doctor).stdout, /server tiny: private, ready: 1 tool\n/);
});

Deno.test("a signal ends `pml tools NAME` while it waits, and the install with it", async () => {
  await using npm = new FakeNpm({});
  await using ws = await installing(npm);
  const release = npm.hold();
  const [program, ...args] = [...pmlCommand(), "tools", "tiny"];
  const { path: cwd, env } = ws;
  await using pml = new Deno.Command(program ?? "", {
    ...{ args, cwd, env, clearEnv: true, stdin: "null", stdout: "null", stderr: "null" },
  }).spawn();
  assert.ok(await waitUntil(() => npm.asked.length > 0, 60_000));
  pml.kill("SIGINT");
  const { code } = await within(pml.status, { ms: 60_000, what: () => "it does not end" });
  assert.equal(code, 130);
  assert.deepEqual([...Deno.readDirSync(join(ws.home, "servers"))], []);
  release();
});

Deno.test("pml why shows the rules about resources, prompts and other requests of MCP", async () => {
  await using ws = await makeWorkspace({ pml: RULES, trusted: true });
  const said = async (id: string) => (await runPml(ws, ["why", id])).stdout.split("\n", 1)[0];
  assert.equal(await said("legacy:@resources"), "legacy:@resources: runs");
  assert.equal(await said("legacy:@prompts"), "legacy:@prompts: denied");
  assert.equal(await said("legacy:@sampling"), "legacy:@sampling: asks");
  const { code, stderr } = await runPml(ws, ["why", "legacy:@nothing"]);
  assert.equal(code, 2);
  assert.match(stderr, /it is not SERVER:TOOL/);
});

Deno.test("pml install names the server that it cannot install, and the reason", async () => {
  const mcpServers = { far: { type: "http", url: "https://mcp.example.com/mcp" } };
  await using ws = await makeWorkspace({ pml: { version: 1, mcpServers }, trusted: true });
  const wrong = { far: "no command starts it", nobody: "no file of yours defines it" };
  for (const [name, why] of Object.entries(wrong)) {
    const { code, stderr } = await runPml(ws, ["install", "--json", name]);
    assert.equal(code, 2);
    assert.match(stderr, new RegExp(`USAGE: Cannot install "${name}": ${why}`));
  }
});

Deno.test("pml logs --follow shows lines as a server writes them, until it is stopped", async () => {
  const script = "echo first >&2; sleep 1; echo second >&2; exit 1";
  const mcpServers = { boom: { command: "sh", args: ["-c", script] } };
  await using ws = await makeWorkspace({ pml: { version: 1, mcpServers }, trusted: true });
  const [program, ...args] = [...pmlCommand(), "logs", "boom", "--follow", "--tail", "9"];
  const { path: cwd, env } = ws;
  await using pml = new Deno.Command(program ?? "", {
    ...{ args, cwd, env, clearEnv: true, stdin: "null", stdout: "piped", stderr: "null" },
  }).spawn();
  let text = "";
  const read = (async () => {
    for await (const chunk of pml.stdout.pipeThrough(new TextDecoderStream())) text += chunk;
  })();
  await runPml(ws, ["tools", "boom"]);
  assert.ok(await waitUntil(() => text.includes("second"), 60_000), text);
  assert.match(text, /^\S+Z first\n\S+Z second\n/);
  assert.equal(text.split("first").length, 2, "each line is shown once");
  pml.kill("SIGINT");
  assert.equal((await pml.status).code, 130);
  await read;
});

Deno.test("pml logs shows the last lines with --tail, and --follow begins with new ones", async () => {
  const mcpServers = { boom: { command: "false" } };
  await using ws = await makeWorkspace({ pml: { version: 1, mcpServers }, trusted: true });
  const log = join(ws.home, "logs", "boom.log");
  await mkdir(dirname(log), { recursive: true, mode: 0o700 });
  await writeFile(log, "one\ntwo\nthree\n", { mode: 0o600 });
  const shown = async (...more: string[]) => (await runPml(ws, ["logs", "boom", ...more])).stdout;
  assert.equal(await shown(), "one\ntwo\nthree\n");
  assert.equal(await shown("--tail", "2"), "two\nthree\n");
  assert.equal(JSON.parse(await shown("--tail", "1", "--json")).text, "three\n");
  assert.equal((await runPml(ws, ["logs", "boom", "--tail", "some"])).code, 2);
  for (const more of [[], ["--tail", "9999"]]) {
    await using pml = followOutput(ws, ["logs", "boom", "--follow", ...more]);
    await until(async () => {
      await appendFile(log, "later\n");
      return pml.text.includes("later");
    });
    assert.equal(pml.text.includes("three"), more.length > 0);
  }
});

Deno.test("pml upgrade, outdated and logs tell why they cannot handle a server", async () => {
  const mcpServers = {
    mine: { command: "node", args: ["server.js"] },
    far: { type: "http", url: "https://mcp.example.com/mcp" },
  };
  await using ws = await makeWorkspace({ pml: { version: 1, mcpServers }, trusted: true });
  const reasons = { mine: "its command", far: "remote server", filesystem: "part of PML" };
  for (const [name, why] of Object.entries(reasons)) {
    const { code, stderr } = await runPml(ws, ["upgrade", name]);
    assert.equal(code, 2);
    assert.ok(stderr.includes(why), stderr);
  }
  const { stdout } = await runPml(ws, ["outdated", "--json"]);
  const names = JSON.parse(stdout).others.map(({ name }: { readonly name: string }) => name);
  assert.deepEqual(names, ["far", "mine"]);
  assert.ok((await runPml(ws, ["logs", "far"])).stderr.includes("audit --server far"));
  const lock = await runPml(ws, ["lock", "--check", "--json"]);
  assert.deepEqual([lock.code, JSON.parse(lock.stdout).exists], [0, false]);
  assert.ok((await runPml(ws, ["why", "mone:x"])).stderr.includes('"mine"?'));
});

Deno.test("pml lock --check and pml doctor say whether a call of a server would write pml.lock", async () => {
  const mcpServers = { mine: { command: "node", args: ["server.js"] } };
  for (const isOfUser of [false, true]) {
    await using ws = await makeWorkspace({
      pml: { version: 1, ...!isOfUser && { mcpServers } },
      trusted: true,
    });
    if (isOfUser) await writeFile(join(ws.home, "config.yaml"), JSON.stringify({ mcpServers }));
    const check = await runPml(ws, ["lock", "--check"]);
    const title = isOfUser
      ? "without a lock, a server of config.yaml"
      : "without a lock, a server of .pml.json";
    assertGolden(`lock/${title}`, check.stdout.replaceAll(ws.root, "<ROOT>"));
    const doctor = await runPml(ws, ["doctor"]);
    const [line] = /^ok {3}lock: .*$/m.exec(doctor.stdout) ?? [];
    assertGolden(`doctor/${title}`, line ?? "");
  }
});

Deno.test("commands that take a server suggest the nearest name", async () => {
  const mcpServers = { weather: { command: "node", args: ["server.js"] } };
  await using ws = await makeWorkspace({ pml: { version: 1, mcpServers }, trusted: true });
  for (const command of ["tools", "logs", "learn", "remove", "upgrade", "lock update"]) {
    const { code, stderr } = await runPml(ws, [...command.split(" "), "weathr"]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /^error: USAGE: .*"weathr".*\n {2}Did you mean "weather"\?\n$/, command);
  }
});
